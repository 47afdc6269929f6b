/* A spawned process that is killed ends all that it is connected with.
 * RANKS: 2
 * EXIT: 137
 * STDERR: killed by SIGKILL (signal 9); the other ranks are ended
 */
#include "check.h"
#include <signal.h>
#include <unistd.h>

int main(int argc, char **argv) {
    MPI_Comm parent, inter;
    int rank, word;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (parent != MPI_COMM_NULL) {
        if (rank == 1) kill(getpid(), SIGKILL);
        MPI_Barrier(MPI_COMM_WORLD);
        return 0;
    }
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    MPI_Recv(&word, 1, MPI_INT, 1, 0, inter, MPI_STATUS_IGNORE);
    printf("a message came from nobody\n");
    return 0;
}
