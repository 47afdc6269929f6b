/* A rank that writes garbage into its ring makes its peer report corruption, and neither crash nor hang.
 * RANKS: 2
 * EXIT: 17
 * STDERR: rank 0: MPI_Recv: corrupt record from rank 1
 */
#include "job_memory.h"
#include <time.h>

/* Makes every cell that rank 1 has not used yet look as if it held a record, of random kind, length and content. */
static void spoil(char *memory, unsigned seed)
{
    uint32_t cells = cells_of(memory);
    char *from_1_to_0 = ring_of(memory, 1, 0);
    srand(seed);
    for (uint64_t position = cells - 1; position > 0; position--) {
        char *cell = from_1_to_0 + CONTROL + position * CELL;
        for (int byte = 8; byte < CELL; byte++) cell[byte] = (char)rand();
        /* Now and then a length that no record can have; else everything must be recognised by kind, ids and sizes. */
        uint64_t length = rand() % 8 == 0 ? (uint64_t)rand() & 0xffffff : (uint64_t)rand() % 64;
        uint64_t kind_and_length = (uint64_t)(rand() & 15) << 32 | length << 40;
        __atomic_store_n((uint64_t *)cell, (position + 1) | kind_and_length, __ATOMIC_RELEASE);
    }
}

int main(int argc, char **argv)
{
    int rank, number = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        OK(MPI_Recv(&number, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        /* Nobody sends this: the wait ends with what is wrong. */
        MPI_Recv(&number, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return 1;
    }
    OK(MPI_Send(&number, 1, MPI_INT, 0, 1, MPI_COMM_WORLD));
    char *memory = job_memory();
    spoil(memory, (unsigned)time(NULL));
    set_flag(memory, 1, 0);
    sleep(60);
    return 1;
}
