/* two_calls.h: two threads of each rank that make communicators of the same groups at the same time. */
#include "check.h"
#include <pthread.h>

static int rank, size;
static MPI_Group world;

/* Sums a number of call `which`: of members of the other call it would be another one. Frees the communicator. */
static void check_members(MPI_Comm comm, int which, int members)
{
    int one = which + 1, sum = -1;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    SAME(sum, members * one);
    OK(MPI_Comm_free(&comm));
}

/* The ranks begin the two calls in different orders. */
static void both(void *(*call)(void *))
{
    pthread_t threads[2];
    int which[2] = {rank % 2, 1 - rank % 2};
    for (int i = 0; i < 2; i++) SAME(pthread_create(&threads[i], NULL, call, &which[i]), 0);
    for (int i = 0; i < 2; i++) SAME(pthread_join(threads[i], NULL), 0);
}

static void begin(void)
{
    int provided;
    OK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided));
    SAME(provided, MPI_THREAD_MULTIPLE);
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
}
