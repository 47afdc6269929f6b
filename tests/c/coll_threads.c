/* Threads of a rank in collectives at the same time, each on a communicator of its own; communicators made by threads.
 * RANKS: 2 3
 * FLAGS: -pthread
 */
#include "check.h"
#include <pthread.h>

enum { THREADS = 3, ROUNDS = 200 };
static int rank, size;

static void *body(void *argument) {
    MPI_Comm comm = *(MPI_Comm *)argument, dup;
    int r, sum, data[500], last = -1;
    MPI_Request requests[2];
    OK(MPI_Comm_rank(comm, &r));
    for (int round = 0; round < ROUNDS; round++) {
        int mine = r + round, root = round % size;
        OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm));
        SAME(sum, size * round + size * (size - 1) / 2);
        for (int i = 0; i < 500; i++) data[i] = r == root ? round + i : -1;
        OK(MPI_Ibcast(data, 500, MPI_INT, root, comm, &requests[0]));
        OK(MPI_Iscan(&mine, &last, 1, MPI_INT, MPI_MAX, comm, &requests[1]));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        SAME(data[499], round + 499);
        SAME(last, mine);
        if (round % 50 == 0) {
            OK(MPI_Comm_dup(comm, &dup));
            OK(MPI_Barrier(dup));
            OK(MPI_Comm_free(&dup));
        }
    }
    return NULL;
}

int main(void) {
    int provided;
    pthread_t threads[THREADS];
    MPI_Comm comms[THREADS];
    OK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided));
    SAME(provided, MPI_THREAD_MULTIPLE);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    for (int i = 0; i < THREADS; i++) OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, body, &comms[i]) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) OK(MPI_Comm_free(&comms[i]));
    OK(MPI_Finalize());
    return verdict();
}
