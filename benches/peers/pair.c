/* pair.c: latency, bandwidth, message rate. The lower half of the ranks talks to the upper half, rank by rank. */
#include "bench.h"
#include <stdlib.h>

enum { TAG = 7, WINDOW = 64, MOST = 4 << 20, ROOM = 16 << 20 };
static const int sizes[] = {0, 8, 64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20};
enum { SIZES = sizeof sizes / sizeof *sizes };

struct pair {
    int low, peer, bytes, window;
    char *out, *in;
};

static struct pair make(size_t room, void *(*buffer)(size_t))
{
    int half = bench_size / 2, low = bench_rank < half;
    struct pair pair = {low, low ? bench_rank + half : bench_rank - half, 0, WINDOW, NULL, NULL};
    pair.out = buffer(room);
    pair.in = buffer(room);
    return pair;
}

static void ping_pong(long n, void *argument)
{
    struct pair *pair = argument;
    for (long i = 0; i < n; i++) {
        if (pair->low) MPI_Send(pair->out, pair->bytes, MPI_BYTE, pair->peer, TAG, MPI_COMM_WORLD);
        MPI_Recv(pair->in, pair->bytes, MPI_BYTE, pair->peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!pair->low) MPI_Send(pair->out, pair->bytes, MPI_BYTE, pair->peer, TAG, MPI_COMM_WORLD);
    }
}

/* latency[-Npairs]/BYTES: microseconds one way. More than one pair: 8 bytes alone. */
void metric_latency(void)
{
    struct pair pair = make(MOST, bench_buffer);
    int pairs = bench_size / 2;
    for (int i = 0; i < SIZES; i++) {
        if (pairs > 1 && sizes[i] != 8) continue;
        pair.bytes = sizes[i];
        double took = bench_measure(MPI_COMM_WORLD, ping_pong, &pair, 0.06);
        if (pairs > 1)
            bench_result(took / 2 * 1e6, "latency-%dpairs/8", pairs);
        else
            bench_result(took / 2 * 1e6, "latency/%d", sizes[i]);
    }
}

/* Windows of messages, each to a place of its own, and an answer when all are there. */
static void one_way(long n, void *argument)
{
    struct pair *pair = argument;
    MPI_Request requests[WINDOW];
    for (long i = 0; i < n; i++) {
        for (int j = 0; j < pair->window; j++) {
            size_t at = (size_t)j * (size_t)pair->bytes;
            if (pair->low)
                MPI_Isend(pair->out + at, pair->bytes, MPI_BYTE, pair->peer, TAG, MPI_COMM_WORLD, &requests[j]);
            else
                MPI_Irecv(pair->in + at, pair->bytes, MPI_BYTE, pair->peer, TAG, MPI_COMM_WORLD, &requests[j]);
        }
        MPI_Waitall(pair->window, requests, MPI_STATUSES_IGNORE);
        if (pair->low)
            MPI_Recv(pair->in, 0, MPI_BYTE, pair->peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(pair->out, 0, MPI_BYTE, pair->peer, TAG, MPI_COMM_WORLD);
    }
}

static void both_ways(long n, void *argument)
{
    struct pair *pair = argument;
    MPI_Request requests[2 * WINDOW];
    for (long i = 0; i < n; i++) {
        for (int j = 0; j < pair->window; j++) {
            size_t at = (size_t)j * (size_t)pair->bytes;
            MPI_Irecv(pair->in + at, pair->bytes, MPI_BYTE, pair->peer, TAG, MPI_COMM_WORLD, &requests[2 * j]);
            MPI_Isend(pair->out + at, pair->bytes, MPI_BYTE, pair->peer, TAG, MPI_COMM_WORLD, &requests[2 * j + 1]);
        }
        MPI_Waitall(2 * pair->window, requests, MPI_STATUSES_IGNORE);
    }
}

/* Sizes at which copying outweighs the envelope. */
static int next_large(struct pair *pair, int *at)
{
    while (*at < SIZES && sizes[*at] < 4 << 10) ++*at;
    if (*at == SIZES) return 0;
    pair->bytes = sizes[(*at)++];
    pair->window = ROOM / pair->bytes < WINDOW ? ROOM / pair->bytes : WINDOW;
    return 1;
}

/* GB that a window moves. */
static double moved(const struct pair *pair) { return (double)pair->bytes * pair->window * 1e-9; }

/* bandwidth/BYTES and bidirectional/BYTES: GB/s, of both directions together. */
void metric_bandwidth(void)
{
    struct pair pair = make(ROOM, bench_buffer);
    for (int at = 0; next_large(&pair, &at);) {
        bench_result(moved(&pair) / bench_measure(MPI_COMM_WORLD, one_way, &pair, 0.08), "bandwidth/%d", pair.bytes);
        bench_result(2 * moved(&pair) / bench_measure(MPI_COMM_WORLD, both_ways, &pair, 0.08), "bidirectional/%d", pair.bytes);
    }
}

static void large_latency(struct pair pair, const char *name)
{
    for (int at = 0; next_large(&pair, &at);)
        bench_result(bench_measure(MPI_COMM_WORLD, ping_pong, &pair, 0.06) / 2 * 1e6, "%s/%d", name, pair.bytes);
}

static void large_bandwidth(struct pair pair, const char *name)
{
    for (int at = 0; next_large(&pair, &at);)
        bench_result(moved(&pair) / bench_measure(MPI_COMM_WORLD, one_way, &pair, 0.08), "%s/%d", name, pair.bytes);
}

/* latency-shared/BYTES: as latency, both buffers from MPI_Alloc_mem. */
void metric_latency_shared(void)
{
    struct pair pair = make(MOST, bench_alloc_mem);
    large_latency(pair, "latency-shared");
    MPI_Free_mem(pair.out);
    MPI_Free_mem(pair.in);
}

/* bandwidth-shared/BYTES: as bandwidth, both buffers from MPI_Alloc_mem. */
void metric_bandwidth_shared(void)
{
    struct pair pair = make(ROOM, bench_alloc_mem);
    large_bandwidth(pair, "bandwidth-shared");
    MPI_Free_mem(pair.out);
    MPI_Free_mem(pair.in);
}

/* latency-heap/BYTES and bandwidth-heap/BYTES: as latency and bandwidth, with buffers from malloc, in a job whose
 * launcher was set to do what it can for them (catalog.py: Group.sharing). */
void metric_latency_heap(void) { large_latency(make(MOST, bench_malloc), "latency-heap"); }

void metric_bandwidth_heap(void) { large_bandwidth(make(ROOM, bench_malloc), "bandwidth-heap"); }

/* rate/PAIRS: millions of 8-byte messages a second, all pairs together. */
void metric_rate(void)
{
    struct pair pair = make(WINDOW * 8, bench_buffer);
    int pairs = bench_size / 2;
    pair.bytes = 8;
    double took = bench_measure(MPI_COMM_WORLD, one_way, &pair, 0.12);
    bench_result((double)pairs * WINDOW / took * 1e-6, "rate/%dpair%s", pairs, pairs == 1 ? "" : "s");
}
