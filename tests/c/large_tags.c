/* Communicators that two threads make of the same groups at the same time, by tags that differ in their highest bit:
 * each thread gets its own.
 * RANKS: 2 4
 */
#include "two_calls.h"

enum { ROUNDS = 30, HIGHEST = 1 << 30 };

static void *make(void *arg)
{
    int which = *(int *)arg;
    MPI_Comm comm;
    OK(MPI_Comm_create_group(MPI_COMM_WORLD, world, which ? 5 | HIGHEST : 5, &comm));
    check_members(comm, which, size);
    return NULL;
}

/* Two calls at once on one local communicator would be two collective calls at once there: each thread has its own. */
static MPI_Comm halves[2];

static void *connect_halves(void *arg)
{
    int which = *(int *)arg;
    MPI_Comm comm;
    OK(MPI_Intercomm_create(halves[which], 0, MPI_COMM_WORLD, rank < size / 2 ? size / 2 : 0, which ? 7 | HIGHEST : 7, &comm));
    check_members(comm, which, size / 2);
    return NULL;
}

int main(void)
{
    begin();
    for (int i = 0; i < 2; i++) OK(MPI_Comm_split(MPI_COMM_WORLD, rank >= size / 2, 0, &halves[i]));
    for (int round = 0; round < ROUNDS; round++) {
        both(make);
        both(connect_halves);
    }
    /* The last tag that there is, and the last without that bit. */
    for (int bit = 0; bit < 2; bit++) {
        MPI_Comm comm;
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, world, (HIGHEST - 1) | bit * HIGHEST, &comm));
        check_members(comm, 0, size);
    }
    for (int i = 0; i < 2; i++) OK(MPI_Comm_free(&halves[i]));
    OK(MPI_Group_free(&world));
    MPI_Finalize();
    return verdict();
}
