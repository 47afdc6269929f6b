/* Communicators that two threads make of the same groups at the same time, by strings of which the library makes the same number: each thread gets its own.
 * RANKS: 2 4
 */
#include "check.h"
#include <pthread.h>

enum { ROUNDS = 50 };

/* FNV-1a in 32 bits gives the two numbers that differ in their lowest two bits at most. */
static const char *const tags[] = {"call 3850", "call 82690"};

static int rank, size;
static MPI_Group world;

static void check(MPI_Comm comm, int which, int members)
{
    int one = which + 1, sum = -1;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    SAME(sum, members * one);
    OK(MPI_Comm_free(&comm));
}

static void *make(void *arg)
{
    int which = *(int *)arg;
    MPI_Comm comm;
    OK(MPI_Comm_create_from_group(world, tags[which], MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    check(comm, which, size);
    return NULL;
}

static void *connect_halves(void *arg)
{
    int which = *(int *)arg, halves[2][3] = {{0, size / 2 - 1, 1}, {size / 2, size - 1, 1}}, own = rank >= size / 2;
    MPI_Group groups[2];
    MPI_Comm comm;
    for (int i = 0; i < 2; i++) OK(MPI_Group_range_incl(world, 1, &halves[i], &groups[i]));
    OK(MPI_Intercomm_create_from_groups(groups[own], 0, groups[!own], 0, tags[which], MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    check(comm, which, size / 2);
    for (int i = 0; i < 2; i++) OK(MPI_Group_free(&groups[i]));
    return NULL;
}

/* The ranks begin the two calls in different orders. */
static void both(void *(*call)(void *))
{
    pthread_t threads[2];
    int which[2] = {rank % 2, 1 - rank % 2};
    for (int i = 0; i < 2; i++) SAME(pthread_create(&threads[i], NULL, call, &which[i]), 0);
    for (int i = 0; i < 2; i++) SAME(pthread_join(threads[i], NULL), 0);
}

int main(void)
{
    int provided;
    OK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided));
    SAME(provided, MPI_THREAD_MULTIPLE);
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    for (int round = 0; round < ROUNDS; round++) {
        both(make);
        both(connect_halves);
    }
    OK(MPI_Group_free(&world));
    OK(MPI_Finalize());
    return verdict();
}
