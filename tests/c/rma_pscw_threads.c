/* A rank is in an access epoch and in an exposure epoch at once, in two threads that sleep:
 * the end of one wait takes no wake-up from the other.
 * RANKS: 2
 * FLAGS: -pthread
 * ENV: PERUSAL_NAP_MS=10000
 * OPTIONS: --timeout 100
 */
#include "check.h"
#include <pthread.h>
#include <unistd.h>

enum { ROUNDS = 30 };

static MPI_Win win;

static void *waits(void *unused) {
    OK(MPI_Win_wait(win));
    return unused;
}

/* Is exposed to late, so that both waits sleep, and completes after that. */
static void late(MPI_Group other) {
    usleep(10000);
    OK(MPI_Win_post(other, 0, win));
    usleep(10000);
    OK(MPI_Win_start(other, 0, win));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
}

static void both_at_once(MPI_Group other) {
    pthread_t thread;
    OK(MPI_Win_post(other, 0, win));
    CHECK(pthread_create(&thread, NULL, waits, NULL) == 0);
    usleep(2000);
    OK(MPI_Win_start(other, 0, win));
    OK(MPI_Win_complete(win));
    CHECK(pthread_join(thread, NULL) == 0);
}

int main(int argc, char **argv) {
    int rank, provided, peer;
    long *base;
    MPI_Group all, other;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    SAME(provided, MPI_THREAD_MULTIPLE);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    peer = 1 - rank;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_incl(all, 1, &peer, &other));
    OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    for (int round = 0; round < ROUNDS; round++) {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 0)
            both_at_once(other);
        else
            late(other);
    }
    OK(MPI_Win_free(&win));
    OK(MPI_Group_free(&other));
    OK(MPI_Group_free(&all));
    OK(MPI_Finalize());
    return verdict();
}
