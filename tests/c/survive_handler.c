/* An error handler that repairs, as programs that do not look at what calls return have it: it revokes the
 * communicator, so that all members come to it from whatever they do, shrinks, and jumps back to the last step that all
 * have finished. Ranks die in a ring of messages, in a reduction, and in the handler.
 * RANKS: 4 7
 * OPTIONS: --survive
 */
#include "survive.h"
#include <setjmp.h>

enum { STEPS = 9 };

static MPI_Comm comm;
static jmp_buf again;
static int world_rank, handled, step, finished;

static void repair(MPI_Comm *broken, int *error, ...) {
    int class;
    MPI_Comm smaller;
    MPI_Errhandler handler;
    MPI_Error_class(*error, &class);
    if (class != MPIX_ERR_PROC_FAILED && class != MPIX_ERR_REVOKED) MPI_Abort(MPI_COMM_WORLD, 3);
    CHECK(*broken == comm);
    handled++;
    OK(MPIX_Comm_revoke(comm));
    if (handled == 2 && world_rank == 2) die();
    OK(MPIX_Comm_shrink(comm, &smaller));
    /* The shrunken one has the same handler. */
    OK(MPI_Comm_get_errhandler(smaller, &handler));
    CHECK(handler != MPI_ERRORS_ARE_FATAL);
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Comm_free(&comm));
    comm = smaller;
    longjmp(again, 1);
}

/* A ring of messages and a reduction. */
static void work(void) {
    int rank, size, from, sum;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (step == 3 && world_rank == 1) die();
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, step, &from, 1, MPI_INT, (rank + size - 1) % size, step, comm, MPI_STATUS_IGNORE);
    SAME(from, (rank + size - 1) % size);
    if (step == 6 && world_rank == 3) die();
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    SAME(sum, size * (size - 1) / 2);
}

int main(void) {
    int size, left, least;
    MPI_Errhandler handler;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_Comm_create_errhandler(repair, &handler));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, handler));
    OK(MPI_Errhandler_free(&handler));
    /* A rank that comes from a repair has finished as many steps as the others, or one less or more:
     * all go on at the least. */
    setjmp(again);
    MPI_Allreduce(&finished, &least, 1, MPI_INT, MPI_MIN, comm);
    for (step = least + 1; step <= STEPS; step++) {
        work();
        finished = step;
        /* Nobody leaves while another one may have to come back. */
        MPI_Barrier(comm);
    }
    int all = finished;
    MPIX_Comm_agree(comm, &all);
    SAME(all, STEPS);
    MPI_Comm_size(comm, &left);
    SAME(left, size - 3);
    CHECK(handled >= 2);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return verdict();
}
