/* A root that runs ahead overwrites nothing that others have not read: broadcasts of lengths that take slots, stretches
 * and whole parts of shared memory, mixed with operations that take other parts, where some ranks are behind.
 * RANKS: 3
 */
#include "check.h"
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 6000, MOST = 70000 };
static int rank, size;
static unsigned char data[MOST], all[3 * 600];
static const int lengths[] = {8, 2048, 2048, 241, 4096, 300, 4097, 2048, 1000, 240, 4096, 16384};

static unsigned char expected(int round, int i) { return (unsigned char)(round * 31 + i * 7 + i / 251); }

static void broadcast(int round, int length, int root)
{
    for (int i = 0; i < length; i++) data[i] = rank == root ? expected(round, i) : 0;
    OK(MPI_Bcast(data, length, MPI_BYTE, root, MPI_COMM_WORLD));
    for (int i = 0; i < length; i++) {
        if (data[i] != expected(round, i)) {
            printf("rank %d, round %d, %d bytes: wrong at %d\n", rank, round, length, i);
            SAME(data[i], expected(round, i));
            return;
        }
    }
}

static void gather_all(int round)
{
    enum { EACH = 600 };
    unsigned char own[EACH];
    for (int i = 0; i < EACH; i++) own[i] = expected(round + rank, i);
    OK(MPI_Allgather(own, EACH, MPI_BYTE, all, EACH, MPI_BYTE, MPI_COMM_WORLD));
    for (int r = 0; r < size; r++) {
        for (int i = 0; i < EACH; i++) SAME(all[r * EACH + i], expected(round + r, i));
    }
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    srand(1);
    for (int round = 0; round < ROUNDS; round++) {
        int number = rand();
        int length = lengths[number % (int)(sizeof lengths / sizeof *lengths)];
        if (number / 64 % 100 == 0) length = MOST;
        broadcast(round, length, number / 4096 % 50 == 0 ? 1 : 0);
        if (number / 1024 % 40 == 0) gather_all(round);
        /* Now one is behind, and now the other. */
        if (rank != 0 && (round + rank * 100) % 200 == 0) usleep(200);
    }
    OK(MPI_Finalize());
    return verdict();
}
