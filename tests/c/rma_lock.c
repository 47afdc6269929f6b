/* Locks: mutual exclusion, shared locks, counters under lock_all, requests, flushes (MPI 5.0 section 12.5.3).
 * RANKS: 1 2 3 4
 */
#include "check.h"

static int rank, size;

enum { ROUNDS = 200 };

/* What is read, changed and written back under an exclusive lock is not lost. */
static void exclusion(MPI_Win win, long *base, int assert_, int target) {
    long value, last = -1;
    *base = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < ROUNDS; i++) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, assert_, win));
        OK(MPI_Get(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, win));
        OK(MPI_Win_flush(target, win));
        CHECK(value >= last);
        value++;
        OK(MPI_Put(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, win));
        OK(MPI_Win_unlock(target, win));
        last = value;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    OK(MPI_Get(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, win));
    OK(MPI_Win_unlock(target, win));
    SAME(value, (long)size * ROUNDS);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Writers change two words together; readers under a shared lock see them equal. */
static void readers_and_writers(MPI_Win win, long *base) {
    long pair[2];
    base[0] = base[1] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < ROUNDS; i++) {
        int target = i % size, writes = (i + rank) % 4 == 0;
        OK(MPI_Win_lock(writes ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, win));
        OK(MPI_Get(pair, 2, MPI_LONG, target, 0, 2, MPI_LONG, win));
        OK(MPI_Win_flush_local(target, win));
        SAME(pair[0], pair[1]);
        if (writes) {
            for (int at = 0; at < 2; at++) {
                pair[at]++;
                OK(MPI_Put(&pair[at], 1, MPI_LONG, target, at, 1, MPI_LONG, win));
                OK(MPI_Win_flush(target, win));
            }
        }
        OK(MPI_Win_unlock(target, win));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    long expected = 0, seen = base[0];
    for (int i = 0; i < ROUNDS; i++)
        for (int from = 0; from < size; from++) expected += i % size == rank && (i + from) % 4 == 0;
    OK(MPI_Win_unlock(rank, win));
    SAME(seen, expected);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Shared locks alone, held by many at once: none is granted twice or never. */
static void shared_alone(MPI_Win win, long *base) {
    long one = 1, old, sum, all;
    *base = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 10 * ROUNDS; i++) {
        int target = i % 3 == 0 ? 0 : (i * 7 + rank) % size;
        OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
        OK(MPI_Fetch_and_op(&one, &old, MPI_LONG, target, 0, MPI_SUM, win));
        OK(MPI_Win_unlock(target, win));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    sum = *base;
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Allreduce(&sum, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    SAME(all, (long)size * 10 * ROUNDS);
}

/* All take numbers from one counter; each number is given out once. */
static void counter(MPI_Win win, long *base) {
    long one = 1, number, sum = 0, all, last = -1;
    *base = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < ROUNDS; i++) {
        OK(MPI_Fetch_and_op(&one, &number, MPI_LONG, 0, 0, MPI_SUM, win));
        OK(MPI_Win_flush(0, win));
        CHECK(number > last);
        last = number;
        sum += number;
    }
    OK(MPI_Win_flush_all(win));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Allreduce(&sum, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    long n = (long)size * ROUNDS;
    SAME(all, n * (n - 1) / 2);
    if (rank == 0) SAME(*base, n);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Several targets are locked at once, in an order of each rank's own that is the same for all. */
static void several_at_once(MPI_Win win, long *base) {
    long value;
    *base = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < ROUNDS / 4; i++) {
        for (int to = 0; to < size; to++) OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win));
        for (int to = 0; to < size; to++) {
            OK(MPI_Get(&value, 1, MPI_LONG, to, 0, 1, MPI_LONG, win));
            OK(MPI_Win_flush_local_all(win));
            value++;
            OK(MPI_Put(&value, 1, MPI_LONG, to, 0, 1, MPI_LONG, win));
        }
        for (int to = size - 1; to >= 0; to--) OK(MPI_Win_unlock(to, win));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    SAME(*base, size * (ROUNDS / 4));
    OK(MPI_Win_unlock(rank, win));
    MPI_Barrier(MPI_COMM_WORLD);
}

static void requests(MPI_Win win, long *base) {
    MPI_Request request[5];
    MPI_Status statuses[5], status;
    long sent = rank + 100, got = -1, old = -1, one = 1;
    int next = (rank + 1) % size, flag, done;
    for (int i = 0; i < 4; i++) base[i] = 10 + i;
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    OK(MPI_Rput(&sent, 1, MPI_LONG, next, 0, 1, MPI_LONG, win, &request[0]));
    OK(MPI_Rget(&got, 1, MPI_LONG, next, 1, 1, MPI_LONG, win, &request[1]));
    OK(MPI_Raccumulate(&one, 1, MPI_LONG, next, 2, 1, MPI_LONG, MPI_SUM, win, &request[2]));
    OK(MPI_Rget_accumulate(&one, 1, MPI_LONG, &old, 1, MPI_LONG, next, 3, 1, MPI_LONG, MPI_SUM, win, &request[3]));
    OK(MPI_Rput_c(&sent, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, win, &request[4]));
    for (int i = 0; i < 5; i++) CHECK(request[i] != MPI_REQUEST_NULL);
    OK(MPI_Waitall(5, request, statuses));
    for (int i = 0; i < 5; i++) CHECK(request[i] == MPI_REQUEST_NULL);
    SAME(got, 11);
    SAME(old, 13);
    OK(MPI_Rget_c(&got, 1, MPI_LONG, next, 0, 1, MPI_LONG, win, &request[0]));
    OK(MPI_Test(&request[0], &flag, &status));
    CHECK(flag);
    SAME(got, sent);
    OK(MPI_Rget(&got, 1, MPI_LONG, next, 1, 1, MPI_LONG, win, &request[0]));
    OK(MPI_Raccumulate_c(&one, 1, MPI_LONG, next, 2, 1, MPI_LONG, MPI_SUM, win, &request[1]));
    OK(MPI_Waitany(2, request, &done, MPI_STATUS_IGNORE));
    OK(MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
    OK(MPI_Rget_accumulate_c(NULL, 0, MPI_DATATYPE_NULL, &old, 1, MPI_LONG, next, 2, 1, MPI_LONG, MPI_NO_OP, win, &request[0]));
    OK(MPI_Request_free(&request[0]));
    OK(MPI_Win_unlock_all(win));
    SAME(old, 14);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    SAME(base[0], (rank + size - 1) % size + 100);
    SAME(base[2], 14);
    SAME(base[3], 14);
    OK(MPI_Win_unlock(rank, win));
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A ping-pong of flags without any call at the target but Win_sync. */
static void flags(MPI_Win win, long *base) {
    long value;
    int next = (rank + 1) % size;
    *base = -1;
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_Win_lock_all(0, win));
    for (long i = 0; i < 50; i++) {
        if (rank == 0) OK(MPI_Accumulate(&i, 1, MPI_LONG, next, 0, 1, MPI_LONG, MPI_REPLACE, win));
        do {
            OK(MPI_Fetch_and_op(NULL, &value, MPI_LONG, rank, 0, MPI_NO_OP, win));
            OK(MPI_Win_flush(rank, win));
        } while (value != i);
        if (rank != 0) OK(MPI_Accumulate(&i, 1, MPI_LONG, next, 0, 1, MPI_LONG, MPI_REPLACE, win));
        OK(MPI_Win_sync(win));
    }
    OK(MPI_Win_unlock_all(win));
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int kind = 0; kind < 2; kind++) {
        MPI_Win win;
        long own[4], *base = own;
        if (kind == 0)
            OK(MPI_Win_allocate(sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        else
            OK(MPI_Win_create(own, sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        exclusion(win, base, 0, 0);
        exclusion(win, base, 0, size - 1);
        readers_and_writers(win, base);
        shared_alone(win, base);
        counter(win, base);
        several_at_once(win, base);
        requests(win, base);
        flags(win, base);
        OK(MPI_Win_lock(MPI_LOCK_SHARED, MPI_PROC_NULL, 0, win));
        OK(MPI_Win_flush(MPI_PROC_NULL, win));
        OK(MPI_Win_unlock(MPI_PROC_NULL, win));
        OK(MPI_Win_free(&win));
    }
    MPI_Finalize();
    return verdict();
}
