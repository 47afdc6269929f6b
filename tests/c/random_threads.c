/* The random messages of several threads of each rank at once, some on the same communicator.
 * RANKS: 2 3
 * FLAGS: -pthread
 */
#define THREADS 4
#ifndef ROUNDS
#define ROUNDS 15
#endif
#define OWN_MAIN
#include "random_messages.c"
#include <pthread.h>

int main(int argc, char **argv)
{
    static struct worker worker[THREADS];
    pthread_t thread[THREADS];
    int provided, size = THREADS * MESSAGES * (LARGEST + MPI_BSEND_OVERHEAD);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    SAME(provided, MPI_THREAD_MULTIPLE);
    void *buffer = malloc((size_t)size);
    OK(MPI_Buffer_attach(buffer, size));
    for (int i = 0; i < THREADS; i++) make(&worker[i], i);
    for (int i = 0; i < THREADS; i++) pthread_create(&thread[i], NULL, work, &worker[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < THREADS; i++)
        for (int j = 1; j < COMMS; j++) OK(MPI_Comm_free(&worker[i].comm[j]));
    OK(MPI_Buffer_detach(&buffer, &size));
    free(buffer);
    MPI_Finalize();
    return verdict();
}
