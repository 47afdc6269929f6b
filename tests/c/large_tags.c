/* Communicators that two threads make of the same groups at the same time, by tags that differ in their highest bit: each thread gets its own.
 * RANKS: 2 4
 */
#include "check.h"
#include <pthread.h>

enum { ROUNDS = 30, HIGHEST = 1 << 30 };

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
    OK(MPI_Comm_create_group(MPI_COMM_WORLD, world, which ? 5 | HIGHEST : 5, &comm));
    check(comm, which, size);
    return NULL;
}

/* Two calls at once on one local communicator would be two collective calls at once there: each thread has its own. */
static MPI_Comm halves[2];

static void *connect_halves(void *arg)
{
    int which = *(int *)arg;
    MPI_Comm comm;
    OK(MPI_Intercomm_create(halves[which], 0, MPI_COMM_WORLD, rank < size / 2 ? size / 2 : 0, which ? 7 | HIGHEST : 7, &comm));
    check(comm, which, size / 2);
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
    for (int i = 0; i < 2; i++) OK(MPI_Comm_split(MPI_COMM_WORLD, rank >= size / 2, 0, &halves[i]));
    for (int round = 0; round < ROUNDS; round++) {
        both(make);
        both(connect_halves);
    }
    /* The last tag that there is, and the last without that bit. */
    for (int bit = 0; bit < 2; bit++) {
        MPI_Comm comm;
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, world, (HIGHEST - 1) | bit * HIGHEST, &comm));
        check(comm, 0, size);
    }
    for (int i = 0; i < 2; i++) OK(MPI_Comm_free(&halves[i]));
    OK(MPI_Group_free(&world));
    MPI_Finalize();
    return verdict();
}
