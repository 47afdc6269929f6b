/* A rank that waits when another one calls MPI_Abort is ended, and does not go on with an error, also where the process
 * that has called takes its time to end.
 * RANKS: 3
 * EXIT: 7
 * STDERR: mpiexec: rank 0 called MPI_Abort with code 7; the other ranks are ended
 */
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <unistd.h>

/* What MPI_Abort flushes goes out slowly. */
static ssize_t slowly(void *cookie, const char *bytes, size_t count)
{
    (void)cookie, (void)bytes;
    usleep(300000);
    return (ssize_t)count;
}

int main(void)
{
    cookie_io_functions_t functions = {.write = slowly};
    MPI_Request request;
    int rank, there = 0, x;
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        fputc('x', fopencookie(NULL, "w", functions));
        MPI_Abort(MPI_COMM_WORLD, 7);
    }
    if (rank == 1) {
        MPI_Barrier(MPI_COMM_WORLD);
    } else {
        MPI_Irecv(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
        while (!there && MPI_Test(&request, &there, MPI_STATUS_IGNORE) == MPI_SUCCESS) {}
    }
    fprintf(stderr, "rank %d went on\n", rank);
    /* So that the job does not end with 7. */
    kill(getppid(), SIGKILL);
    return 3;
}
