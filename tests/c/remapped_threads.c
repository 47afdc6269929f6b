/* Threads send and receive buffers that lie side by side, so that two of them share a page, and store into what lies
 * between: nothing of it is lost while the library remaps them.
 * RANKS: 2
 * ENV: PERUSAL_COPY_REMAP_AFTER=3
 * FLAGS: -pthread
 */
#include "remapped.h"
#include <pthread.h>

enum { THREADS = 4, BYTES = 280001, BETWEEN = 301, ROUNDS = 24 };

static int rank, peer;
static unsigned char *block;

static void *work(void *number)
{
    int thread = (int)(intptr_t)number, bad = 0, lost = 0;
    unsigned char *buffer = block + (long)thread * (BYTES + BETWEEN), *between = buffer + BYTES;
    for (int i = 0; i < ROUNDS; i++) {
        int sends = (i + rank) % 2 == 0;
        unsigned char value = (unsigned char)(i * 5 + thread * 50);
        MPI_Request request;
        memset(buffer, sends ? value : 0xee, BYTES);
        if (sends) OK(MPI_Isend(buffer, BYTES, MPI_BYTE, peer, thread, MPI_COMM_WORLD, &request));
        else OK(MPI_Irecv(buffer, BYTES, MPI_BYTE, peer, thread, MPI_COMM_WORLD, &request));
        /* The bytes between two buffers are this thread's at any time. */
        int done = 0;
        for (unsigned step = 0; !done; step++) {
            memset(between, (int)step, BETWEEN);
            OK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
            for (int at = 0; at < BETWEEN; at++) lost += between[at] != (unsigned char)step;
        }
        for (int at = 0; at < BYTES; at++) bad += buffer[at] != value;
    }
    SAME(bad, 0);
    SAME(lost, 0);
    return NULL;
}

int main(void)
{
    int provided;
    pthread_t threads[THREADS];
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    peer = 1 - rank;
    block = malloc(THREADS * (long)(BYTES + BETWEEN));
    for (intptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS && can_remap(); i++)
        CHECK(is_remapped(block + (long)i * (BYTES + BETWEEN) + BYTES / 2));
    free(block);
    MPI_Finalize();
    return verdict();
}
