/* A rank that has died is replaced: the others shrink, spawn, and merge.
 * RANKS: 3
 * OPTIONS: --survive --universe 8
 */
#include "survive.h"

int main(int argc, char **argv) {
    int rank, size, sum;
    MPI_Comm parent, all, living, between;
    MPI_Init(&argc, &argv);
    errors_return();
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        OK(MPI_Intercomm_merge(parent, 1, &all));
        OK(MPI_Allreduce(MPI_IN_PLACE, &(int){1}, 1, MPI_INT, MPI_SUM, all));
        OK(MPI_Barrier(all));
        OK(MPI_Comm_free(&all));
        OK(MPI_Comm_disconnect(&parent));
        MPI_Finalize();
        return verdict();
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 1) die();
    CLASS(MPI_Barrier(MPI_COMM_WORLD), MPIX_ERR_PROC_FAILED);
    living = shrunk(MPI_COMM_WORLD, size - 1);
    for (int round = 0; round < 2; round++) {
        OK(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, living, &between, MPI_ERRCODES_IGNORE));
        OK(MPI_Intercomm_merge(between, 0, &all));
        OK(MPI_Comm_size(all, &sum));
        SAME(sum, size);
        sum = 1;
        OK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, all));
        SAME(sum, size);
        OK(MPI_Barrier(all));
        OK(MPI_Comm_free(&all));
        OK(MPI_Comm_disconnect(&between));
    }
    MPI_Finalize();
    return verdict();
}
