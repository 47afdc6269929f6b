/* What the test programs of files share. */
#ifndef FILE_H
#define FILE_H

#include "check.h"
#include <unistd.h>

static int rank, size;
/* That of a file which no other job has. */
static char name[64];

/* Once MPI has begun: who this is, and the same name on all ranks. */
static inline void name_file(const char *program)
{
    int id = (int)getpid();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(name, sizeof name, "%s.%d", program, id);
}

#endif
