/* What the tests share that write into the job's memory behind the library's back (docs/job-memory.md). */
#ifndef JOB_MEMORY_H
#define JOB_MEMORY_H

#include "check.h"
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Header, context ids with their failure words, blocks of the places, rings by receiver and sender, areas. */
enum { HEADER = 4096, CONTEXTS = (4 + 16) * 65536, BLOCK = 3 * 4096, CONTROL = 3 * 128, CELL = 64 };

/* Of a rank's block: behind telemetry and roster entry the doorbell, which has a word to sleep on,
 * flags, and counts. */
enum { DOORBELL = 2 * 4096 + 256, FLAGS = DOORBELL + 128, COUNTS = FLAGS + 128 };

/* The job's memory, mapped once more. */
static inline char *job_memory(void)
{
    struct stat job;
    int fd = atoi(getenv("PERUSAL_JOB_FD"));
    if (fstat(fd, &job) != 0) abort();
    char *memory = mmap(NULL, job.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) abort();
    return memory;
}

/* Cells of a ring. */
static inline uint32_t cells_of(const char *memory) { return *(const uint32_t *)(memory + 16); }

/* How many processes the job has room for. */
static inline uint32_t places_of(const char *memory) { return *(const uint32_t *)(memory + 52); }

/* The ring that `from` writes and `to` reads; at receiver `places_of` and sender 0 the areas begin. */
static inline char *ring_of(char *memory, uint32_t from, uint32_t to)
{
    uint32_t bulk = *(uint32_t *)(memory + 20), places = places_of(memory);
    /* Blocks take half as much as the bulk area, 256 KiB at most. */
    size_t blocks = bulk / 2 < 256 << 10 ? bulk / 2 : 256 << 10;
    size_t ring = (CONTROL + (size_t)cells_of(memory) * CELL + bulk + blocks + 4095) / 4096 * 4096;
    return memory + HEADER + CONTEXTS + (size_t)places * BLOCK + ((size_t)to * places + from) * ring;
}

/* Tells `to` that `from` has written into its ring. A rank polls a ring without a notification only until it has slept
 * once; its sleep, of 100 ms at most, ends by itself. */
static inline void set_flag(char *memory, uint32_t from, uint32_t to)
{
    uint64_t *flags = (uint64_t *)(memory + HEADER + CONTEXTS + (size_t)to * BLOCK + FLAGS);
    __atomic_fetch_or(&flags[from / 64], (uint64_t)1 << from % 64, __ATOMIC_SEQ_CST);
}

#endif
