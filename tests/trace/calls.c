/* Rank 0 posts eight receives, polls in vain, and waits for all while rank 1 sends them in the opposite order.
 * Argument: after how many microseconds. */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

enum { N = 8 };

int main(int argc, char **argv)
{
    int rank, data[N] = {0}, flag;
    MPI_Request requests[N];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        for (int i = 0; i < N; i++) MPI_Irecv(&data[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < 1000 && rank == 0; i++) MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        usleep(argc > 1 ? atoi(argv[1]) : 0);
        for (int i = N - 1; i >= 0; i--) MPI_Send(&data[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD);
    } else {
        MPI_Waitall(N, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
