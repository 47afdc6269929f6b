/* Collectives in which one rank gives another length than the others: an error where it can be seen, no rank waits, and
 * the communicator serves the next operation.
 * RANKS: 2 4
 */
#include "check.h"

enum { MOST = 64 };
static int rank, size, errors;
static int sent[MOST * 8], received[MOST * 8];

/* Some rank must have noticed; then all meet, blocking and not. */
static void noticed(const char *what, int error) {
    int own = error != MPI_SUCCESS, all = 0;
    MPI_Request request;
    OK(MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (all == 0) {
        fprintf(stderr, "%s: no rank has noticed\n", what);
        errors++;
    }
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static int over(int error, MPI_Request *request) {
    int later = *request == MPI_REQUEST_NULL ? MPI_SUCCESS : MPI_Wait(request, MPI_STATUS_IGNORE);
    return error != MPI_SUCCESS ? error : later;
}

int main(void) {
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int n = rank == 0 ? 5 : 10, few = rank == 0 ? 1 : 10;
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Request request = MPI_REQUEST_NULL;
    noticed("bcast", MPI_Bcast(sent, n, MPI_INT, size - 1, world));
    noticed("gather, short room", MPI_Gather(sent, 10, MPI_INT, received, few, MPI_INT, 0, world));
    noticed("gather, short piece", MPI_Gather(sent, rank == 1 ? 3 : 10, MPI_INT, received, 10, MPI_INT, 0, world));
    noticed("allgather, short piece", MPI_Allgather(sent, few, MPI_INT, received, 10, MPI_INT, world));
    noticed("allgather, long piece", MPI_Allgather(sent, rank == 0 ? 20 : 10, MPI_INT, received, 10, MPI_INT, world));
    noticed("alltoall, long piece", MPI_Alltoall(sent, rank == 0 ? 20 : 10, MPI_INT, received, 10, MPI_INT, world));
    noticed("allreduce", MPI_Allreduce(sent, received, n, MPI_INT, MPI_SUM, world));
    noticed("scatter", MPI_Scatter(sent, n, MPI_INT, received, 10, MPI_INT, 0, world));
    noticed("ibcast", over(MPI_Ibcast(sent, n, MPI_INT, size - 1, world, &request), &request));
    noticed("igather", over(MPI_Igather(sent, 10, MPI_INT, received, few, MPI_INT, 0, world, &request), &request));
    noticed("iallgather", over(MPI_Iallgather(sent, few, MPI_INT, received, 10, MPI_INT, world, &request), &request));
    noticed("iallreduce", over(MPI_Iallreduce(sent, received, n, MPI_INT, MPI_SUM, world, &request), &request));
    SAME(errors, 0);
    OK(MPI_Finalize());
    return verdict();
}
