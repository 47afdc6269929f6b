/* A communicator belongs to the session that its groups come from, however they were put together: its buffered sends
 * find the session's buffer, and its kinds of memory are the session's.
 * RANKS: 2 4
 */
#include "check.h"

static char space[100000];

/* Every rank sends to itself, or to rank 0 of the other group, from the session's buffer. */
static void is_of_session(MPI_Comm comm) {
    int inter, rank, remote, word = 1, flag, length = 100;
    char kinds[100] = "";
    MPI_Info info;
    OK(MPI_Comm_test_inter(comm, &inter));
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Bsend(&word, 1, MPI_INT, inter ? 0 : rank, 0, comm));
    if (!inter) {
        OK(MPI_Recv(&word, 1, MPI_INT, rank, 0, comm, MPI_STATUS_IGNORE));
    } else if (rank == 0) {
        OK(MPI_Comm_remote_size(comm, &remote));
        for (int i = 0; i < remote; i++) OK(MPI_Recv(&word, 1, MPI_INT, i, 0, comm, MPI_STATUS_IGNORE));
    }
    OK(MPI_Comm_get_info(comm, &info));
    OK(MPI_Info_get_string(info, "mpi_memory_alloc_kinds", &length, kinds, &flag));
    CHECK(flag);
    CHECK(strstr(kinds, "alloc_mem"));
    OK(MPI_Info_free(&info));
}

static void made_of(MPI_Group group, const char *tag) {
    MPI_Comm comm;
    OK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    is_of_session(comm);
    OK(MPI_Comm_free(&comm));
}

int main(void) {
    MPI_Session session;
    MPI_Info info;
    MPI_Group all, low, high, mine, others, both;
    MPI_Comm inter, merged;
    int rank, size, bytes;
    void *back;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_memory_alloc_kinds", "mpi:alloc_mem"));
    OK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
    OK(MPI_Info_free(&info));
    OK(MPI_Session_attach_buffer(session, space, sizeof space));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &all));
    OK(MPI_Group_rank(all, &rank));
    OK(MPI_Group_size(all, &size));
    made_of(all, "all");
    OK(MPI_Group_union(MPI_GROUP_EMPTY, all, &both));
    made_of(both, "nothing and all");
    OK(MPI_Group_free(&both));
    int first_half[1][3] = {{0, size / 2 - 1, 1}};
    OK(MPI_Group_range_incl(all, 1, first_half, &low));
    OK(MPI_Group_range_excl(all, 1, first_half, &high));
    int is_low = rank < size / 2;
    mine = is_low ? low : high;
    others = is_low ? high : low;
    OK(MPI_Intercomm_create_from_groups(mine, 0, others, 0, "between", MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter));
    is_of_session(inter);
    for (int turn = 0; turn < 2; turn++) {
        OK(MPI_Intercomm_merge(inter, is_low == turn, &merged));
        is_of_session(merged);
        OK(MPI_Comm_free(&merged));
    }
    MPI_Group local, remote;
    OK(MPI_Comm_group(inter, &local));
    OK(MPI_Comm_remote_group(inter, &remote));
    OK(MPI_Group_union(is_low ? local : remote, is_low ? remote : local, &both));
    made_of(both, "of the intercommunicator");
    MPI_Group groups[] = {all, low, high, local, remote, both};
    for (int i = 0; i < 6; i++) OK(MPI_Group_free(&groups[i]));
    OK(MPI_Comm_free(&inter));
    OK(MPI_Session_detach_buffer(session, &back, &bytes));
    OK(MPI_Session_finalize(&session));
    return verdict();
}
