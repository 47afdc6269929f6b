/* Shared windows: one area or a part for each rank, loads and stores beside operations,
 * MPI_Win_sync (MPI 5.0 section 12.2.3).
 * RANKS: 2 4
 */
#include "check.h"
#include <stdatomic.h>
#include <stdint.h>

static int rank, size;

/* Each has as many longs as its rank, so that the first has none. */
static MPI_Aint longs_of(int who) { return who * 3; }

static void parts(MPI_Comm comm, int apart) {
    MPI_Win win;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Aint bytes;
    int unit;
    long *base, *at, *first, *expected = NULL;
    if (apart) {
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "alloc_shared_noncontig", "true"));
    }
    OK(MPI_Win_allocate_shared(longs_of(rank) * sizeof(long), 8 << rank % 2, info, comm, &base, &win));
    if (apart) OK(MPI_Info_free(&info));
    OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &first));
    SAME(bytes, 3 * sizeof(long));
    SAME(unit, 16);
    for (int who = 0; who < size; who++) {
        MPI_Aint wide;
        OK(MPI_Win_shared_query(win, who, &bytes, &unit, &at));
        SAME(bytes, longs_of(who) * sizeof(long));
        SAME(unit, 8 << who % 2);
        OK(MPI_Win_shared_query_c(win, who, &bytes, &wide, &at));
        SAME(wide, unit);
        if (who == 1) CHECK(at == first);
        if (who == rank && bytes) CHECK(at == base);
        if (!apart && who >= 1) {
            if (expected) CHECK(at == expected);
            expected = at + longs_of(who);
        }
        if (apart) CHECK(bytes ? (uintptr_t)at % 64 == 0 : at == NULL);
        else CHECK(at != NULL);
    }
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    for (int i = 0; i < longs_of(rank); i++) {
        CHECK(base[i] == 0);
        base[i] = rank * 100 + i;
    }
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(comm));
    OK(MPI_Win_sync(win));
    for (int who = 0; who < size; who++) {
        long got[64] = {0};
        OK(MPI_Win_shared_query(win, who, &bytes, &unit, &at));
        OK(MPI_Get(got, longs_of(who), MPI_LONG, who, 0, longs_of(who), MPI_LONG, win));
        OK(MPI_Win_flush(who, win));
        for (int i = 0; i < longs_of(who); i++) {
            SAME(at[i], who * 100 + i);
            SAME(got[i], at[i]);
        }
    }
    OK(MPI_Barrier(comm));
    /* What operations change, loads see. */
    long one = 1;
    for (int who = 1; who < size; who++) {
        OK(MPI_Win_shared_query(win, who, &bytes, &unit, &at));
        OK(MPI_Accumulate(&one, 1, MPI_LONG, who, 0, 1, MPI_LONG, MPI_SUM, win));
    }
    OK(MPI_Win_flush_all(win));
    OK(MPI_Barrier(comm));
    OK(MPI_Win_sync(win));
    for (int who = 1; who < size; who++) {
        OK(MPI_Win_shared_query(win, who, &bytes, &unit, &at));
        SAME(at[0], who * 100 + size);
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
}

/* Nobody has memory. */
static void nothing(MPI_Comm comm) {
    MPI_Win win;
    MPI_Aint bytes = 1;
    int unit, *base;
    OK(MPI_Win_allocate_shared(0, 1, MPI_INFO_NULL, comm, &base, &win));
    OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &base));
    SAME(bytes, 0);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_free(&win));
}

/* Only the first has memory, which all use: as textbooks have it. */
static void one_table(MPI_Comm comm) {
    enum { N = 100000 };
    MPI_Win win;
    MPI_Aint bytes;
    int unit;
    double *table, sum = 0;
    OK(MPI_Win_allocate_shared(rank == 0 ? N * sizeof *table : 0, sizeof *table, MPI_INFO_NULL, comm, &table, &win));
    OK(MPI_Win_shared_query(win, 0, &bytes, &unit, &table));
    SAME(bytes, N * sizeof *table);
    OK(MPI_Win_fence(0, win));
    for (int i = rank; i < N; i += size) table[i] = i;
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < N; i++) sum += table[i];
    CHECK(sum == (double)N * (N - 1) / 2);
    OK(MPI_Win_free(&win));
}

/* A flag in shared memory, with processor atomics and Win_sync alone. */
static void flags(MPI_Comm comm) {
    MPI_Win win;
    MPI_Aint bytes;
    int unit;
    struct { atomic_int flag; int value; } *mine, *theirs;
    OK(MPI_Win_allocate_shared(sizeof *mine, 1, MPI_INFO_NULL, comm, &mine, &win));
    OK(MPI_Win_shared_query(win, (rank + 1) % size, &bytes, &unit, &theirs));
    OK(MPI_Win_lock_all(0, win));
    for (int i = 1; i <= 100; i++) {
        theirs->value = i * 10 + rank;
        OK(MPI_Win_sync(win));
        atomic_store_explicit(&theirs->flag, i, memory_order_relaxed);
        while (atomic_load_explicit(&mine->flag, memory_order_relaxed) != i) OK(MPI_Win_sync(win));
        OK(MPI_Win_sync(win));
        SAME(mine->value, i * 10 + (rank + size - 1) % size);
        OK(MPI_Barrier(comm));
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
}

/* Windows of other flavors can be asked too (MPI 4.1); memory that is private to its process has size 0. */
static void other_flavors(void) {
    MPI_Win win;
    MPI_Aint bytes;
    int unit, *base, *at, own[4] = {1, 2, 3, 4};
    OK(MPI_Win_allocate(sizeof own, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    base[0] = rank + 50;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_shared_query(win, (rank + 1) % size, &bytes, &unit, &at));
    SAME(bytes, sizeof own);
    SAME(unit, sizeof(int));
    SAME(at[0], (rank + 1) % size + 50);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_free(&win));
    OK(MPI_Win_create(own, sizeof own, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_shared_query(win, rank, &bytes, &unit, &at));
    SAME(bytes, sizeof own);
    CHECK(at == own);
    OK(MPI_Win_shared_query(win, (rank + 1) % size, &bytes, &unit, &at));
    SAME(bytes, 0);
    SAME(unit, sizeof(int));
    CHECK(at == NULL);
    OK(MPI_Win_free(&win));
}

/* Memory of MPI_Alloc_mem is in a window what it is elsewhere: large parts of it are shared. */
static void of_alloc_mem(void) {
    enum { BYTES = 1 << 20 };
    MPI_Win win;
    long *base, value = rank;
    OK(MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &base));
    OK(MPI_Win_create(base, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_LONG, (rank + 1) % size, BYTES - sizeof value, 1, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    SAME(base[BYTES / sizeof *base - 1], (rank + size - 1) % size);
    OK(MPI_Win_free(&win));
    OK(MPI_Free_mem(base));
}

int main(int argc, char **argv) {
    MPI_Comm comm;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm));
    for (int i = 0; i < 3; i++) {
        parts(comm, 0);
        parts(comm, 1);
    }
    nothing(comm);
    one_table(comm);
    flags(comm);
    other_flavors();
    of_alloc_mem();
    OK(MPI_Comm_free(&comm));
    MPI_Finalize();
    return verdict();
}
