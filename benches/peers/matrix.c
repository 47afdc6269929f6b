/* matrix.c: many operations, sizes and numbers of ranks, each for a short time. */
#include "bench.h"
#include <stdlib.h>

enum { TAG = 7, MOST = 1 << 20, WINDOW = 64, IN_FLIGHT = 4 << 20 };

/* What an operation works on: `bytes` of one rank's contribution, in buffers from malloc. */
struct cell {
    char *out, *in;
    int bytes, window, peer;
    MPI_Datatype type;
    int count;
    const struct operation *operation;
};

/* ---- between two ranks ---- */

static void latency(long n, void *argument)
{
    struct cell *c = argument;
    for (long i = 0; i < n; i++) {
        if (bench_rank == 0) MPI_Send(c->out, c->count, c->type, c->peer, TAG, MPI_COMM_WORLD);
        MPI_Recv(c->in, c->count, c->type, c->peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (bench_rank != 0) MPI_Send(c->out, c->count, c->type, c->peer, TAG, MPI_COMM_WORLD);
    }
}

/* Windows of messages from and to the same two buffers, and an answer. */
static void bandwidth(long n, void *argument)
{
    struct cell *c = argument;
    MPI_Request requests[WINDOW];
    for (long i = 0; i < n; i++) {
        for (int j = 0; j < c->window; j++) {
            if (bench_rank == 0)
                MPI_Isend(c->out, c->count, c->type, c->peer, TAG, MPI_COMM_WORLD, &requests[j]);
            else
                MPI_Irecv(c->in, c->count, c->type, c->peer, TAG, MPI_COMM_WORLD, &requests[j]);
        }
        MPI_Waitall(c->window, requests, MPI_STATUSES_IGNORE);
        if (bench_rank == 0)
            MPI_Recv(c->in, 0, MPI_BYTE, c->peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(c->out, 0, MPI_BYTE, c->peer, TAG, MPI_COMM_WORLD);
    }
}

static void bidirectional(long n, void *argument)
{
    struct cell *c = argument;
    MPI_Request requests[2 * WINDOW];
    for (long i = 0; i < n; i++) {
        for (int j = 0; j < c->window; j++) {
            MPI_Irecv(c->in, c->count, c->type, c->peer, TAG, MPI_COMM_WORLD, &requests[2 * j]);
            MPI_Isend(c->out, c->count, c->type, c->peer, TAG, MPI_COMM_WORLD, &requests[2 * j + 1]);
        }
        MPI_Waitall(2 * c->window, requests, MPI_STATUSES_IGNORE);
    }
}

static const int pair_sizes[] = {8, 128, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20};
static const struct { const char *name; bench_body *body; int vector; } pairs[] = {
    {"latency", latency, 0},
    {"bandwidth", bandwidth, 0},
    {"bidirectional", bidirectional, 0},
    {"vector-latency", latency, 1},
    {"vector-bandwidth", bandwidth, 1},
};

/* matrix/OPERATION-2-BYTES: microseconds a message. Of the vector, every second four bytes are sent. */
static void metric_pairs(struct cell c)
{
    c.peer = 1 - bench_rank;
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
        for (size_t s = 0; s < sizeof pair_sizes / sizeof *pair_sizes; s++) {
            c.bytes = pair_sizes[s];
            c.window = pairs[p].body == latency ? 1 : IN_FLIGHT / c.bytes < WINDOW ? IN_FLIGHT / c.bytes : WINDOW;
            c.type = MPI_BYTE, c.count = c.bytes;
            if (pairs[p].vector) {
                MPI_Type_vector(c.bytes / 4, 4, 8, MPI_BYTE, &c.type);
                MPI_Type_commit(&c.type);
                c.count = 1;
            }
            double took = bench_measure(MPI_COMM_WORLD, pairs[p].body, &c, 0.03);
            took /= pairs[p].body == latency ? 2 : pairs[p].body == bidirectional ? 2 * c.window : c.window;
            bench_result(took * 1e6, "matrix/%s-2-%d", pairs[p].name, c.bytes);
            if (pairs[p].vector) MPI_Type_free(&c.type);
        }
    }
}

/* ---- collectives ---- */

/* Starts the operation, or performs it and leaves the request alone. */
typedef void start(const struct cell *c, int root, MPI_Request *request);

#define DOUBLES (c->bytes / 8)
#define BYTES c->bytes, MPI_BYTE
#define W MPI_COMM_WORLD
#define SUM MPI_DOUBLE, MPI_SUM
#define OPERATION(name, call) \
    static void name(const struct cell *c, int root, MPI_Request *request) { (void)c, (void)root, (void)request, (void)(call); }

/* One double for each rank at least. */
static int part(const struct cell *c) { return DOUBLES / bench_size > 0 ? DOUBLES / bench_size : 1; }

static int *parts(const struct cell *c)
{
    static int counts[64];
    for (int i = 0; i < bench_size; i++) counts[i] = part(c);
    return counts;
}

OPERATION(barrier, MPI_Barrier(W))
OPERATION(bcast, MPI_Bcast(c->out, BYTES, root, W))
OPERATION(reduce, MPI_Reduce(c->out, c->in, DOUBLES, SUM, root, W))
OPERATION(allreduce, MPI_Allreduce(c->out, c->in, DOUBLES, SUM, W))
OPERATION(reduce_scatter, MPI_Reduce_scatter(c->out, c->in, parts(c), SUM, W))
OPERATION(reduce_scatter_block, MPI_Reduce_scatter_block(c->out, c->in, part(c), SUM, W))
OPERATION(scan, MPI_Scan(c->out, c->in, DOUBLES, SUM, W))
OPERATION(exscan, MPI_Exscan(c->out, c->in, DOUBLES, SUM, W))
OPERATION(gather, MPI_Gather(c->out, BYTES, c->in, BYTES, root, W))
OPERATION(scatter, MPI_Scatter(c->out, BYTES, c->in, BYTES, root, W))
OPERATION(allgather, MPI_Allgather(c->out, BYTES, c->in, BYTES, W))
OPERATION(alltoall, MPI_Alltoall(c->out, BYTES, c->in, BYTES, W))
OPERATION(ibarrier, MPI_Ibarrier(W, request))
OPERATION(ibcast, MPI_Ibcast(c->out, BYTES, root, W, request))
OPERATION(ireduce, MPI_Ireduce(c->out, c->in, DOUBLES, SUM, root, W, request))
OPERATION(iallreduce, MPI_Iallreduce(c->out, c->in, DOUBLES, SUM, W, request))
OPERATION(igather, MPI_Igather(c->out, BYTES, c->in, BYTES, root, W, request))
OPERATION(iscatter, MPI_Iscatter(c->out, BYTES, c->in, BYTES, root, W, request))
OPERATION(iallgather, MPI_Iallgather(c->out, BYTES, c->in, BYTES, W, request))
OPERATION(ialltoall, MPI_Ialltoall(c->out, BYTES, c->in, BYTES, W, request))

static const struct operation {
    const char *name;
    start *start;
    /* Without data: measured once. */
    int bare;
} operations[] = {
    {"barrier", barrier, 1},
    {"bcast", bcast, 0},
    {"reduce", reduce, 0},
    {"allreduce", allreduce, 0},
    {"reduce-scatter", reduce_scatter, 0},
    {"reduce-scatter-block", reduce_scatter_block, 0},
    {"scan", scan, 0},
    {"exscan", exscan, 0},
    {"gather", gather, 0},
    {"scatter", scatter, 0},
    {"allgather", allgather, 0},
    {"alltoall", alltoall, 0},
    {"ibarrier", ibarrier, 1},
    {"ibcast", ibcast, 0},
    {"ireduce", ireduce, 0},
    {"iallreduce", iallreduce, 0},
    {"igather", igather, 0},
    {"iscatter", iscatter, 0},
    {"iallgather", iallgather, 0},
    {"ialltoall", ialltoall, 0},
};
static const int collective_sizes[] = {8, 128, 2 << 10, 32 << 10, 256 << 10, 1 << 20};

/* The root goes round. */
static void repeat(long n, void *argument)
{
    struct cell *c = argument;
    for (long i = 0; i < n; i++) {
        MPI_Request request = MPI_REQUEST_NULL;
        c->operation->start(c, (int)(i % bench_size), &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

/* matrix/OPERATION-RANKS-BYTES: microseconds a call. */
static void metric_operations(struct cell c)
{
    for (size_t o = 0; o < sizeof operations / sizeof *operations; o++) {
        for (size_t s = 0; s < sizeof collective_sizes / sizeof *collective_sizes; s++) {
            if (operations[o].bare && s > 0) break;
            c.operation = &operations[o], c.bytes = collective_sizes[s];
            double took = bench_measure(MPI_COMM_WORLD, repeat, &c, 0.03);
            bench_result(took * 1e6, "matrix/%s-%d-%d", operations[o].name, bench_size, operations[o].bare ? 0 : c.bytes);
        }
    }
}

void metric_matrix(void)
{
    struct cell cell = {.out = bench_malloc((size_t)MOST * (size_t)(bench_size + 1)),
                        .in = bench_malloc((size_t)MOST * (size_t)(bench_size + 1))};
    if (bench_size == 2) metric_pairs(cell);
    metric_operations(cell);
    free(cell.out);
    free(cell.in);
}
