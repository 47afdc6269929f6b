/* bench.h: what the parts of the peers' benchmark share. The same source is compiled with every MPI that is compared,
 * so it asks for nothing beyond MPI 4.0.
 *
 * A metric prints lines "R METRIC/CASE VALUE" from rank 0, with a probe of the machine before and after where there is
 * one: "R METRIC/CASE VALUE BEFORE AFTER"; benches/peers/catalog.py knows the units. Every measurement has a budget in
 * seconds, not a number of iterations: what one library does in a microsecond takes another a millisecond. */
#ifndef BENCH_H
#define BENCH_H

#include <mpi.h>
#include <stddef.h>

/* Seconds, monotonic. */
double bench_now(void);

extern int bench_rank, bench_size;
/* Its own name: what it spawns. */
extern const char *bench_program;
/* Multiplies every budget. */
extern double bench_scale;

/* Measures once; what `argument` is belongs to the metric. */
typedef double bench_once(void *argument);

/* What `once` gives, between two probes that agree, or after some tries. All ranks of the world call it alike. The
 * probes are printed with the next result. */
double bench_steady(bench_once *once, void *argument);

/* Does something `n` times; what `argument` is belongs to the metric. */
typedef void bench_body(long n, void *argument);

/* Seconds for one time of `body`, which all ranks of `comm` run alike: the median of CHUNKS chunks that together take
 * about `budget`; a chunk takes as long as the slowest rank needs for it. Steady, as above. */
double bench_measure(MPI_Comm comm, bench_body *body, void *argument, double budget);

/* Rank 0 of the world prints; the others do nothing. */
void bench_result(double value, const char *format, ...) __attribute__((format(printf, 2, 3)));

double bench_median(double *values, int n);

/* Fills memory with a byte that is no zero, and makes numbers of it that are no special ones. Lines of zeros may be
 * cheaper: AMD's family 26 stores them past the cache at twice the rate. */
void bench_fill(void *at, size_t bytes);
/* Filled, on pages of its own. */
void *bench_buffer(size_t bytes);
/* The same from malloc's family. */
void *bench_malloc(size_t bytes);
/* The same from MPI_Alloc_mem: memory that the library chooses. To be freed by MPI_Free_mem. */
void *bench_alloc_mem(size_t bytes);

/* Metrics: one function each, called by all ranks. */
void metric_latency(void);
void metric_bandwidth(void);
void metric_latency_shared(void);
void metric_bandwidth_shared(void);
void metric_latency_heap(void);
void metric_bandwidth_heap(void);
void metric_rate(void);
void metric_posted(void);
void metric_unexpected(void);
void metric_collectives(void);
void metric_wildcard(void);
void metric_idle(void);
void metric_memory(void);
void metric_startup(void);
void metric_threads(void);
void metric_self_threads(void);
void metric_files(void);
void metric_onesided(void);
void metric_onesided_sync(void);
void metric_matrix(void);
void metric_spawn(void);
void metric_connect(void);
void metric_partitioned(void);

/* What a process does that metric_spawn has started. */
void bench_child(MPI_Comm parent);

#endif
