/* What deaths use up: communicators with dead members keep their context ids and the dead their places, but those that
 * live make and free as many communicators as they like,
 * and a group that spawns beyond the places that are left gets an error and goes on.
 * RANKS: 4
 * OPTIONS: --survive
 */
#include "survive.h"

enum { KEPT = 40, LOOPS = 3000 };

int main(int argc, char **argv) {
    int rank, size, sum;
    MPI_Comm parent, between, kept[KEPT], comm = MPI_COMM_WORLD;
    MPI_Init(&argc, &argv);
    errors_return();
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        /* A process that has been spawned, and dies. */
        OK(MPI_Barrier(parent));
        die();
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < KEPT; i++) OK(MPI_Comm_dup(MPI_COMM_WORLD, &kept[i]));
    if (rank == 3) die();
    for (int round = 0; round < 2; round++) {
        MPI_Comm living = MPI_COMM_NULL;
        OK(MPIX_Comm_shrink(comm, &living));
        OK(MPI_Comm_set_errhandler(living, MPI_ERRORS_RETURN));
        if (comm != MPI_COMM_WORLD) OK(MPI_Comm_free(&comm));
        comm = living;
        for (int i = 0; i < LOOPS; i++) {
            MPI_Comm other;
            OK(MPI_Comm_dup(comm, &other));
            if (i % 500 == 0) {
                sum = 1;
                OK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, other));
                MPI_Comm_size(comm, &size);
                SAME(sum, size);
            }
            OK(MPI_Comm_free(&other));
        }
        if (round == 0 && rank == 2) die();
    }
    for (int i = 0; i < KEPT; i++) OK(MPI_Comm_free(&kept[i]));
    int codes[60];
    for (int i = 0; i < 2; i++) {
        OK(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, comm, &between, codes));
        OK(MPI_Comm_set_errhandler(between, MPI_ERRORS_RETURN));
        OK(MPI_Barrier(between));
        await_deaths(between, 1);
        OK(MPI_Comm_free(&between));
    }
    /* There are 64 places, six have been used, and those of the dead are not used again. */
    CLASS(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 60, MPI_INFO_NULL, 0, comm, &between, codes), MPI_ERR_SPAWN);
    OK(MPI_Barrier(comm));
    OK(MPI_Comm_free(&comm));
    MPI_Finalize();
    return verdict();
}
