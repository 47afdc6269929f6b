/* The launcher tells an error handler that ends the job from a call of MPI_Abort.
 * RANKS: 2
 * EXIT: 6
 * STDERR: rank 1: MPI_Send: rank is 7
 * STDERR: mpiexec: rank 1 ended the job by its error handler, for an error of class 6
 */
#include "check.h"

int main(void) {
    int rank;
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    SAME(MPI_ERR_RANK, 6);
    if (rank == 1) MPI_Send(&rank, 1, MPI_INT, 7, 0, MPI_COMM_WORLD);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Finalize());
    return verdict();
}
