/* The dead are replaced in their places: those that live shrink, spawn as many as have died, tell each newcomer whose
 * place it has, and split what they have merged by the old ranks. The newcomers take part in the next repair.
 * RANKS: 4
 * OPTIONS: --survive --universe 12
 */
#include "survive.h"

enum { ROUNDS = 3 };

/* What an iteration computes: each rank's number times the round. */
static int work(MPI_Comm comm, int round, int rank, int size) {
    int mine = (rank + 1) * round, all = -1, error = MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, comm);
    if (error == MPI_SUCCESS) SAME(all, round * size * (size + 1) / 2);
    return error;
}

/* Gives the ranks of `broken`, or of what it was before a death, a communicator as it was;
 * newcomers come with MPI_COMM_NULL. */
static MPI_Comm replaced(MPI_Comm broken, char *program, int *round) {
    MPI_Comm living, between, merged, whole;
    MPI_Group had, have, gone;
    int state[2] = {0, 0}, newcomers, old, rank;
    if (broken == MPI_COMM_NULL) {
        OK(MPI_Comm_get_parent(&between));
        OK(MPI_Recv(state, 2, MPI_INT, 0, 1, between, MPI_STATUS_IGNORE));
        OK(MPI_Intercomm_merge(between, 1, &merged));
        old = state[0];
        *round = state[1];
    } else {
        MPIX_Comm_revoke(broken);
        OK(MPIX_Comm_shrink(broken, &living));
        OK(MPI_Comm_set_errhandler(living, MPI_ERRORS_RETURN));
        OK(MPI_Comm_rank(broken, &old));
        OK(MPI_Comm_group(broken, &had));
        OK(MPI_Comm_group(living, &have));
        OK(MPI_Group_difference(had, have, &gone));
        OK(MPI_Group_size(gone, &newcomers));
        OK(MPI_Comm_spawn(program, MPI_ARGV_NULL, newcomers, MPI_INFO_NULL, 0, living, &between, MPI_ERRCODES_IGNORE));
        OK(MPI_Comm_rank(living, &rank));
        for (int i = 0; rank == 0 && i < newcomers; i++) {
            OK(MPI_Group_translate_ranks(gone, 1, &i, had, &state[0]));
            state[1] = *round;
            OK(MPI_Send(state, 2, MPI_INT, i, 1, between));
        }
        OK(MPI_Intercomm_merge(between, 0, &merged));
        MPI_Group_free(&had);
        MPI_Group_free(&have);
        MPI_Group_free(&gone);
        OK(MPI_Comm_free(&living));
        MPI_Comm_free(&broken);
    }
    OK(MPI_Comm_split(merged, 0, old, &whole));
    OK(MPI_Comm_set_errhandler(whole, MPI_ERRORS_RETURN));
    OK(MPI_Comm_rank(whole, &rank));
    SAME(rank, old);
    OK(MPI_Comm_free(&merged));
    OK(MPI_Comm_disconnect(&between));
    return whole;
}

int main(int argc, char **argv) {
    int rank, size, round = 1;
    MPI_Comm parent, comm;
    MPI_Init(&argc, &argv);
    errors_return();
    OK(MPI_Comm_get_parent(&parent));
    int joined = 0;
    if (parent != MPI_COMM_NULL) {
        comm = replaced(MPI_COMM_NULL, argv[0], &round);
        joined = round;
    } else OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    MPI_Comm_size(comm, &size);
    SAME(size, 4);
    while (round <= ROUNDS) {
        MPI_Comm_rank(comm, &rank);
        /* In the second round two die at once; in the third one that has replaced another. */
        if (joined == 0 && round == 1 && rank == 2) die();
        if (joined == 0 && round == 2 && (rank == 0 || rank == 3)) die();
        if (joined == 1 && round == 3 && rank == 2) die();
        int done = work(comm, round, rank, size) == MPI_SUCCESS;
        int agreed = MPIX_Comm_agree(comm, &done);
        if (agreed == MPI_SUCCESS && done) {
            round++;
        } else {
            comm = replaced(comm, argv[0], &round);
        }
    }
    OK(MPI_Barrier(comm));
    OK(MPI_Comm_free(&comm));
    MPI_Finalize();
    return verdict();
}
