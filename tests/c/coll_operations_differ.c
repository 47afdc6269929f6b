/* Ranks that meet in different collective operations: the error says which.
 * RANKS: 2
 * EXIT: 16
 * STDERR: the ranks are not in the same collective operation: rank
 * STDERR: in allgather of 4 bytes
 * STDERR: in alltoall of 
 */
#include "check.h"

int main(void) {
    int rank, own[2] = {1, 2}, all[2];
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Allgather(own, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    } else {
        MPI_Alltoall(own, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return verdict();
}
