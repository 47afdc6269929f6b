/* partitioned.c: one message whose partitions several threads mark as ready (MPI_THREAD_MULTIPLE). */
#include "bench.h"
#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 4, PARTS = 16, EACH = 64 << 10 };

struct crew {
    MPI_Request request;
    pthread_barrier_t begin, end;
    int over;
};

struct worker {
    struct crew *crew;
    pthread_t thread;
    int number;
};

static void ready(const struct worker *worker)
{
    int own = PARTS / THREADS;
    MPI_Pready_range(worker->number * own, (worker->number + 1) * own - 1, worker->crew->request);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    for (;;) {
        pthread_barrier_wait(&worker->crew->begin);
        if (worker->crew->over) return NULL;
        ready(worker);
        pthread_barrier_wait(&worker->crew->end);
    }
}

/* Rank 0 sends: this thread and three others. */
static void rounds(long n, void *first)
{
    struct crew *crew = ((struct worker *)first)->crew;
    for (long i = 0; i < n; i++) {
        MPI_Start(&crew->request);
        if (bench_rank == 0) {
            pthread_barrier_wait(&crew->begin);
            ready(first);
            pthread_barrier_wait(&crew->end);
        }
        MPI_Wait(&crew->request, MPI_STATUS_IGNORE);
    }
}

/* partitioned/16x65536, two ranks: GB/s. */
void metric_partitioned(void)
{
    struct crew crew = {.over = 0};
    struct worker workers[THREADS];
    char *buffer = bench_malloc((size_t)PARTS * EACH);
    if (bench_rank == 0)
        MPI_Psend_init(buffer, PARTS, EACH, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &crew.request);
    else
        MPI_Precv_init(buffer, PARTS, EACH, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &crew.request);
    pthread_barrier_init(&crew.begin, NULL, THREADS);
    pthread_barrier_init(&crew.end, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) workers[i] = (struct worker){.crew = &crew, .number = i};
    for (int i = 1; bench_rank == 0 && i < THREADS; i++) pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    bench_result(PARTS * (double)EACH / bench_measure(MPI_COMM_WORLD, rounds, workers, 0.3) * 1e-9, "partitioned/%dx%d", PARTS, EACH);
    if (bench_rank == 0) {
        crew.over = 1;
        pthread_barrier_wait(&crew.begin);
        for (int i = 1; i < THREADS; i++) pthread_join(workers[i].thread, NULL);
    }
    pthread_barrier_destroy(&crew.begin);
    pthread_barrier_destroy(&crew.end);
    MPI_Request_free(&crew.request);
    free(buffer);
}
