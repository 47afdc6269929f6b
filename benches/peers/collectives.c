/* collectives.c: barrier, broadcast, allreduce, alltoall. */
#include "bench.h"
#include <stdlib.h>
#include <sys/mman.h>

enum { MOST = 1 << 20 };
static const int sizes[] = {8, 1 << 10, 64 << 10, 1 << 20};
enum { SIZES = sizeof sizes / sizeof *sizes };
/* An alltoall of a megabyte among many ranks measures the machine's memory, and takes much of it. */
enum { LARGE_ALLTOALL = 8 };

struct load {
    int bytes;
    char *out, *in;
};

static void barrier(long n, void *argument)
{
    (void)argument;
    for (long i = 0; i < n; i++) MPI_Barrier(MPI_COMM_WORLD);
}

/* The root goes round: each must have had the last one before it can send the next, so that nobody runs ahead. */
static void bcast(long n, void *argument)
{
    struct load *load = argument;
    for (long i = 0; i < n; i++) MPI_Bcast(load->in, load->bytes, MPI_BYTE, (int)(i % bench_size), MPI_COMM_WORLD);
}

static void allreduce(long n, void *argument)
{
    struct load *load = argument;
    for (long i = 0; i < n; i++)
        MPI_Allreduce(load->out, load->in, load->bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void alltoall(long n, void *argument)
{
    struct load *load = argument;
    for (long i = 0; i < n; i++)
        MPI_Alltoall(load->out, load->bytes, MPI_BYTE, load->in, load->bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void one(const char *name, bench_body *body, struct load *load)
{
    double took = bench_measure(MPI_COMM_WORLD, body, load, 0.06);
    bench_result(took * 1e6, "%s/%d-%d", name, bench_size, load->bytes);
}

/* barrier/RANKS; bcast, allreduce, alltoall/RANKS-BYTES (alltoall: bytes for each): microseconds. */
void metric_collectives(void)
{
    size_t room = (size_t)MOST * (size_t)(bench_size <= LARGE_ALLTOALL ? bench_size : 2);
    if (room < (64u << 10) * (size_t)bench_size) room = (64u << 10) * (size_t)bench_size;
    struct load load = {0, bench_buffer(room), bench_buffer(room)};
    double took = bench_measure(MPI_COMM_WORLD, barrier, &load, 0.1);
    bench_result(took * 1e6, "barrier/%d", bench_size);
    for (int i = 0; i < SIZES; i++) {
        load.bytes = sizes[i];
        one("bcast", bcast, &load);
        one("allreduce", allreduce, &load);
        if (load.bytes < MOST || bench_size <= LARGE_ALLTOALL) one("alltoall", alltoall, &load);
    }
    munmap(load.out, room);
    munmap(load.in, room);
}
