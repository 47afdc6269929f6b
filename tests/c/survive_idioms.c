/* How programs use what User Level Failure Mitigation offers: all agree after each step whether it is done, and repair
 * and repeat it if not; ranks die before, in and behind the agreement, and in the shrink that mends another death. The
 * result is that of a run in which nobody has died.
 * RANKS: 6 9
 * OPTIONS: --survive
 */
#include "survive.h"

enum { STEPS = 12 };
static MPI_Comm comm;
static int repairs;

/* Who dies, and where in a step. */
enum place { BEFORE, IN_AGREEMENT, BEHIND, IN_SHRINK };
static const struct { int step, rank; enum place place; } deaths[] = {
    {2, 1, BEFORE}, {5, 2, IN_AGREEMENT}, {7, 4, BEFORE}, {7, 3, IN_SHRINK}, {10, 5, BEHIND},
};
enum { DEATHS = sizeof deaths / sizeof deaths[0] };
static int world_rank;

static void may_die(int step, enum place place) {
    for (int i = 0; i < DEATHS; i++)
        if (deaths[i].step == step && deaths[i].place == place && deaths[i].rank == world_rank) die();
}

/* A communicator of those that live and know that they do: the shrunken one may have members that die in the making. */
static void repair(int step) {
    int good;
    do {
        MPI_Comm living;
        MPI_Request request;
        repairs++;
        MPIX_Comm_revoke(comm);
        if (step == 7) {
            /* One begins to shrink, and dies. */
            OK(MPIX_Comm_ishrink(comm, &living, &request));
            may_die(step, IN_SHRINK);
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else {
            OK(MPIX_Comm_shrink(comm, &living));
        }
        OK(MPI_Comm_set_errhandler(living, MPI_ERRORS_RETURN));
        MPI_Comm_free(&comm);
        comm = living;
        good = 1;
    } while (MPIX_Comm_agree(comm, &good) != MPI_SUCCESS);
}

int main(void) {
    int size, rank;
    long total = 0;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MPI_Comm_rank(comm, &world_rank);
    MPI_Comm_size(comm, &size);
    int most = size;
    for (int step = 0; step < STEPS;) {
        long mine = world_rank == 0 ? 1000 + step : 0, sum = 0;
        may_die(step, BEFORE);
        int error = MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm);
        int done = error == MPI_SUCCESS;
        if (step == 5) {
            MPI_Request request;
            int agreed = MPIX_Comm_iagree(comm, &done, &request);
            may_die(step, IN_AGREEMENT);
            if (agreed == MPI_SUCCESS) agreed = MPI_Wait(&request, MPI_STATUS_IGNORE);
            done = done && agreed == MPI_SUCCESS;
        } else {
            done = MPIX_Comm_agree(comm, &done) == MPI_SUCCESS && done;
        }
        may_die(step, BEHIND);
        /* The error of an agreement is the same at all, and so is its value. */
        if (!done) {
            repair(step);
            continue;
        }
        SAME(sum, 1000 + step);
        total += sum;
        step++;
    }
    long all = 0;
    for (int step = 0; step < STEPS; step++) all += 1000 + step;
    SAME(total, all);
    OK(MPI_Comm_size(comm, &size));
    OK(MPI_Comm_rank(comm, &rank));
    SAME(size, most - DEATHS);
    SAME(rank == 0, world_rank == 0);
    /* One repair may mend several deaths. */
    if (repairs < 3) SAME(repairs, 3);
    OK(MPI_Barrier(comm));
    OK(MPI_Comm_free(&comm));
    MPI_Finalize();
    return verdict();
}
