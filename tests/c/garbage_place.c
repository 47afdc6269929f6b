/* A rank that announces a message at a place outside of the shared heap is reported by name; nobody looks there.
 * RANKS: 2
 * EXIT: 17
 * STDERR: corrupt record from rank 1: 100000 bytes at 1152921504606846976, outside of the shared heap
 */
#include "job_memory.h"

enum { RTS = 3 };

int main(int argc, char **argv)
{
    int rank, number = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        OK(MPI_Recv(&number, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MPI_Recv(&number, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return 1;
    }
    OK(MPI_Send(&number, 1, MPI_INT, 0, 1, MPI_COMM_WORLD));
    char *memory = job_memory();
    uint32_t cells = cells_of(memory);
    char *first = ring_of(memory, 1, 0) + CONTROL;
    /* The first cell after those that it has used; what is said there is rank 1's, of tag 2, in the world. */
    uint64_t position = 1;
    while (position < cells && *(uint32_t *)(first + position * CELL) == position + 1) position++;
    struct {
        uint32_t context, tag, source, id;
        uint64_t bytes, address, place, rest;
    } record = {0, 2, 1, 0, 100000, 0, (uint64_t)1 << 60, 0};
    memcpy(first + position * CELL + 8, &record, sizeof record);
    __atomic_store_n((uint64_t *)(first + position * CELL), (position + 1) | (uint64_t)RTS << 32 | (uint64_t)32 << 40, __ATOMIC_RELEASE);
    set_flag(memory, 1, 0);
    sleep(60);
    return 1;
}
