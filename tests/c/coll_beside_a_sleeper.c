/* A nonblocking collective that one thread begins while another one, which runs progress, is about to sleep or sleeps.
 * The ranks come to each at different times, so that what the others wait for comes now before the sleep, now in it.
 * A wake-up that is lost costs a sleep of ten seconds. A busy machine may make a round as long, but not many.
 * RANKS: 2 3
 * FLAGS: -pthread
 * ENV: PERUSAL_NAP_MS=10000
 * OPTIONS: --timeout 600
 */
#include "check.h"
#include <pthread.h>

enum { STOP = 1, ROUNDS = 400, LONG = 9, MOST_LONG = 3 };

static int rank, size;

static void *await_stop(void *unused)
{
    OK(MPI_Recv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, STOP, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return unused;
}

/* Something that takes a while, and is no sleep. */
static void compute(int steps)
{
    volatile int sum = 0;
    for (int i = 0; i < steps; i++) sum += i;
}

int main(void)
{
    int provided, long_rounds = 0, long_ones[2000], result[2000];
    pthread_t sleeper;
    MPI_Comm comm;
    MPI_Request requests[2];
    OK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided));
    errors_return();
    SAME(provided, MPI_THREAD_MULTIPLE);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    pthread_create(&sleeper, NULL, await_stop, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        int mine = rank + round, sum = -1;
        double begun = MPI_Wtime();
        for (int i = 0; i < 2000; i++) long_ones[i] = mine;
        compute((round * 37 + rank * 101) % 97 * 3000);
        OK(MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[0]));
        if (round % 3 == 0) OK(MPI_Iallreduce(long_ones, result, 2000, MPI_INT, MPI_MAX, comm, &requests[1]));
        else OK(MPI_Ibarrier(comm, &requests[1]));
        compute((round * 53 + rank * 71) % 89 * 3000);
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        SAME(sum, size * round + size * (size - 1) / 2);
        if (round % 3 == 0) SAME(result[1999], size - 1 + round);
        long_rounds += MPI_Wtime() - begun > LONG;
    }
    CHECK(long_rounds <= MOST_LONG);
    OK(MPI_Send(NULL, 0, MPI_INT, (rank + 1) % size, STOP, MPI_COMM_WORLD));
    pthread_join(sleeper, NULL);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    return verdict();
}
