/* What the programs that outlive ranks share. */
#ifndef SURVIVE_H
#define SURVIVE_H

#include "check.h"
#include <mpi-ext.h>
#include <signal.h>
#include <unistd.h>

static inline void die(void) {
    raise(SIGKILL);
    pause();
}

/* Waits until this rank has seen that `count` members of `comm` have died. */
static inline void await_deaths(MPI_Comm comm, int count) {
    for (int seen = 0; seen < count;) {
        MPI_Group failed;
        OK(MPIX_Comm_get_failed(comm, &failed));
        OK(MPI_Group_size(failed, &seen));
        OK(MPI_Group_free(&failed));
        usleep(1000);
    }
}

static inline MPI_Comm shrunk(MPI_Comm comm, int expected) {
    MPI_Comm new;
    int size;
    OK(MPIX_Comm_shrink(comm, &new));
    OK(MPI_Comm_size(new, &size));
    SAME(size, expected);
    OK(MPI_Comm_set_errhandler(new, MPI_ERRORS_RETURN));
    return new;
}

#endif
