/* Parents and spawned children, merged into one communicator, make others of groups,
 * access each other's memory and write one file.
 * RANKS: 1 3
 */
#define _DEFAULT_SOURCE
#include "merged.h"

int main(int argc, char **argv) {
    MPI_Comm parent, inter, all;
    int r, n;
    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_get_parent(&parent));
    if (parent == MPI_COMM_NULL)
        OK(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    else
        inter = parent;
    OK(MPI_Intercomm_merge(inter, parent != MPI_COMM_NULL, &all));
    OK(MPI_Comm_rank(all, &r));
    OK(MPI_Comm_size(all, &n));
    of_groups(all, r, n);
    one_sided(all, r, n);
    into_a_file(all, r, n);
    OK(MPI_Comm_free(&all));
    OK(MPI_Comm_disconnect(&inter));
    MPI_Finalize();
    return verdict();
}
