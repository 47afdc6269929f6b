/* A thread that probes is woken for each message, though another thread waits for one that comes last:
 * which of them runs progress, nobody knows.
 * RANKS: 2
 * ENV: PERUSAL_NAP_MS=10000
 * OPTIONS: --timeout 100
 */
#include "check.h"
#include <pthread.h>

enum { WORK = 1, REPLY = 2, STOP = 3, ROUNDS = 60 };

static void *await_stop(void *unused)
{
    OK(MPI_Recv(NULL, 0, MPI_INT, 0, STOP, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return unused;
}

int main(void)
{
    int rank, provided, value;
    OK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided));
    errors_return();
    SAME(provided, MPI_THREAD_MULTIPLE);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    if (rank == 1) {
        pthread_t thread;
        pthread_create(&thread, NULL, await_stop, NULL);
        for (int round = 0; round < ROUNDS; round++) {
            MPI_Message message;
            MPI_Status status;
            if (round % 2 == 0) {
                OK(MPI_Mprobe(0, WORK, MPI_COMM_WORLD, &message, &status));
                OK(MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
            } else {
                OK(MPI_Probe(MPI_ANY_SOURCE, WORK, MPI_COMM_WORLD, &status));
                OK(MPI_Recv(&value, 1, MPI_INT, status.MPI_SOURCE, WORK, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            }
            SAME(value, round);
            OK(MPI_Send(&value, 1, MPI_INT, 0, REPLY, MPI_COMM_WORLD));
        }
        OK(MPI_Send(NULL, 0, MPI_INT, 0, REPLY, MPI_COMM_WORLD));
        pthread_join(thread, NULL);
    } else {
        for (int round = 0; round < ROUNDS; round++) {
            OK(MPI_Send(&round, 1, MPI_INT, 1, WORK, MPI_COMM_WORLD));
            OK(MPI_Recv(&value, 1, MPI_INT, 1, REPLY, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        }
        OK(MPI_Recv(NULL, 0, MPI_INT, 1, REPLY, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Send(NULL, 0, MPI_INT, 1, STOP, MPI_COMM_WORLD));
    }
    OK(MPI_Finalize());
    return verdict();
}
