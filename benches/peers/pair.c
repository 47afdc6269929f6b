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

static struct pair make(size_t room)
{
    int half = bench_size / 2, low = bench_rank < half;
    struct pair pair = {low, low ? bench_rank + half : bench_rank - half, 0, WINDOW, NULL, NULL};
    pair.out = bench_buffer(room);
    pair.in = bench_buffer(room);
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
    struct pair pair = make(MOST);
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

/* bandwidth/BYTES and bidirectional/BYTES: GB/s, of both directions together. */
void metric_bandwidth(void)
{
    struct pair pair = make(ROOM);
    for (int i = 0; i < SIZES; i++) {
        pair.bytes = sizes[i];
        if (pair.bytes < 4 << 10) continue;
        pair.window = ROOM / pair.bytes < WINDOW ? ROOM / pair.bytes : WINDOW;
        double moved = (double)pair.bytes * pair.window * 1e-9;
        bench_result(moved / bench_measure(MPI_COMM_WORLD, one_way, &pair, 0.08), "bandwidth/%d", pair.bytes);
        bench_result(2 * moved / bench_measure(MPI_COMM_WORLD, both_ways, &pair, 0.08), "bidirectional/%d", pair.bytes);
    }
}

/* rate/PAIRS: millions of 8-byte messages a second, all pairs together. */
void metric_rate(void)
{
    struct pair pair = make(WINDOW * 8);
    int pairs = bench_size / 2;
    pair.bytes = 8;
    double took = bench_measure(MPI_COMM_WORLD, one_way, &pair, 0.12);
    bench_result((double)pairs * WINDOW / took * 1e-6, "rate/%dpair%s", pairs, pairs == 1 ? "" : "s");
}
