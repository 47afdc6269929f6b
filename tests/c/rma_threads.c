/* Threads of several ranks use one window, and one each, at the same time (MPI_THREAD_MULTIPLE).
 * RANKS: 2 3
 * FLAGS: -pthread
 */
#include "check.h"
#include <pthread.h>

enum { THREADS = 4, ROUNDS = 300, WORDS = 64 };

static int rank, size;
static MPI_Win common, own[THREADS];
static int wrong[THREADS];

#define WELL(call) (wrong[me] += (call) != MPI_SUCCESS)

static void *work(void *argument) {
    int me = (int)(MPI_Aint)argument;
    long one = 1, old, last = -1, sent[8], got[8];
    double half = 0.5;
    for (int i = 0; i < ROUNDS; i++) {
        int to = (rank + me + i) % size;
        /* All threads are in one epoch of the common window, which the main thread has opened. */
        WELL(MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 0, MPI_SUM, common));
        wrong[me] += old <= last;
        last = old;
        WELL(MPI_Accumulate(&half, 1, MPI_DOUBLE, to, 1, 1, MPI_DOUBLE, MPI_SUM, common));
        /* Each has words of its own at every rank. */
        int at = 2 + (rank * THREADS + me);
        sent[0] = i;
        MPI_Request request;
        WELL(MPI_Rput(sent, 1, MPI_LONG, to, at, 1, MPI_LONG, common, &request));
        WELL(MPI_Wait(&request, MPI_STATUS_IGNORE));
        WELL(MPI_Win_flush(to, common));
        WELL(MPI_Get(got, 1, MPI_LONG, to, at, 1, MPI_LONG, common));
        WELL(MPI_Win_flush(to, common));
        wrong[me] += got[0] != i;
        /* Locks of the thread's own window. */
        WELL(MPI_Win_lock(i % 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, to, 0, own[me]));
        WELL(MPI_Get(got, 8, MPI_LONG, to, 0, 8, MPI_LONG, own[me]));
        WELL(MPI_Win_flush(to, own[me]));
        for (int k = 1; k < 8; k++) wrong[me] += got[k] != got[0];
        if (i % 2) {
            for (int k = 0; k < 8; k++) sent[k] = got[k] + 1;
            WELL(MPI_Put(sent, 8, MPI_LONG, to, 0, 8, MPI_LONG, own[me]));
        }
        WELL(MPI_Win_unlock(to, own[me]));
    }
    for (int i = 0; i < ROUNDS / 10; i++) {
        long value = rank * 1000 + i;
        WELL(MPI_Win_fence(0, own[me]));
        WELL(MPI_Put(&value, 1, MPI_LONG, (rank + 1) % size, 8, 1, MPI_LONG, own[me]));
        WELL(MPI_Win_fence(MPI_MODE_NOSUCCEED, own[me]));
        WELL(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, own[me]));
        WELL(MPI_Get(got, 1, MPI_LONG, rank, 8, 1, MPI_LONG, own[me]));
        WELL(MPI_Win_unlock(rank, own[me]));
        wrong[me] += got[0] != (rank + size - 1) % size * 1000 + i;
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    long *words, *parts[THREADS];
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    SAME(level, MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_Win_allocate(WORDS * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &words, &common));
    memset(words, 0, WORDS * sizeof(long));
    for (int i = 0; i < THREADS; i++) {
        OK(MPI_Win_allocate(9 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &parts[i], &own[i]));
        memset(parts[i], 0, 9 * sizeof(long));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, common));
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)(MPI_Aint)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    OK(MPI_Win_unlock_all(common));
    for (int i = 0; i < THREADS; i++) SAME(wrong[i], 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    double sum, all;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, common));
    if (rank == 0) SAME(words[0], (long)size * THREADS * ROUNDS);
    memcpy(&sum, &words[1], sizeof sum);
    OK(MPI_Win_unlock(rank, common));
    OK(MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    CHECK(all == 0.5 * size * THREADS * ROUNDS);
    for (int i = 0; i < THREADS; i++) {
        long raised;
        OK(MPI_Allreduce(parts[i], &raised, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
        SAME(raised, (long)size * ROUNDS / 2);
        OK(MPI_Win_free(&own[i]));
    }
    OK(MPI_Win_free(&common));
    MPI_Finalize();
    return verdict();
}
