/* Threads of a rank that access memory which only its own process reaches, by messages:
 * each gets what it asked for, where it asked for it.
 * RANKS: 2 3
 * FLAGS: -pthread
 * ENV: PERUSAL_COPY_ENGINE=chunks
 */
#include "check.h"
#include <pthread.h>
#include <string.h>

enum { THREADS = 3, ROUNDS = 150, EACH = 3000 };
static int memory[THREADS * EACH], rank, size;
static MPI_Win win;

static void *body(void *argument)
{
    int thread = *(int *)argument, target = (rank + 1) % size;
    static int rooms[THREADS][EACH];
    int *room = rooms[thread];
    for (int round = 0; round < ROUNDS; round++) {
        /* Of lengths that differ from thread to thread. */
        int count = 1 + (round * 37 + thread * 1009) % EACH, at = thread * EACH;
        for (int i = 0; i < count; i++) room[i] = (round * 16 + thread) * EACH + i;
        OK(MPI_Put(room, count, MPI_INT, target, at, count, MPI_INT, win));
        memset(room, 0, sizeof rooms[thread]);
        OK(MPI_Get(room, count, MPI_INT, target, at, count, MPI_INT, win));
        int wrong = 0;
        for (int i = 0; i < count; i++) wrong += room[i] != (round * 16 + thread) * EACH + i;
        SAME(wrong, 0);
    }
    return NULL;
}

int main(void)
{
    int provided, numbers[THREADS];
    pthread_t threads[THREADS];
    OK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided));
    SAME(provided, MPI_THREAD_MULTIPLE);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, body, &numbers[i]);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    OK(MPI_Finalize());
    return verdict();
}
