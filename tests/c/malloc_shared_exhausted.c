/* When the shared heap is exhausted malloc goes on with ordinary memory,
 * and takes shared memory again when some was freed.
 * RANKS: 2
 * ENV: PERUSAL_SHARE_HEAP=on
 * ENV: PERUSAL_SHARED_HEAP=8388608
 */
#include "check.h"
#include "malloc_shared.h"

int main(int argc, char **argv)
{
    enum { BYTES = 1 << 20, MANY = 20 };
    char *blocks[MANY];
    int rank, shared = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int turn = 0; turn < 3; turn++) {
        /* One rank after the other: the heap is the job's, and so is what a rank keeps of it. */
        MPI_Barrier(MPI_COMM_WORLD);
        if (turn % 2 == rank) {
            shared = 0;
            for (int i = 0; i < MANY; i++) {
                blocks[i] = malloc(BYTES);
                CHECK(blocks[i] != NULL);
                memset(blocks[i], i, BYTES);
                shared += is_shared(blocks[i]);
            }
            CHECK(turn == 1 || (shared >= 1 && shared <= 8));
            for (int i = 0; i < MANY; i++) CHECK(blocks[i][0] == i && blocks[i][BYTES - 1] == i);
            blocks[0] = realloc(blocks[0], 16 << 20);
            CHECK(!is_shared(blocks[0]) && blocks[0][BYTES - 1] == 0);
            for (int i = 0; i < MANY; i++) free(blocks[i]);
        }
    }
    MPI_Finalize();
    return verdict();
}
