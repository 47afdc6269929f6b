/* A function of the program's that stores into both its arguments spoils no other rank's operands, though these lie in
 * memory that all ranks see.
 * RANKS: 2 3
 * ENV: PERUSAL_USABLE_CPUS=2
 */
#include "check.h"

enum { COUNT = 100000 };

static int rank;

/* Rank 0 leaves what it is given as it should. */
static void sum(void *in, void *inout, int *count, MPI_Datatype *type)
{
    long *left = in, *right = inout;
    (void)type;
    for (int at = 0; at < *count; at++) {
        right[at] += left[at];
        if (rank > 0) left[at] = -1;
    }
}

int main(void)
{
    MPI_Init(NULL, NULL);
    errors_return();
    int size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Op op;
    OK(MPI_Op_create(sum, 1, &op));
    long *own, *results;
    OK(MPI_Alloc_mem(COUNT * sizeof *own, MPI_INFO_NULL, &own));
    OK(MPI_Alloc_mem(COUNT * sizeof *results, MPI_INFO_NULL, &results));
    for (int at = 0; at < COUNT; at++) own[at] = 7;
    for (int round = 0; round < 3; round++) {
        for (int at = 0; rank > 0 && at < COUNT; at++) own[at] = 7;
        OK(MPI_Allreduce(own, results, COUNT, MPI_LONG, op, MPI_COMM_WORLD));
        int same = 0, kept = 0;
        for (int at = 0; at < COUNT; at++) same += results[at] == 7 * size, kept += own[at] == 7;
        SAME(same, COUNT);
        if (rank == 0) SAME(kept, COUNT);
    }
    OK(MPI_Free_mem(own));
    OK(MPI_Free_mem(results));
    OK(MPI_Op_free(&op));
    MPI_Finalize();
    return verdict();
}
