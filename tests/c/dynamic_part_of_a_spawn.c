/* Programs of a spawn whose last one cannot be started leave their places:
 * the spawn fails as often as it is tried, and takes no room.
 * RANKS: 1
 * OPTIONS: --universe 64
 */
#include "check.h"

/* Processes of the program that can be started, and of those spawns: more than there is room for together. */
enum { GOOD = 20, ROUNDS = 10, ALL = 63 };

int main(int argc, char **argv) {
    MPI_Comm parent, inter;
    char *commands[] = {argv[0], "/no/such/program"};
    int counts[] = {GOOD, 1}, codes[ALL];
    MPI_Info hints[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        OK(MPI_Comm_disconnect(&parent));
        MPI_Finalize();
        return verdict();
    }
    for (int round = 0; round < ROUNDS; round++) {
        CLASS(MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, counts, hints, 0, MPI_COMM_SELF, &inter, codes), MPI_ERR_SPAWN);
        for (int at = 0; at <= GOOD; at++) SAME(codes[at], MPI_ERR_SPAWN);
    }
    OK(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, ALL, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, codes));
    if (!failures) OK(MPI_Comm_disconnect(&inter));
    MPI_Finalize();
    return verdict();
}
