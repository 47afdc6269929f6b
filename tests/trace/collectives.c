/* A collective operation of each kind, on three ranks. Rank 1 is the root. */
#include <mpi.h>
#include <string.h>

int main(int argc, char **argv)
{
    int rank, counts[3] = {1, 2, 3}, offsets[3] = {0, 1, 3}, mine[16] = {0}, all[16] = {0};
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Bcast(mine, 16, MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Gather(mine, 2, MPI_INT, all, 2, MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Scatterv(all, counts, offsets, MPI_INT, mine, counts[rank], MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Reduce(mine, all, 4, MPI_INT, MPI_SUM, 1, MPI_COMM_WORLD);
    MPI_Allreduce(mine, all, 5, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce_scatter(all, mine, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Iallgather(mine, 3, MPI_INT, all, 3, MPI_INT, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
