/* What the programs share that read performance variables. */
#ifndef PVARS_H
#define PVARS_H

#include "check.h"

static MPI_T_pvar_session session;

/* A handle in `session` for a variable that is bound to nothing. */
static inline MPI_T_pvar_handle handle_of(const char *name, int class) {
    int index = -1, count = 0;
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    OK(MPI_T_pvar_get_index(name, class, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
    SAME(count, 1);
    return handle;
}

#endif
