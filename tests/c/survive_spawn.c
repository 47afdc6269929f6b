/* MPI_Comm_spawn over a communicator with a dead member fails, and starts no process. One that fails because a member
 * dies meanwhile leaves no process behind that waits in MPI_Init for those that have given up: the job ends well.
 * RANKS: 4
 * OPTIONS: --survive --universe 64
 */
#include "survive.h"

/* What a spawned process does: kills the process that its argument names, and comes. */
static int newcomer(int argc, char **argv) {
    MPI_Comm parent;
    if (argc > 1) kill((pid_t)atoi(argv[1]), SIGKILL);
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
    MPI_Comm_disconnect(&parent);
    MPI_Finalize();
    return 0;
}

int main(int argc, char **argv) {
    int rank, size, pid = (int)getpid();
    MPI_Comm living, between;
    if (argc > 1) return newcomer(argc - 1, argv + 1);
    MPI_Init(&argc, &argv);
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == size - 1) die();
    await_deaths(MPI_COMM_WORLD, 1);

    /* A process that is started kills the root. */
    char victim[16], *kills[] = {"newcomer", victim, NULL}, *comes[] = {"newcomer", NULL};
    snprintf(victim, sizeof victim, "%d", pid);
    CLASS(MPI_Comm_spawn(argv[0], kills, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between, MPI_ERRCODES_IGNORE),
          MPIX_ERR_PROC_FAILED);
    living = shrunk(MPI_COMM_WORLD, size - 1);
    CLASS(MPI_Comm_spawn(argv[0], kills, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between, MPI_ERRCODES_IGNORE),
          MPIX_ERR_PROC_FAILED);

    /* Now one that is started kills the last of the others, before it meets any. */
    for (int left = size - 2; left > 0; left--) {
        OK(MPI_Bcast(&pid, 1, MPI_INT, left, living));
        snprintf(victim, sizeof victim, "%d", pid);
        int error = MPI_Comm_spawn(argv[0], kills, 2, MPI_INFO_NULL, 0, living, &between, MPI_ERRCODES_IGNORE);
        if (error == MPI_SUCCESS) {
            MPI_Comm_set_errhandler(between, MPI_ERRORS_RETURN);
            MPI_Comm_disconnect(&between);
        } else {
            CLASS(error, MPIX_ERR_PROC_FAILED);
        }
        await_deaths(living, 1);
        living = shrunk(living, left);
        pid = (int)getpid();
    }
    OK(MPI_Comm_spawn(argv[0], comes, 1, MPI_INFO_NULL, 0, living, &between, MPI_ERRCODES_IGNORE));
    OK(MPI_Comm_disconnect(&between));
    MPI_Finalize();
    return verdict();
}
