/* A rank that writes garbage over the memory of collectives makes the others fail, and neither crash nor hang.
 * RANKS: 3
 * EXIT: 17
 * STDERR: that no rank writes
 */
#include "job_memory.h"
#include <time.h>

/* Counts, outcomes, sleepers, slots; then bulk. */
enum { RANKS = 3, ROUNDS = 32, AREA_CONTROL = ROUNDS * (128 + 256) + 128 + RANKS * ROUNDS * 256 };

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
        char *memory = job_memory();
        volatile char *garbage = ring_of(memory, 0, places_of(memory));
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
