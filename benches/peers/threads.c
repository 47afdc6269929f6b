/* threads.c: the message rate of several threads of a rank (MPI_THREAD_MULTIPLE), 8 bytes, windows of 64. */
#include "bench.h"
#include <pthread.h>
#include <stdlib.h>

enum { WINDOW = 64, MOST = 4 };
enum shape { PAIRWISE, COMMUNICATORS, TO_ONE, SELF, SHAPES };
static const char *const shapes[SHAPES] = {"pairwise", "comms", "to-one", "self-comms"};

struct worker {
    pthread_t thread;
    enum shape shape;
    int threads, number;
    long n;
    MPI_Comm comm;
};

static void windows(const struct worker *worker, int sends, int peer, int streams)
{
    MPI_Request requests[WINDOW];
    long out[WINDOW] = {0}, in[WINDOW];
    for (long i = 0; i < worker->n; i++) {
        for (int stream = 0; stream < streams; stream++) {
            int tag = streams > 1 ? stream : worker->number;
            for (int j = 0; j < WINDOW; j++) {
                if (sends)
                    MPI_Isend(&out[j], 1, MPI_LONG, peer, tag, worker->comm, &requests[j]);
                else
                    MPI_Irecv(&in[j], 1, MPI_LONG, peer, tag, worker->comm, &requests[j]);
            }
            MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
            int back = MOST + tag;
            if (sends)
                MPI_Recv(&in[0], 1, MPI_LONG, peer, back, worker->comm, MPI_STATUS_IGNORE);
            else
                MPI_Send(&out[0], 1, MPI_LONG, peer, back, worker->comm);
        }
    }
}

/* A thread alone: messages to its own rank, on a communicator of its own. */
static void to_self(const struct worker *worker)
{
    MPI_Request requests[2 * WINDOW];
    long out[WINDOW] = {0}, in[WINDOW];
    for (long i = 0; i < worker->n; i++) {
        for (int j = 0; j < WINDOW; j++) {
            MPI_Irecv(&in[j], 1, MPI_LONG, 0, 0, worker->comm, &requests[2 * j]);
            MPI_Isend(&out[j], 1, MPI_LONG, 0, 0, worker->comm, &requests[2 * j + 1]);
        }
        MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
    }
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    if (worker->shape == SELF)
        to_self(worker);
    else if (bench_rank == 0)
        windows(worker, 1, 1, 1);
    else
        windows(worker, 0, 0, worker->shape == TO_ONE ? worker->threads : 1);
    return NULL;
}

static void all_threads(long n, void *argument)
{
    struct worker *workers = argument;
    int running = workers[0].shape == TO_ONE && bench_rank == 1 ? 1 : workers[0].threads;
    for (int i = 0; i < running; i++) workers[i].n = n;
    for (int i = 1; i < running; i++) pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    work(&workers[0]);
    for (int i = 1; i < running; i++) pthread_join(workers[i].thread, NULL);
}

static void measure(enum shape shape, int threads, const MPI_Comm *comms, MPI_Comm shared)
{
    struct worker workers[MOST];
    for (int i = 0; i < threads; i++) {
        workers[i].shape = shape;
        workers[i].threads = threads;
        workers[i].number = i;
        workers[i].comm = shape == COMMUNICATORS || shape == SELF ? comms[i] : shared;
    }
    double took = bench_measure(MPI_COMM_WORLD, all_threads, workers, 0.15);
    bench_result((double)threads * WINDOW / took * 1e-6, "threads/%s-%d", shapes[shape], threads);
}

static void family(enum shape first, enum shape last, int most)
{
    MPI_Comm comms[MOST], shared;
    MPI_Comm_dup(MPI_COMM_WORLD, &shared);
    for (int i = 0; i < MOST; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int threads = 1; threads <= most; threads *= 2)
        for (int shape = (int)first; shape <= (int)last; shape++) measure(shape, threads, comms, shared);
    for (int i = 0; i < MOST; i++) MPI_Comm_free(&comms[i]);
    MPI_Comm_free(&shared);
}

/* threads/SHAPE-THREADS, two ranks: millions of messages a second of all threads together. */
void metric_threads(void)
{
    family(PAIRWISE, TO_ONE, MOST);
}

/* threads/self-comms-THREADS, one rank: each thread sends to its own rank on a communicator of its own, so that one
 * thread keeps one core at work and two keep two. */
void metric_self_threads(void)
{
    family(SELF, SELF, MOST);
}
