/* crowd.c: many ranks: all to all by wildcard, memory, start-up; and a rank that waits. */
#include "bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { TAG = 3 };
extern double bench_ready;

static void all_to_all(long n, void *argument)
{
    MPI_Request *requests = argument;
    long out = 1, in;
    for (long i = 0; i < n; i++) {
        for (int to = 1; to < bench_size; to++)
            MPI_Isend(&out, 1, MPI_LONG, (bench_rank + to) % bench_size, TAG, MPI_COMM_WORLD, &requests[to - 1]);
        for (int from = 1; from < bench_size; from++)
            MPI_Recv(&in, 1, MPI_LONG, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Waitall(bench_size - 1, requests, MPI_STATUSES_IGNORE);
    }
}

/* wildcard/RANKS: thousands of 8-byte messages a second among all ranks, received from any source with any tag. */
void metric_wildcard(void)
{
    MPI_Request *requests = malloc((size_t)bench_size * sizeof *requests);
    double took = bench_measure(MPI_COMM_WORLD, all_to_all, requests, 0.5);
    bench_result((double)bench_size * (bench_size - 1) / took * 1e-3, "wildcard/%d", bench_size);
    free(requests);
}

static double burnt(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

/* idle/recv: seconds of CPU that rank 0 burns while it waits a second for a message. */
void metric_idle(void)
{
    long word = 1;
    if (bench_rank == 1) {
        struct timespec second = {1, 0};
        nanosleep(&second, NULL);
        MPI_Send(&word, 1, MPI_LONG, 0, TAG, MPI_COMM_WORLD);
    } else if (bench_rank == 0) {
        double before = burnt(), start = bench_now();
        MPI_Recv(&word, 1, MPI_LONG, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double waited = bench_now() - start;
        bench_result((burnt() - before) / waited, "idle/recv");
    }
}

/* Kilobytes, each page divided by the processes that map it. */
static double proportional(void)
{
    char line[256];
    long kilobytes = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Pss: %ld", &kilobytes) == 1) break;
    if (file) fclose(file);
    return (double)kilobytes;
}

static void memory(const char *when)
{
    double mine, sum = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    mine = proportional();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    bench_result(sum / bench_size / 1024, "memory/%s-%d", when, bench_size);
}

/* memory/init-RANKS, memory/alltoall-RANKS: MiB a rank (PSS), as the job starts and when all have talked to all. */
void metric_memory(void)
{
    MPI_Request *requests = malloc((size_t)bench_size * sizeof *requests);
    memory("init");
    all_to_all(1, requests);
    memory("alltoall");
    free(requests);
}

/* startup/RANKS: milliseconds from the launcher's start to the return of the last rank's MPI_Init. */
void metric_startup(void)
{
    double last, start = getenv("BENCH_START") ? atof(getenv("BENCH_START")) : 0;
    MPI_Reduce(&bench_ready, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (start > 0) bench_result((last - start) * 1e3, "startup/%d", bench_size);
}
