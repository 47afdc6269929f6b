/* What happens to a spawned program that has disconnected is its own: the other one goes on, and spawns again. One that
 * dies before MPI_Init makes the spawn fail.
 * RANKS: 2
 * EXIT: 7
 * EXPECT: the parents go on
 * STDERR: called MPI_Abort with code 7; the other ranks of its program are ended
 * STDERR: killed by SIGKILL (signal 9)
 */
#include "check.h"
#include <signal.h>
#include <unistd.h>

int main(int argc, char **argv) {
    MPI_Comm parent, inter;
    int rank, word = 0;
    if (argc > 1 && !strcmp(argv[1], "die")) kill(getpid(), SIGKILL);
    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        OK(MPI_Comm_disconnect(&parent));
        /* All of them have disconnected. */
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (argc > 1 && rank == 1) MPI_Abort(MPI_COMM_WORLD, 7);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        MPI_Finalize();
        return 0;
    }
    char *aborts[] = {"abort", NULL}, *dies[] = {"die", NULL};
    OK(MPI_Comm_spawn(argv[0], aborts, 3, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    OK(MPI_Comm_disconnect(&inter));
    usleep(300000);
    for (int i = 0; i < 100; i++) OK(MPI_Allreduce(&rank, &word, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    SAME(word, 1);
    OK(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    OK(MPI_Comm_disconnect(&inter));
    CLASS(MPI_Comm_spawn(argv[0], dies, 2, MPI_INFO_NULL, 1, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE), MPI_ERR_SPAWN);
    OK(MPI_Allreduce(&rank, &word, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    SAME(word, 1);
    if (!failures && rank == 0) printf("the parents go on\n");
    fflush(stdout);
    MPI_Finalize();
    return verdict();
}
