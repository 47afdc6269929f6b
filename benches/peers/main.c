/* main.c: bench METRIC… runs metrics one after the other in one job.
 *
 *   BENCH_SCALE=0.5   multiplies the time that each measurement takes
 *   BENCH_START=S     seconds of the real-time clock when the launcher was started (metric startup)
 *   BENCH_PAGE=PATH   where a prober is asked (probe.h); without it, or with an empty one, there are no probes
 *   BENCH_STEADY=1.3  measured again where one probe is more than so many times the other
 */
#include "bench.h"
#include "probe.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { CHUNKS = 7, TRIES = 3 };

int bench_rank, bench_size;
const char *bench_program;
double bench_scale = 1;
/* When MPI_Init had returned, by the clock that other processes read too. */
double bench_ready;
static struct probe_page *page;
static double steady_ratio = 1.3;
/* Of the measurement whose result has not been printed yet; 0: it had none. */
static double before, after;

static const struct { const char *name; void (*run)(void); } metrics[] = {
    {"latency", metric_latency},       {"bandwidth", metric_bandwidth},     {"rate", metric_rate},
    {"posted", metric_posted},         {"unexpected", metric_unexpected},   {"collectives", metric_collectives},
    {"wildcard", metric_wildcard},     {"idle", metric_idle},               {"memory", metric_memory},
    {"latency-shared", metric_latency_shared}, {"bandwidth-shared", metric_bandwidth_shared},
    {"latency-heap", metric_latency_heap}, {"bandwidth-heap", metric_bandwidth_heap},
    {"startup", metric_startup},       {"threads", metric_threads},         {"self-threads", metric_self_threads},
    {"files", metric_files},
    {"onesided", metric_onesided},     {"onesided-sync", metric_onesided_sync},
    {"matrix", metric_matrix},
    {"spawn", metric_spawn},           {"connect", metric_connect},         {"partitioned", metric_partitioned},
};
enum { METRICS = sizeof metrics / sizeof *metrics };

double bench_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_size);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Seconds of `n` times, the same on every rank: those of the slowest. */
static double chunk(MPI_Comm comm, bench_body *body, void *argument, long n)
{
    double took;
    MPI_Barrier(comm);
    double start = bench_now();
    body(n, argument);
    took = bench_now() - start;
    MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, comm);
    return took;
}

double bench_steady(bench_once *once, void *argument)
{
    if (page == NULL) return once(argument);
    double value;
    after = probe(page, (unsigned)bench_size);
    /* Every rank sees the same probes, so all of them go on or all stop. */
    for (int i = 0; i < TRIES; i++) {
        before = after;
        value = once(argument);
        after = probe(page, (unsigned)bench_size);
        if (before <= after * steady_ratio && after <= before * steady_ratio) break;
    }
    return value;
}

struct measurement {
    MPI_Comm comm;
    bench_body *body;
    void *argument;
    double budget;
};

static double measure_once(void *of)
{
    const struct measurement *it = of;
    double times[CHUNKS], budget = it->budget * bench_scale, want = budget / CHUNKS, took;
    long n = 1;
    /* The first times are for what a library makes at first use, and tell how many make a chunk. */
    for (;;) {
        took = chunk(it->comm, it->body, it->argument, n);
        /* Once may be an accident, such as a switch to another program. */
        if (took >= want / 2) {
            double again = chunk(it->comm, it->body, it->argument, n);
            if (again < took) took = again;
        }
        if (took >= want / 2) break;
        double more = took > 0 ? want / took : 100;
        n = (long)((double)n * (more > 100 ? 100 : more)) + 1;
    }
    if (took > budget) return took / (double)n;
    for (int i = 0; i < CHUNKS; i++) times[i] = chunk(it->comm, it->body, it->argument, n) / (double)n;
    return bench_median(times, CHUNKS);
}

double bench_measure(MPI_Comm comm, bench_body *body, void *argument, double budget)
{
    struct measurement it = {comm, body, argument, budget};
    return bench_steady(measure_once, &it);
}

void bench_result(double value, const char *format, ...)
{
    if (bench_rank != 0) return;
    char name[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    printf("R %s %.9g", name, value);
    if (before > 0) printf(" %.4g %.4g", before, after);
    putchar('\n');
    fflush(stdout);
    before = after = 0;
}

void bench_fill(void *at, size_t bytes)
{
    memset(at, 0x3f, bytes);
}

void *bench_buffer(size_t bytes)
{
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        perror("bench: mmap");
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    bench_fill(at, bytes);
    return at;
}

void *bench_malloc(size_t bytes)
{
    char *at = aligned_alloc(4096, bytes);
    if (at == NULL) {
        perror("bench: aligned_alloc");
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    bench_fill(at, bytes);
    return at;
}

void *bench_alloc_mem(size_t bytes)
{
    char *at = NULL;
    MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &at);
    bench_fill(at, bytes);
    return at;
}

static int run(const char *name)
{
    for (int i = 0; i < METRICS; i++) {
        if (strcmp(metrics[i].name, name) == 0) {
            MPI_Barrier(MPI_COMM_WORLD);
            metrics[i].run();
            return 1;
        }
    }
    fprintf(stderr, "bench: no metric \"%s\"\n", name);
    return 0;
}

int main(int argc, char **argv)
{
    int threaded = 0, provided, unknown = 0;
    MPI_Comm parent;
    for (int i = 1; i < argc; i++) threaded |= strstr(argv[i], "threads") != NULL || strcmp(argv[i], "partitioned") == 0;
    bench_program = argv[0];
    if (getenv("BENCH_SCALE")) bench_scale = atof(getenv("BENCH_SCALE"));
    if (getenv("BENCH_STEADY")) steady_ratio = atof(getenv("BENCH_STEADY"));
    const char *path = getenv("BENCH_PAGE");
    if (path && *path && (page = probe_open(path)) == NULL) {
        perror(path);
        return 3;
    }
    if (threaded)
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    else
        MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        bench_child(parent);
        MPI_Finalize();
        return 0;
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    bench_ready = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    if (threaded && provided != MPI_THREAD_MULTIPLE) {
        fprintf(stderr, "bench: this library has no MPI_THREAD_MULTIPLE\n");
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &bench_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &bench_size);
    for (int i = 1; i < argc; i++) unknown |= !run(argv[i]);
    MPI_Finalize();
    return unknown ? 2 : 0;
}
