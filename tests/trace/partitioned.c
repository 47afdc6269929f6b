/* Rank 0 sends rank 1 three messages in four partitions; rank 1 starts each 20 ms after all partitions are ready. */
#include <mpi.h>
#include <unistd.h>

enum { PARTS = 4, ITEMS = 1000, ROUNDS = 3 };

int main(int argc, char **argv)
{
    int *data;
    int rank, arrived = 0;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    /* Memory that the sender can write: so it waits for each start of the receive. */
    MPI_Alloc_mem(PARTS * ITEMS * sizeof(int), MPI_INFO_NULL, &data);
    if (rank == 0)
        MPI_Psend_init(data, PARTS, ITEMS, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    else
        MPI_Precv_init(data, PARTS / 2, 2 * ITEMS, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int round = 0; round < ROUNDS; round++) {
        if (rank == 0) {
            MPI_Start(&request);
            MPI_Pready_range(0, PARTS - 1, request);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1) {
            usleep(20000);
            MPI_Start(&request);
            for (arrived = 0; !arrived;) MPI_Parrived(request, 1, &arrived);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
    MPI_Free_mem(data);
    MPI_Finalize();
    return 0;
}
