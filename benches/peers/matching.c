/* matching.c: what a match costs when the queues are deep. Two ranks; rank 1 has the queue. */
#include "bench.h"
#include <stdlib.h>

enum { OTHER = 1 << 20, DEEPEST = 100000, SAMPLES = 2000 };
static const int depths[] = {1, 10, 100, 1000, 10000, 100000};
enum { DEPTHS = sizeof depths / sizeof *depths };
enum kind { EXACT, ANY_SOURCE, ANY_TAG, ANY, KINDS };
static const char *const kinds[KINDS] = {"exact", "any-source", "any-tag", "any"};

struct queue {
    enum kind kind;
    int depth;
    MPI_Request target;
    long in;
};

/* Posts the receive that the ping will meet: behind all others. */
static void post_target(struct queue *queue)
{
    int source = queue->kind == ANY_SOURCE ? MPI_ANY_SOURCE : 0;
    int tag = queue->kind == ANY_TAG ? MPI_ANY_TAG : OTHER;
    MPI_Irecv(&queue->in, 1, MPI_LONG, source, tag, MPI_COMM_WORLD, &queue->target);
}

static void round_trip(long n, void *argument)
{
    struct queue *queue = argument;
    long out = 1, in;
    for (long i = 0; i < n; i++) {
        if (bench_rank == 0) {
            MPI_Send(&out, 1, MPI_LONG, 1, OTHER, MPI_COMM_WORLD);
            MPI_Recv(&in, 1, MPI_LONG, 1, OTHER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Wait(&queue->target, MPI_STATUS_IGNORE);
            post_target(queue);
            MPI_Send(&out, 1, MPI_LONG, 0, OTHER, MPI_COMM_WORLD);
        }
    }
}

/* Receives that no ping meets: of other tags, or, where any tag will do, of another source,
 * which is this rank itself. */
static void post_fillers(struct queue *queue, MPI_Request *requests, long *places)
{
    for (int i = 0; i < queue->depth - 1; i++) {
        int source = queue->kind == ANY_SOURCE ? MPI_ANY_SOURCE : queue->kind == ANY_TAG ? 1 : 0;
        int tag = queue->kind == ANY_TAG ? MPI_ANY_TAG : i;
        MPI_Irecv(&places[i], 1, MPI_LONG, source, tag, MPI_COMM_WORLD, &requests[i]);
    }
}

/* Gives the fillers their messages, oldest first, so that a list that is walked finds each at its head. */
static void end_fillers(struct queue *queue, MPI_Request *requests)
{
    long out = 1;
    int mine = queue->kind == ANY_TAG;
    for (int i = 0; i < queue->depth - 1; i++) {
        if (bench_rank == mine) MPI_Send(&out, 1, MPI_LONG, 1, i, MPI_COMM_WORLD);
        if (mine && bench_rank == 1) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    }
    if (bench_rank == 1 && !mine) MPI_Waitall(queue->depth - 1, requests, MPI_STATUSES_IGNORE);
}

/* posted/KIND-DEPTH: microseconds of a round trip whose ping meets the last of DEPTH posted receives. */
void metric_posted(void)
{
    MPI_Request *requests = malloc(DEEPEST * sizeof *requests);
    long *places = malloc(DEEPEST * sizeof *places), out = 1;
    for (int kind = EXACT; kind <= ANY_TAG; kind++) {
        for (int i = 0; i < DEPTHS; i++) {
            struct queue queue = {kind, depths[i], MPI_REQUEST_NULL, 0};
            if (bench_rank == 1) {
                post_fillers(&queue, requests, places);
                post_target(&queue);
            }
            double took = bench_measure(MPI_COMM_WORLD, round_trip, &queue, 0.05);
            bench_result(took * 1e6, "posted/%s-%d", kinds[kind], depths[i]);
            if (bench_rank == 0)
                MPI_Send(&out, 1, MPI_LONG, 1, OTHER, MPI_COMM_WORLD);
            else
                MPI_Wait(&queue.target, MPI_STATUS_IGNORE);
            end_fillers(&queue, requests);
        }
    }
    free(requests);
    free(places);
}

/* The mean of what is left without the lowest and the highest quarter:
 * clocks tick in steps that a median would show. */
static double middle_half(double *values, int n)
{
    double sum = 0;
    bench_median(values, n);
    for (int i = n / 4; i < n - n / 4; i++) sum += values[i];
    return sum / (n - 2 * (n / 4));
}

/* What reading the clock twice takes by itself. */
static double clock_cost(void)
{
    static double costs[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
        double start = bench_now();
        costs[i] = bench_now() - start;
    }
    return middle_half(costs, SAMPLES);
}

/* All of the messages lie in rank 1's unexpected queue: one more, sent last, has come. */
static void fill(int depth)
{
    long out = 1;
    if (bench_rank == 0)
        for (int i = 0; i <= depth; i++) MPI_Send(&out, 1, MPI_LONG, 1, i < depth ? i : OTHER, MPI_COMM_WORLD);
    else
        MPI_Recv(&out, 1, MPI_LONG, 0, OTHER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Receives some of the messages, each timed: the youngest first; or any, which is the oldest. Gives how many. */
static int take(enum kind kind, int depth, double *times, int room, double deadline)
{
    int taken = 0, most = depth < 10 ? 1 : depth / 10;
    int source = kind == ANY_SOURCE || kind == ANY ? MPI_ANY_SOURCE : 0;
    long in;
    while (taken < most && taken < room) {
        int tag = kind == ANY_TAG || kind == ANY ? MPI_ANY_TAG : depth - 1 - taken;
        double start = bench_now();
        MPI_Recv(&in, 1, MPI_LONG, source, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double end = bench_now();
        times[taken++] = end - start;
        if (end > deadline) break;
    }
    return taken;
}

static void drain(enum kind kind, int depth, int taken)
{
    long in;
    int oldest = kind == ANY_TAG || kind == ANY;
    for (int i = oldest ? taken : 0; i < (oldest ? depth : depth - taken); i++)
        MPI_Recv(&in, 1, MPI_LONG, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

struct place {
    enum kind kind;
    int depth;
};

/* Seconds of a receive whose message lies in a queue. */
static double unexpected(void *of)
{
    const struct place *place = of;
    enum kind kind = place->kind;
    int depth = place->depth;
    static double times[SAMPLES];
    int filled = 0, going = 1;
    double end = bench_now() + 0.05 * bench_scale;
    while (going) {
        fill(depth);
        if (bench_rank == 1) {
            int taken = take(kind, depth, times + filled, SAMPLES - filled, end);
            filled += taken;
            drain(kind, depth, taken);
            going = filled < SAMPLES && bench_now() < end;
            MPI_Send(&going, 1, MPI_INT, 0, OTHER, MPI_COMM_WORLD);
        } else {
            MPI_Recv(&going, 1, MPI_INT, 1, OTHER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    double middle = 0;
    if (bench_rank == 1) middle = middle_half(times, filled);
    MPI_Bcast(&middle, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    return middle;
}

/* unexpected/KIND-DEPTH: microseconds of a receive that finds its message among DEPTH: the youngest;
 * with any tag the oldest. */
void metric_unexpected(void)
{
    double clock = clock_cost();
    MPI_Bcast(&clock, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    for (int kind = EXACT; kind < KINDS; kind++) {
        for (int i = 0; i < DEPTHS; i++) {
            struct place place = {kind, depths[i]};
            double took = bench_steady(unexpected, &place) - clock;
            bench_result(took * 1e6, "unexpected/%s-%d", kinds[kind], depths[i]);
        }
    }
}
