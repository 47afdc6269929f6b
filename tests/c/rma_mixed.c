/* Updates of one value beside updates of many: the first are instructions until the others begin (MPI 5.0 section
 * 12.7.1).
 * RANKS: 2 3 8
 */
#include "check.h"

enum { N = 300, ROUNDS = 2000, AT = 5 };

int main(void) {
    int rank, size;
    long *base, ones[N], got, last = -1, twice = 0;
    MPI_Win win;
    MPI_Init(NULL, NULL);
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < N; i++) ones[i] = 1;
    OK(MPI_Win_allocate(N * sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < ROUNDS; i++) {
        /* The last rank begins with many values at half way, each rank with its own share of them. */
        int many = i > ROUNDS / 2 + (size - 1 - rank) * 100 && i % 3 == rank % 3;
        if (many) {
            OK(MPI_Accumulate(ones, N, MPI_LONG, 0, 0, N, MPI_LONG, MPI_SUM, win));
        } else {
            OK(MPI_Fetch_and_op(ones, &got, MPI_LONG, 0, AT, MPI_SUM, win));
            /* It only grows. */
            CHECK(got > last);
            last = got;
        }
        twice += many;
    }
    OK(MPI_Win_unlock_all(win));
    long all, others;
    OK(MPI_Reduce(&twice, &others, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD));
    all = (long)size * ROUNDS;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        SAME(base[AT], all);
        SAME(base[AT + 1], others);
        OK(MPI_Win_unlock(0, win));
    }
    OK(MPI_Win_free(&win));
    MPI_Finalize();
    return verdict();
}
