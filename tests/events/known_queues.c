/* known_queues.c: two ranks whose queues have a history that is known beforehand.
 *
 * Rank 1 posts three receives and only then lets rank 0 send them: three entries of the posted queue, none unexpected.
 * Then rank 0 sends five messages and a sixth, and rank 1 looks for the sixth before it receives any: six unexpected
 * messages at once. The same again on a duplicate of the communicator. At last, with an argument, rank 1 posts one more
 * receive on the duplicate and frees it; then rank 0 sends. */
#include <mpi.h>
#include <stdio.h>

enum { POSTED = 3, EARLY = 5 };

static void play(MPI_Comm comm, int rank)
{
    int value[POSTED], flag = 0, i;
    MPI_Request requests[POSTED];
    if (rank == 0) {
        MPI_Recv(&i, 1, MPI_INT, 1, 1, comm, MPI_STATUS_IGNORE);
        for (i = 0; i < POSTED; i++) MPI_Send(&i, 1, MPI_INT, 1, 2, comm);
        for (i = 0; i < EARLY; i++) MPI_Send(&i, 1, MPI_INT, 1, 3, comm);
        MPI_Send(&i, 1, MPI_INT, 1, 4, comm);
    } else if (rank == 1) {
        for (i = 0; i < POSTED; i++) MPI_Irecv(&value[i], 1, MPI_INT, 0, 2, comm, &requests[i]);
        MPI_Send(&i, 1, MPI_INT, 0, 1, comm);
        MPI_Waitall(POSTED, requests, MPI_STATUSES_IGNORE);
        while (!flag) MPI_Iprobe(0, 4, comm, &flag, MPI_STATUS_IGNORE);
        for (i = 0; i < EARLY; i++) MPI_Recv(value, 1, MPI_INT, 0, 3, comm, MPI_STATUS_IGNORE);
        MPI_Recv(value, 1, MPI_INT, 0, 4, comm, MPI_STATUS_IGNORE);
    }
}

static void free_while_pending(MPI_Comm *comm, int rank)
{
    int value = 0;
    MPI_Request request;
    if (rank == 0) {
        MPI_Recv(&value, 1, MPI_INT, 1, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&value, 1, MPI_INT, 1, 5, *comm);
        MPI_Comm_free(comm);
    } else {
        MPI_Irecv(&value, 1, MPI_INT, 0, 5, *comm, &request);
        MPI_Comm_free(comm);
        MPI_Send(&value, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Comm copy;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    play(MPI_COMM_WORLD, rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    play(copy, rank);
    if (argc > 1) free_while_pending(&copy, rank);
    else MPI_Comm_free(&copy);
    MPI_Finalize();
    if (rank == 0) puts("played");
    return 0;
}
