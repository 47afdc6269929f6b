/* A rank that writes garbage over the memory of collectives makes the others fail, and neither crash nor hang.
 * RANKS: 3
 * EXIT: 17
 * STDERR: that no rank writes
 */
#include "check.h"
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* docs/job-memory.md: header, context ids, blocks of the ranks, rings by receiver and sender, areas. */
enum { RANKS = 3, HEADER = 4096, CONTEXTS = 4 * 65536, BLOCK = 2 * 4096, CONTROL = 3 * 128, CELL = 64 };
/* Counts, outcomes, sleepers, slots; then bulk. */
enum { AREA_CONTROL = 8 * (128 + 256) + 128 + RANKS * 8 * 256 };

static char *area(void)
{
    struct stat job;
    int fd = atoi(getenv("PERUSAL_JOB_FD"));
    if (fstat(fd, &job) != 0) abort();
    char *memory = mmap(NULL, job.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) abort();
    uint32_t cells = *(uint32_t *)(memory + 16), bulk = *(uint32_t *)(memory + 20);
    size_t ring = (CONTROL + (size_t)cells * CELL + bulk + 4095) / 4096 * 4096;
    return memory + HEADER + CONTEXTS + RANKS * BLOCK + RANKS * RANKS * ring;
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    enum { N = 3000 };
    static double a[N], b[N];
    for (int i = 0; i < 20; i++) {
        OK(MPI_Allreduce(a, b, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    if (rank == 1) {
        volatile char *garbage = area();
        srand((unsigned)time(NULL));
        /* High bytes are set, so that every word is one that no rank writes. */
        for (int at = 0; at < AREA_CONTROL; at++) garbage[at] = (char)(at % 8 == 7 ? 0x40 | rand() : rand());
        sleep(60);
        return 1;
    }
    for (int i = 0; i < 1000; i++) {
        MPI_Allreduce(a, b, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Bcast(a, 10, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    }
    return 1;
}
