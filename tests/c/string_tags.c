/* Communicators that two threads make of the same groups at the same time, by strings of which the library makes the
 * same number: each thread gets its own.
 * RANKS: 2 4
 */
#include "two_calls.h"

enum { ROUNDS = 50 };

/* FNV-1a in 32 bits gives the two numbers that differ in their lowest two bits at most. */
static const char *const tags[] = {"call 3850", "call 82690"};

static void *make(void *arg)
{
    int which = *(int *)arg;
    MPI_Comm comm;
    OK(MPI_Comm_create_from_group(world, tags[which], MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    check_members(comm, which, size);
    return NULL;
}

static void *connect_halves(void *arg)
{
    int which = *(int *)arg, halves[2][3] = {{0, size / 2 - 1, 1}, {size / 2, size - 1, 1}}, own = rank >= size / 2;
    MPI_Group groups[2];
    MPI_Comm comm;
    for (int i = 0; i < 2; i++) OK(MPI_Group_range_incl(world, 1, &halves[i], &groups[i]));
    OK(MPI_Intercomm_create_from_groups(groups[own], 0, groups[!own], 0, tags[which], MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    check_members(comm, which, size / 2);
    for (int i = 0; i < 2; i++) OK(MPI_Group_free(&groups[i]));
    return NULL;
}

int main(void)
{
    begin();
    for (int round = 0; round < ROUNDS; round++) {
        both(make);
        both(connect_halves);
    }
    OK(MPI_Group_free(&world));
    OK(MPI_Finalize());
    return verdict();
}
