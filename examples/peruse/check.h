/* check.h: stop the program, with the place and the value, when a PERUSE or MPI call does not succeed. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stdio.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        int check_result_ = (call);                                                                                    \
        if (check_result_ != 0) {                                                                                      \
            fprintf(stderr, "%s:%d: %s gave %d\n", __FILE__, __LINE__, #call, check_result_);                          \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                              \
        }                                                                                                              \
    } while (0)

#endif
