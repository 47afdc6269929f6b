/* With a progress thread, operations end while the program is in no MPI call. A rank learns by memory that others see,
 * not by MPI, that they have ended.
 * RANKS: 2 3 4
 * ENV: PERUSAL_PROGRESS_THREAD=on
 */
#include "check.h"
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { MANY = 1 << 18 };
static int rank, size;
static atomic_int *flags;

/* Every rank has got here; no rank is in MPI meanwhile. */
static void meet(void)
{
    static int round;
    round++;
    atomic_store(flags + rank, round);
    for (int r = 0; r < size; r++)
        while (atomic_load(flags + r) < round) usleep(100);
}

/* Whoever calls this computes until element `at` is what it should be. */
static void until(volatile int *value, int wanted)
{
    while (*value != wanted) usleep(100);
}

int main(int argc, char **argv)
{
    static int own[MANY], got[MANY], all[4 * MANY];
    int level, unit;
    MPI_Win window;
    MPI_Aint bytes;
    MPI_Request request;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &level));
    CHECK(level == MPI_THREAD_SINGLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_Win_allocate_shared(rank ? 0 : 64 * sizeof *flags, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &flags, &window));
    OK(MPI_Win_shared_query(window, 0, &bytes, &unit, &flags));

    for (int round = 0; round < 20; round++) {
        int n = round % 2 ? MANY : 3;
        /* Of many steps, by messages (persistent) and through shared memory. */
        for (int i = 0; i < n; i++) own[i] = rank + i, got[i] = -1;
        OK(MPI_Iallreduce(own, got, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request));
        until(got + n - 1, size * (size - 1) / 2 + size * (n - 1));
        meet();
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        for (int i = 0; i < n; i++) SAME(got[i], size * (size - 1) / 2 + size * i);

        memset(all, -1, sizeof all);
        OK(MPI_Allgather_init(own, n, MPI_INT, all, n, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        OK(MPI_Start(&request));
        for (int r = 0; r < size; r++) until(all + r * n + n - 1, r + n - 1);
        meet();
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Request_free(&request));
        for (int r = 0; r < size; r++) for (int i = 0; i < n; i++) SAME(all[r * n + i], r + i);

        /* A message for whose data the receiver must ask. */
        int next = (rank + 1) % size, before = (rank + size - 1) % size;
        MPI_Request both[2];
        for (int i = 0; i < n; i++) got[i] = -1;
        OK(MPI_Isend(own, n, MPI_INT, next, 1, MPI_COMM_WORLD, both));
        OK(MPI_Irecv(got, n, MPI_INT, before, 1, MPI_COMM_WORLD, both + 1));
        until(got + n - 1, before + n - 1);
        meet();
        OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
        for (int i = 0; i < n; i++) SAME(got[i], before + i);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_Win_free(&window));
    OK(MPI_Finalize());
    return verdict();
}
