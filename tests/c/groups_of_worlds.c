/* Communicators and intercommunicators of groups whose processes are of two worlds:
 * those that were started first, and those that they have spawned.
 * RANKS: 2
 */
#include "check.h"

static void check_inter(MPI_Comm comm, int is_first, int members)
{
    int remote, word = is_first, sum = -1;
    OK(MPI_Comm_remote_size(comm, &remote));
    SAME(remote, members);
    OK(MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, comm));
    SAME(sum, is_first ? 0 : members);
    OK(MPI_Comm_free(&comm));
}

int main(int argc, char **argv)
{
    MPI_Comm parent, inter, all, comm;
    MPI_Group group, groups[2];
    int rank, size, is_first;
    MPI_Init(&argc, &argv);
    errors_return();
    OK(MPI_Comm_get_parent(&parent));
    if (parent == MPI_COMM_NULL) {
        int codes[2];
        OK(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes));
    } else {
        inter = parent;
    }
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    OK(MPI_Intercomm_merge(inter, parent != MPI_COMM_NULL, &all));
    OK(MPI_Comm_rank(all, &rank));
    OK(MPI_Comm_size(all, &size));
    SAME(size, 4);
    OK(MPI_Comm_group(all, &group));
    /* One of each world in each group; of these, the second leads one and the first the other. */
    int of[2][2] = {{0, 2}, {1, 3}};
    for (int i = 0; i < 2; i++) OK(MPI_Group_incl(group, 2, of[i], &groups[i]));
    is_first = rank % 2 == 0;
    for (int round = 0; round < 3; round++) {
        OK(MPI_Intercomm_create_from_groups(groups[!is_first], is_first, groups[is_first], !is_first, "mixed", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
        check_inter(comm, is_first, 2);
    }
    /* Two worlds, each a group: no member of one is in the other's. */
    int worlds[2][2] = {{0, 1}, {2, 3}};
    MPI_Group apart[2];
    for (int i = 0; i < 2; i++) OK(MPI_Group_incl(group, 2, worlds[i], &apart[i]));
    is_first = rank < 2;
    OK(MPI_Intercomm_create_from_groups(apart[!is_first], 0, apart[is_first], 0, "apart", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    check_inter(comm, is_first, 2);
    OK(MPI_Comm_create_from_group(group, "all", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Barrier(comm));
    OK(MPI_Comm_free(&comm));
    for (int i = 0; i < 2; i++) {
        OK(MPI_Group_free(&groups[i]));
        OK(MPI_Group_free(&apart[i]));
    }
    OK(MPI_Group_free(&group));
    OK(MPI_Comm_free(&all));
    OK(MPI_Comm_disconnect(&inter));
    MPI_Finalize();
    return verdict();
}
