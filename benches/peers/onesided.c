/* onesided.c: windows of MPI_Win_allocate: puts, gets and atomic operations of 8 bytes, bandwidth,
 * and synchronisation. */
#include "bench.h"
#include <stdlib.h>
#include <string.h>

enum { LARGE = 1 << 20, ACCUMULATED = 64 << 10, PIECE = 64, MOMENTS = 7 };

static MPI_Win win;
static long *base;
static double *large;
static MPI_Datatype strided;

static void put(long n, void *argument)
{
    long word = *(long *)argument;
    if (bench_rank != 1) return;
    for (long i = 0; i < n; i++) {
        MPI_Put(&word, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
        MPI_Win_flush(0, win);
    }
}

static void get(long n, void *argument)
{
    long word;
    (void)argument;
    if (bench_rank != 1) return;
    for (long i = 0; i < n; i++) {
        MPI_Get(&word, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
        MPI_Win_flush(0, win);
    }
}

static void lock_put_unlock(long n, void *argument)
{
    long word = *(long *)argument;
    if (bench_rank != 1) return;
    for (long i = 0; i < n; i++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Put(&word, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
        MPI_Win_unlock(0, win);
    }
}

/* `argument`: how many ranks do it. */
static void fetch_and_op(long n, void *argument)
{
    long one = 1, old;
    if (bench_rank < 2 - *(int *)argument) return;
    for (long i = 0; i < n; i++) {
        MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 0, MPI_SUM, win);
        MPI_Win_flush(0, win);
    }
}

static void compare_and_swap(long n, void *argument)
{
    long old = 0, next, seen;
    if (bench_rank < 2 - *(int *)argument) return;
    for (long i = 0; i < n; i++) {
        next = old + 1;
        MPI_Compare_and_swap(&next, &old, &seen, MPI_LONG, 0, 0, win);
        MPI_Win_flush(0, win);
        old = seen == old ? next : seen;
    }
}

/* `argument`: the type of the whole at both sides. */
static void put_large(long n, void *argument)
{
    MPI_Datatype type = *(MPI_Datatype *)argument;
    int count = type == MPI_BYTE ? LARGE : 1;
    if (bench_rank != 1) return;
    for (long i = 0; i < n; i++) {
        MPI_Put(large, count, type, 0, 0, count, type, win);
        MPI_Win_flush(0, win);
    }
}

static void get_large(long n, void *argument)
{
    (void)argument;
    if (bench_rank != 1) return;
    for (long i = 0; i < n; i++) {
        MPI_Get(large, LARGE, MPI_BYTE, 0, 0, LARGE, MPI_BYTE, win);
        MPI_Win_flush(0, win);
    }
}

static void accumulate(long n, void *argument)
{
    int count = ACCUMULATED / (int)sizeof(double);
    (void)argument;
    if (bench_rank != 1) return;
    for (long i = 0; i < n; i++) {
        MPI_Accumulate(large, count, MPI_DOUBLE, 0, 0, count, MPI_DOUBLE, MPI_SUM, win);
        MPI_Win_flush(0, win);
    }
}

static void fence(long n, void *argument)
{
    (void)argument;
    for (long i = 0; i < n; i++) MPI_Win_fence(0, win);
}

struct neighbours { MPI_Group left, right; };

/* Each rank exposes its memory to its left neighbour and puts a word to its right one. */
static void post_start_complete_wait(long n, void *argument)
{
    const struct neighbours *ring = argument;
    long word = bench_rank;
    for (long i = 0; i < n; i++) {
        MPI_Win_post(ring->left, 0, win);
        MPI_Win_start(ring->right, 0, win);
        MPI_Put(&word, 1, MPI_LONG, (bench_rank + 1) % bench_size, 0, 1, MPI_LONG, win);
        MPI_Win_complete(win);
        MPI_Win_wait(win);
    }
}

/* A lock, a put and an unlock while the target computes for 50 ms and calls nothing of MPI. */
static double while_computing(void *argument)
{
    double took[MOMENTS], start;
    long word = *(long *)argument;
    for (int i = 0; i < MOMENTS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        start = bench_now();
        if (bench_rank == 0) {
            while (bench_now() - start < 0.05) continue;
        } else {
            /* The target has left the barrier. */
            while (bench_now() - start < 0.002) continue;
            start = bench_now();
            MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
            MPI_Put(&word, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
            MPI_Win_unlock(0, win);
        }
        took[i] = bench_now() - start;
        MPI_Bcast(&took[i], 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    }
    return bench_median(took, MOMENTS);
}

static void make(MPI_Aint bytes)
{
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    bench_fill(base, (size_t)bytes);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* rma/…, two ranks: microseconds of an operation that is complete at its target; rma-bandwidth/…: GB/s;
 * rma-accumulate: thousands a second. */
void metric_onesided(void)
{
    long word = 7;
    int one = 1, both = 2;
    MPI_Datatype bytes = MPI_BYTE;
    const struct { const char *name; bench_body *body; void *argument; } small[] = {
        {"rma/put-8", put, &word}, {"rma/get-8", get, NULL},
        {"rma/fetch-and-op", fetch_and_op, &one}, {"rma/compare-and-swap", compare_and_swap, &one},
        {"rma/contended-fetch-and-op", fetch_and_op, &both}, {"rma/contended-compare-and-swap", compare_and_swap, &both},
    };
    const struct { const char *name; bench_body *body; void *argument; } large_ones[] = {
        {"rma-bandwidth/put", put_large, &bytes}, {"rma-bandwidth/get", get_large, NULL}, {"rma-bandwidth/strided-put", put_large, &strided},
    };
    make(2 * LARGE);
    large = bench_buffer(2 * LARGE);
    /* Every second piece. */
    MPI_Type_vector(LARGE / PIECE, PIECE, 2 * PIECE, MPI_BYTE, &strided);
    MPI_Type_commit(&strided);
    MPI_Win_lock_all(0, win);
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        bench_result(bench_measure(MPI_COMM_WORLD, small[i].body, small[i].argument, 0.15) * 1e6, "%s", small[i].name);
    for (size_t i = 0; i < sizeof large_ones / sizeof *large_ones; i++)
        bench_result(LARGE / bench_measure(MPI_COMM_WORLD, large_ones[i].body, large_ones[i].argument, 0.2) * 1e-9, "%s", large_ones[i].name);
    memset(base, 0, 2 * LARGE);
    bench_result(1e-3 / bench_measure(MPI_COMM_WORLD, accumulate, NULL, 0.15), "rma-accumulate/65536");
    MPI_Win_unlock_all(win);
    bench_result(bench_measure(MPI_COMM_WORLD, lock_put_unlock, &word, 0.15) * 1e6, "rma/lock-put-unlock");
    bench_result(bench_steady(while_computing, &word) * 1e6, "rma/while-computing");
    MPI_Type_free(&strided);
    MPI_Win_free(&win);
}

/* rma-sync/KIND-RANKS: microseconds. */
void metric_onesided_sync(void)
{
    struct neighbours ring;
    MPI_Group world;
    int left = (bench_rank + bench_size - 1) % bench_size, right = (bench_rank + 1) % bench_size;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &left, &ring.left);
    MPI_Group_incl(world, 1, &right, &ring.right);
    make(4096);
    MPI_Win_fence(0, win);
    bench_result(bench_measure(MPI_COMM_WORLD, fence, NULL, 0.15) * 1e6, "rma-sync/fence-%d", bench_size);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    bench_result(bench_measure(MPI_COMM_WORLD, post_start_complete_wait, &ring, 0.15) * 1e6, "rma-sync/pscw-%d", bench_size);
    MPI_Group_free(&world);
    MPI_Group_free(&ring.left);
    MPI_Group_free(&ring.right);
    MPI_Win_free(&win);
}
