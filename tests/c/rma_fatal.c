/* A window does not inherit its communicator's error handler: errors on it are fatal (MPI 5.0 section 12.6.1).
 * RANKS: 2
 * EXIT: 50
 * STDERR: MPI_Put: wrong synchronisation of one-sided communication
 */
#include "check.h"

int main(int argc, char **argv) {
    MPI_Win win;
    int own[1], one = 1;
    MPI_Init(&argc, &argv);
    errors_return();
    OK(MPI_Win_create(own, sizeof own, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Put(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    MPI_Finalize();
    return 0;
}
