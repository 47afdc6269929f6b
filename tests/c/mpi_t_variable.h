/* Control variables of MPI_T by their names. */
#ifndef MPI_T_VARIABLE_H
#define MPI_T_VARIABLE_H

#include "check.h"

static MPI_T_cvar_handle variable(const char *name)
{
    int index = -1, count;
    MPI_T_cvar_handle handle;
    OK(MPI_T_cvar_get_index(name, &index));
    OK(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count));
    return handle;
}

#endif
