/* matrix.c: many operations, sizes and numbers of ranks, each for a short time.
 * tests/bench/peers.rs knows how many cells there are. */
#include "bench.h"
#include <stdlib.h>
#include <string.h>

enum { TAG = 7, MOST = 1 << 20, WINDOW = 64, IN_FLIGHT = 4 << 20 };

/* What an operation works on: `bytes` of one rank's contribution, in buffers from malloc. */
struct cell {
    char *out, *in;
    int bytes, window, peer;
    /* Of the two ranks of a pair the one that sends first. */
    int first;
    MPI_Datatype type;
    int count;
    const struct operation *operation;
};

/* ---- between two ranks ---- */

static void latency(long n, void *argument)
{
    struct cell *c = argument;
    for (long i = 0; i < n; i++) {
        if (c->first) MPI_Send(c->out, c->count, c->type, c->peer, TAG, MPI_COMM_WORLD);
        MPI_Recv(c->in, c->count, c->type, c->peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!c->first) MPI_Send(c->out, c->count, c->type, c->peer, TAG, MPI_COMM_WORLD);
    }
}

/* Windows of messages from and to the same two buffers, and an answer. */
static void bandwidth(long n, void *argument)
{
    struct cell *c = argument;
    MPI_Request requests[WINDOW];
    for (long i = 0; i < n; i++) {
        for (int j = 0; j < c->window; j++) {
            if (c->first)
                MPI_Isend(c->out, c->count, c->type, c->peer, TAG, MPI_COMM_WORLD, &requests[j]);
            else
                MPI_Irecv(c->in, c->count, c->type, c->peer, TAG, MPI_COMM_WORLD, &requests[j]);
        }
        MPI_Waitall(c->window, requests, MPI_STATUSES_IGNORE);
        if (c->first)
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

/* The same two requests again and again. */
static void persistent(long n, void *argument)
{
    struct cell *c = argument;
    MPI_Request send, receive;
    MPI_Send_init(c->out, c->count, c->type, c->peer, TAG, MPI_COMM_WORLD, &send);
    MPI_Recv_init(c->in, c->count, c->type, c->peer, TAG, MPI_COMM_WORLD, &receive);
    for (long i = 0; i < n; i++) {
        MPI_Start(&receive);
        if (c->first) MPI_Start(&send), MPI_Wait(&send, MPI_STATUS_IGNORE);
        MPI_Wait(&receive, MPI_STATUS_IGNORE);
        if (!c->first) MPI_Start(&send), MPI_Wait(&send, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&send);
    MPI_Request_free(&receive);
}

/* A message goes round all ranks, which ask for it again and again. */
static void polling(long n, void *argument)
{
    struct cell *c = argument;
    int next = (bench_rank + 1) % bench_size, before = (bench_rank + bench_size - 1) % bench_size;
    for (long i = 0; i < n; i++) {
        int there = 0;
        if (bench_rank == 0) MPI_Send(c->out, c->bytes, MPI_BYTE, next, TAG, MPI_COMM_WORLD);
        while (!there) MPI_Iprobe(before, TAG, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
        MPI_Recv(c->in, c->bytes, MPI_BYTE, before, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (bench_rank != 0) MPI_Send(c->out, c->bytes, MPI_BYTE, next, TAG, MPI_COMM_WORLD);
    }
}

/* ---- datatypes: all of them have `bytes` bytes of data in at most three times as much memory ---- */

typedef void make_type(struct cell *c);

static void contiguous(struct cell *c) { c->type = MPI_BYTE, c->count = c->bytes; }

static void look(const struct cell *c)
{
    static volatile char seen;
    for (int at = 0; at < c->bytes; at += 64) seen = c->in[at];
    (void)seen;
}

/* As latency; a rank stores what it sends, and looks at what it has received. */
static void touched_latency(long n, void *argument)
{
    struct cell *c = argument;
    for (long i = 0; i < n; i++)
        for (int turn = 0; turn < 2; turn++) {
            if (turn == !c->first) {
                memset(c->out, (int)i, (size_t)c->bytes);
                MPI_Send(c->out, c->count, c->type, c->peer, TAG, MPI_COMM_WORLD);
            } else {
                MPI_Recv(c->in, c->count, c->type, c->peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                look(c);
            }
        }
}

/* A halo exchange: each of the two ranks stores what it sends, and looks at what it has received. */
static void touched_exchange(long n, void *argument)
{
    struct cell *c = argument;
    MPI_Request requests[2];
    for (long i = 0; i < n; i++) {
        memset(c->out, (int)i, (size_t)c->bytes);
        MPI_Irecv(c->in, c->count, c->type, c->peer, TAG, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(c->out, c->count, c->type, c->peer, TAG, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        look(c);
    }
}

/* Every second four bytes. */
static void vector(struct cell *c)
{
    MPI_Type_vector(c->bytes / 4, 4, 8, MPI_BYTE, &c->type);
    c->count = 1;
}

/* Blocks of 8 bytes at places without a rule. */
static void indexed(struct cell *c)
{
    int blocks = c->bytes / 8, *places = bench_malloc((size_t)blocks * sizeof *places);
    unsigned state = 1;
    for (int i = 0; i < blocks; i++) {
        state = state * 1103515245u + 12345u;
        places[i] = 24 * i + 8 * (int)(state >> 16 & 1);
    }
    MPI_Type_create_indexed_block(blocks, 8, places, MPI_BYTE, &c->type);
    free(places);
    c->count = 1;
}

/* An array of a structure of an int and a double, with a gap between them, and of one more int. */
static void structure(struct cell *c)
{
    MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_INT}, packed;
    MPI_Aint places[] = {0, 8, 16};
    MPI_Type_create_struct(3, (int[]) {1, 1, 1}, places, types, &packed);
    MPI_Type_create_resized(packed, 0, 24, &c->type);
    MPI_Type_free(&packed);
    c->count = c->bytes / 16 > 0 ? c->bytes / 16 : 1;
}

static const int pair_sizes[] = {8, 128, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20};
static const struct { const char *name; bench_body *body; make_type *make; } pairs[] = {
    {"latency", latency, contiguous},
    {"bandwidth", bandwidth, contiguous},
    {"bidirectional", bidirectional, contiguous},
    {"persistent-latency", persistent, contiguous},
    {"touched-latency", touched_latency, contiguous},
    {"touched-exchange", touched_exchange, contiguous},
    {"vector-latency", latency, vector},
    {"vector-bandwidth", bandwidth, vector},
    {"indexed-latency", latency, indexed},
    {"struct-latency", latency, structure},
};

static void measure_pair(const char *name, bench_body *body, make_type *make, struct cell c, int bytes)
{
    int in_window = IN_FLIGHT / bytes < WINDOW ? IN_FLIGHT / bytes : WINDOW;
    int messages = body == bandwidth || body == bidirectional ? in_window : 1;
    c.bytes = bytes, c.window = messages;
    make(&c);
    if (make != contiguous) MPI_Type_commit(&c.type);
    double took = bench_measure(MPI_COMM_WORLD, body, &c, 0.03);
    took /= body == bandwidth ? messages : 2 * messages;
    bench_result(took * 1e6, "matrix/%s-%d-%d", name, bench_size, bytes);
    if (make != contiguous) MPI_Type_free(&c.type);
}

/* matrix/OPERATION-2-BYTES: microseconds a message. */
static void metric_pairs(struct cell c)
{
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++)
        for (size_t s = 0; s < sizeof pair_sizes / sizeof *pair_sizes; s++)
            measure_pair(pairs[p].name, pairs[p].body, pairs[p].make, c, pair_sizes[s]);
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

enum { MOST_RANKS = 64 };
typedef int list[MOST_RANKS];

static int *parts(const struct cell *c)
{
    static list counts;
    for (int i = 0; i < bench_size; i++) counts[i] = part(c);
    return counts;
}

/* In the forms with a length for each rank the blocks of odd ranks are half as long. */
static int varied(const struct cell *c, int rank) { return rank % 2 ? c->bytes / 2 : c->bytes; }

static int *lengths(const struct cell *c)
{
    static list counts;
    for (int i = 0; i < bench_size; i++) counts[i] = varied(c, i);
    return counts;
}

/* Between two ranks both ways as many. */
static int *mutual(const struct cell *c)
{
    static list counts;
    for (int i = 0; i < bench_size; i++) counts[i] = varied(c, bench_rank + i);
    return counts;
}

static int *places(const struct cell *c)
{
    static list places;
    for (int i = 0; i < bench_size; i++) places[i] = i * c->bytes;
    return places;
}

static MPI_Datatype *bytes_of_all(void)
{
    static MPI_Datatype types[MOST_RANKS];
    for (int i = 0; i < bench_size; i++) types[i] = MPI_BYTE;
    return types;
}

/* All ranks in a ring, each with two neighbours. */
static MPI_Comm ring;

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
#define EACH(counts) counts(c), places(c)
OPERATION(gatherv, MPI_Gatherv(c->out, varied(c, bench_rank), MPI_BYTE, c->in, EACH(lengths), MPI_BYTE, root, W))
OPERATION(scatterv, MPI_Scatterv(c->out, EACH(lengths), MPI_BYTE, c->in, varied(c, bench_rank), MPI_BYTE, root, W))
OPERATION(allgatherv, MPI_Allgatherv(c->out, varied(c, bench_rank), MPI_BYTE, c->in, EACH(lengths), MPI_BYTE, W))
OPERATION(alltoallv, MPI_Alltoallv(c->out, EACH(mutual), MPI_BYTE, c->in, EACH(mutual), MPI_BYTE, W))
OPERATION(alltoallw, MPI_Alltoallw(c->out, EACH(mutual), bytes_of_all(), c->in, EACH(mutual), bytes_of_all(), W))
OPERATION(neighbor_allgather, MPI_Neighbor_allgather(c->out, BYTES, c->in, BYTES, ring))
OPERATION(neighbor_alltoall, MPI_Neighbor_alltoall(c->out, BYTES, c->in, BYTES, ring))
OPERATION(ibarrier, MPI_Ibarrier(W, request))
OPERATION(ibcast, MPI_Ibcast(c->out, BYTES, root, W, request))
OPERATION(ireduce, MPI_Ireduce(c->out, c->in, DOUBLES, SUM, root, W, request))
OPERATION(iallreduce, MPI_Iallreduce(c->out, c->in, DOUBLES, SUM, W, request))
OPERATION(igather, MPI_Igather(c->out, BYTES, c->in, BYTES, root, W, request))
OPERATION(iscatter, MPI_Iscatter(c->out, BYTES, c->in, BYTES, root, W, request))
OPERATION(iallgather, MPI_Iallgather(c->out, BYTES, c->in, BYTES, W, request))
OPERATION(ialltoall, MPI_Ialltoall(c->out, BYTES, c->in, BYTES, W, request))
/* Prepared once, for root 0, and started again and again. */
OPERATION(bcast_init, MPI_Bcast_init(c->out, BYTES, 0, W, MPI_INFO_NULL, request))
OPERATION(allreduce_init, MPI_Allreduce_init(c->out, c->in, DOUBLES, SUM, W, MPI_INFO_NULL, request))
OPERATION(alltoall_init, MPI_Alltoall_init(c->out, BYTES, c->in, BYTES, W, MPI_INFO_NULL, request))

static const struct operation {
    const char *name;
    start *start;
    /* Without data: measured once. */
    int bare;
    /* `start` makes a request that is started again and again. */
    int persistent;
} operations[] = {
    {"barrier", barrier, 1, 0},
    {"bcast", bcast, 0, 0},
    {"reduce", reduce, 0, 0},
    {"allreduce", allreduce, 0, 0},
    {"reduce-scatter", reduce_scatter, 0, 0},
    {"reduce-scatter-block", reduce_scatter_block, 0, 0},
    {"scan", scan, 0, 0},
    {"exscan", exscan, 0, 0},
    {"gather", gather, 0, 0},
    {"scatter", scatter, 0, 0},
    {"allgather", allgather, 0, 0},
    {"alltoall", alltoall, 0, 0},
    {"ibarrier", ibarrier, 1, 0},
    {"ibcast", ibcast, 0, 0},
    {"ireduce", ireduce, 0, 0},
    {"iallreduce", iallreduce, 0, 0},
    {"igather", igather, 0, 0},
    {"iscatter", iscatter, 0, 0},
    {"iallgather", iallgather, 0, 0},
    {"ialltoall", ialltoall, 0, 0},
    {"gatherv", gatherv, 0, 0},
    {"scatterv", scatterv, 0, 0},
    {"allgatherv", allgatherv, 0, 0},
    {"alltoallv", alltoallv, 0, 0},
    {"alltoallw", alltoallw, 0, 0},
    {"neighbor-allgather", neighbor_allgather, 0, 0},
    {"neighbor-alltoall", neighbor_alltoall, 0, 0},
    {"bcast-init", bcast_init, 0, 1},
    {"allreduce-init", allreduce_init, 0, 1},
    {"alltoall-init", alltoall_init, 0, 1},
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

static void start_again(long n, void *argument)
{
    struct cell *c = argument;
    MPI_Request request;
    c->operation->start(c, 0, &request);
    for (long i = 0; i < n; i++) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
}

/* matrix/pairs-…-RANKS-BYTES: all ranks in pairs at once, microseconds a message of a pair.
 * matrix/polling-RANKS-BYTES: from rank to rank. */
static void metric_crowd(struct cell c)
{
    for (size_t s = 0; s < sizeof collective_sizes / sizeof *collective_sizes; s++) {
        c.bytes = collective_sizes[s];
        bench_result(bench_measure(MPI_COMM_WORLD, polling, &c, 0.03) / bench_size * 1e6, "matrix/polling-%d-%d", bench_size, c.bytes);
        if (bench_size == 2 || bench_size % 2) continue;
        measure_pair("pairs-latency", latency, contiguous, c, c.bytes);
        measure_pair("pairs-bandwidth", bandwidth, contiguous, c, c.bytes);
        measure_pair("pairs-touched-exchange", touched_exchange, contiguous, c, c.bytes);
    }
}

/* matrix/OPERATION-RANKS-BYTES: microseconds a call. */
static void metric_operations(struct cell c)
{
    for (size_t o = 0; o < sizeof operations / sizeof *operations; o++) {
        for (size_t s = 0; s < sizeof collective_sizes / sizeof *collective_sizes; s++) {
            if (operations[o].bare && s > 0) break;
            c.operation = &operations[o], c.bytes = collective_sizes[s];
            double took = bench_measure(MPI_COMM_WORLD, operations[o].persistent ? start_again : repeat, &c, 0.03);
            bench_result(took * 1e6, "matrix/%s-%d-%d", operations[o].name, bench_size, operations[o].bare ? 0 : c.bytes);
        }
    }
}

void metric_matrix(void)
{
    /* Of an indexed type, three bytes for each; of a gather, a block of each rank. */
    size_t room = (size_t)MOST * (size_t)(bench_size + 2);
    struct cell cell = {.out = bench_malloc(room), .in = bench_malloc(room), .peer = bench_rank ^ 1, .first = bench_rank % 2 == 0};
    MPI_Cart_create(MPI_COMM_WORLD, 1, &bench_size, (int[]) {1}, 0, &ring);
    if (bench_size == 2) metric_pairs(cell);
    metric_crowd(cell);
    metric_operations(cell);
    MPI_Comm_free(&ring);
    free(cell.out);
    free(cell.in);
}
