/* A buffered send finds the room that messages have left which were received meanwhile,
 * though their sender has called nothing of MPI since.
 * RANKS: 2
 * ENV: PERUSAL_COPY_ENGINE=read
 */
#define _GNU_SOURCE
#include "check.h"
#include <sched.h>

enum { COUNT = 25000, TIMES = 20 };

int main(int argc, char **argv)
{
    static int out[COUNT], in[COUNT];
    static char buffer[sizeof out + MPI_BSEND_OVERHEAD];
    int rank, *received;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win window;
    OK(MPI_Win_allocate_shared(rank == 0 ? sizeof(int) : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &received, &window));
    MPI_Aint size;
    int unit;
    OK(MPI_Win_shared_query(window, 0, &size, &unit, &received));
    *(volatile int *)received = 0;
    OK(MPI_Buffer_attach(buffer, sizeof buffer));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < TIMES; i++) {
        if (rank == 0) {
            for (int k = 0; k < COUNT; k++) out[k] = i + k;
            OK(MPI_Bsend(out, COUNT, MPI_INT, 1, 5, MPI_COMM_WORLD));
            while (__atomic_load_n(received, __ATOMIC_ACQUIRE) <= i) sched_yield();
        } else {
            OK(MPI_Recv(in, COUNT, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            for (int k = 0; k < COUNT; k++)
                if (in[k] != i + k) SAME(in[k], i + k);
            __atomic_store_n(received, i + 1, __ATOMIC_RELEASE);
        }
    }
    void *at;
    int bytes;
    OK(MPI_Buffer_detach(&at, &bytes));
    OK(MPI_Win_free(&window));
    MPI_Finalize();
    return verdict();
}
