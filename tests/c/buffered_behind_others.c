/* A buffered send finds the room that messages have left which were received meanwhile,
 * though many others lie before what says so.
 * RANKS: 2
 * ENV: PERUSAL_COPY_ENGINE=read
 * FLAGS: -pthread
 */
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#ifndef SEVERAL
#define SEVERAL 0
#endif

enum { COUNT = 25000, TIMES = 20, SMALL = 100, DATA = 5, OTHER = 6, STOP = 7 };

static int rank, *received;
static int out[COUNT], in[COUNT];
static char buffer[sizeof out + MPI_BSEND_OVERHEAD];

static void *await_stop(void *unused)
{
    OK(MPI_Recv(NULL, 0, MPI_INT, 1 - rank, STOP, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return unused;
}

/* What the ranks tell each other of the end of a message they tell outside of MPI. */
static void buffered(int times, int small)
{
    int value;
    __atomic_store_n(received, 0, __ATOMIC_RELEASE);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < times; i++) {
        if (rank == 0) {
            for (int k = 0; k < COUNT; k++) out[k] = i + k;
            OK(MPI_Bsend(out, COUNT, MPI_INT, 1, DATA, MPI_COMM_WORLD));
            if (failures) MPI_Abort(MPI_COMM_WORLD, 1);
            while (__atomic_load_n(received, __ATOMIC_ACQUIRE) <= i) sched_yield();
        } else {
            for (int k = 0; k < small; k++) OK(MPI_Send(&k, 1, MPI_INT, 0, OTHER, MPI_COMM_WORLD));
            OK(MPI_Recv(in, COUNT, MPI_INT, 0, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            for (int k = 0; k < COUNT; k++)
                if (in[k] != i + k) SAME(in[k], i + k);
            __atomic_store_n(received, i + 1, __ATOMIC_RELEASE);
        }
    }
    for (int k = 0; rank == 0 && k < times * small; k++) {
        OK(MPI_Recv(&value, 1, MPI_INT, 1, OTHER, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        SAME(value, k % small);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    int provided, unit, bytes;
    MPI_Win window;
    MPI_Aint size;
    pthread_t thread;
    void *at;
    OK(MPI_Init_thread(&argc, &argv, SEVERAL ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Win_allocate_shared(rank == 0 ? sizeof(int) : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &received, &window));
    OK(MPI_Win_shared_query(window, 0, &size, &unit, &received));
    OK(MPI_Buffer_attach(buffer, sizeof buffer));
    buffered(TIMES, SMALL);
    if (SEVERAL) {
        pthread_create(&thread, NULL, await_stop, NULL);
        usleep(300000);
        buffered(10 * TIMES, 0);
        OK(MPI_Send(NULL, 0, MPI_INT, 1 - rank, STOP, MPI_COMM_WORLD));
        pthread_join(thread, NULL);
    }
    OK(MPI_Buffer_detach(&at, &bytes));
    OK(MPI_Win_free(&window));
    OK(MPI_Finalize());
    return verdict();
}
