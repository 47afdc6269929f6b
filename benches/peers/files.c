/* files.c: reading and writing a file that is in the page cache. BENCH_FOLDER=PATH says where it lies (/tmp). */
#define _GNU_SOURCE
#include "bench.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LONG_BLOCK = 16 << 20, BLOCK = 1 << 20, BLOCKS = 16, LONG_RUN = 1 << 10, LONG_RUNS = 2048, SHORT_RUN = 100, SHORT_RUNS = 2000, RECORD = 1 << 10 };

struct place {
    MPI_File file;
    int fd;
    char *memory;
};

/* The same ranks' same bytes, by MPI and by system calls. */
static off_t offset_of(long i) { return ((off_t)bench_rank * BLOCKS + i % BLOCKS) * BLOCK; }

static void must(long long got, long long wanted)
{
    if (got == wanted) return;
    fprintf(stderr, "bench: a file's access moved %lld bytes, not %lld\n", got, wanted);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void bare_write(long n, void *argument)
{
    struct place *at = argument;
    for (long i = 0; i < n; i++) must(pwrite(at->fd, at->memory + i % BLOCKS * BLOCK, BLOCK, offset_of(i)), BLOCK);
}

static void bare_read(long n, void *argument)
{
    struct place *at = argument;
    for (long i = 0; i < n; i++) must(pread(at->fd, at->memory + i % BLOCKS * BLOCK, BLOCK, offset_of(i)), BLOCK);
}

static void write_block(long n, void *argument)
{
    struct place *at = argument;
    for (long i = 0; i < n; i++) MPI_File_write_at(at->file, offset_of(i), at->memory + i % BLOCKS * BLOCK, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
}

static void read_block(long n, void *argument)
{
    struct place *at = argument;
    for (long i = 0; i < n; i++) MPI_File_read_at(at->file, offset_of(i), at->memory + i % BLOCKS * BLOCK, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
}

static void write_all(long n, void *argument)
{
    struct place *at = argument;
    for (long i = 0; i < n; i++) MPI_File_write_at_all(at->file, 0, at->memory, LONG_RUN * LONG_RUNS, MPI_BYTE, MPI_STATUS_IGNORE);
}

static void read_all(long n, void *argument)
{
    struct place *at = argument;
    for (long i = 0; i < n; i++) MPI_File_read_at_all(at->file, 0, at->memory, LONG_RUN * LONG_RUNS, MPI_BYTE, MPI_STATUS_IGNORE);
}

static void write_strided(long n, void *argument)
{
    struct place *at = argument;
    for (long i = 0; i < n; i++) MPI_File_write_at(at->file, 0, at->memory, SHORT_RUN * SHORT_RUNS, MPI_BYTE, MPI_STATUS_IGNORE);
}

static void read_strided(long n, void *argument)
{
    struct place *at = argument;
    for (long i = 0; i < n; i++) MPI_File_read_at(at->file, 0, at->memory, SHORT_RUN * SHORT_RUNS, MPI_BYTE, MPI_STATUS_IGNORE);
}

static void write_shared(long n, void *argument)
{
    struct place *at = argument;
    MPI_File_seek_shared(at->file, 0, MPI_SEEK_SET);
    for (long i = 0; i < n; i++) MPI_File_write_shared(at->file, at->memory, RECORD, MPI_BYTE, MPI_STATUS_IGNORE);
}

/* The same records, of all ranks in turn, with no pointer between them. */
static void bare_write_shared(long n, void *argument)
{
    struct place *at = argument;
    for (long i = 0; i < n; i++) must(pwrite(at->fd, at->memory, RECORD, (i * bench_size + bench_rank) * RECORD), RECORD);
}

static double sink;

/* Computes for so many seconds, and calls nothing of MPI. */
static void compute(double seconds)
{
    double until = bench_now() + seconds;
    while (bench_now() < until)
        for (int i = 0; i < 100; i++) sink = sink * 0.999 + i;
}

/* Seconds of a nonblocking write and of computing for `seconds` meanwhile. */
static double beside(struct place *at, double seconds)
{
    MPI_Request request;
    double begun = bench_now();
    MPI_File_iwrite_at(at->file, 0, at->memory, LONG_BLOCK, MPI_BYTE, &request);
    compute(seconds);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return bench_now() - begun;
}

/* The share of a write of 16 MiB that computing as long hides: 0 is one after the other, 1 all.
 * The other ranks sleep, so that there is a CPU. */
static double hidden(void *argument)
{
    enum { TIMES = 21 };
    struct place *at = argument;
    double took[TIMES], share = 0;
    MPI_Request all;
    int over = 0;
    if (bench_rank == 0) {
        for (int i = 0; i < TIMES; i++) {
            double begun = bench_now(), alone;
            must(pwrite(at->fd, at->memory, LONG_BLOCK, 0), LONG_BLOCK);
            alone = bench_now() - begun;
            took[i] = 2 - beside(at, alone) / alone;
        }
        share = bench_median(took, TIMES);
        /* Charts want something above zero. */
        if (share < 0.01) share = 0.01;
    }
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    while (!over) {
        MPI_Test(&all, &over, MPI_STATUS_IGNORE);
        if (!over) usleep(1000);
    }
    MPI_Bcast(&share, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return share;
}

static void one(const char *name, bench_body *body, struct place *at, double bytes)
{
    double took = bench_measure(MPI_COMM_WORLD, body, at, 0.15);
    bench_result(bytes * bench_size / took * 1e-9, "files/%s-%d", name, bench_size);
}

/* Every rank sees every so many-th run. */
static void interleave(struct place *at, int runs, int bytes)
{
    MPI_Datatype filetype;
    MPI_Type_vector(runs, bytes, bytes * bench_size, MPI_BYTE, &filetype);
    MPI_Type_commit(&filetype);
    MPI_File_set_view(at->file, (MPI_Offset)bench_rank * bytes, MPI_BYTE, filetype, "native", MPI_INFO_NULL);
    MPI_Type_free(&filetype);
}

/* files/CASE-RANKS: gigabytes a second of all ranks together; files-overlap/iwrite-RANKS: a share. */
void metric_files(void)
{
    const char *folder = getenv("BENCH_FOLDER");
    char name[4096];
    int id = (int)getpid();
    MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(name, sizeof name, "%s/bench-files.%d", folder ? folder : "/tmp", id);
    struct place at = {.memory = bench_buffer((size_t)BLOCK * BLOCKS)};
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &at.file);
    at.fd = open(name, O_RDWR | O_CLOEXEC);
    for (long i = 0; i < BLOCKS; i++) must(pwrite(at.fd, at.memory, BLOCK, offset_of(i)), BLOCK);
    MPI_Barrier(MPI_COMM_WORLD);
    one("bare-write", bare_write, &at, BLOCK);
    one("write", write_block, &at, BLOCK);
    one("bare-read", bare_read, &at, BLOCK);
    one("read", read_block, &at, BLOCK);
    /* Two ranks are bound to a processor each, and so are their threads: nothing can overlap. */
    if (bench_size > 2) {
        double share = bench_steady(hidden, &at);
        bench_result(share, "files-overlap/iwrite-%d", bench_size);
    }
    interleave(&at, LONG_RUNS, LONG_RUN);
    one("write-all", write_all, &at, (double)LONG_RUN * LONG_RUNS);
    one("read-all", read_all, &at, (double)LONG_RUN * LONG_RUNS);
    interleave(&at, SHORT_RUNS, SHORT_RUN);
    one("write-strided", write_strided, &at, (double)SHORT_RUN * SHORT_RUNS);
    one("read-strided", read_strided, &at, (double)SHORT_RUN * SHORT_RUNS);
    MPI_File_set_view(at.file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    one("bare-write-shared", bare_write_shared, &at, RECORD);
    one("write-shared", write_shared, &at, RECORD);
    close(at.fd);
    MPI_File_close(&at.file);
    munmap(at.memory, (size_t)BLOCK * BLOCKS);
}
