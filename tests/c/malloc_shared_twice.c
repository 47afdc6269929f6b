/* A block of the shared heap that is freed twice ends the program as the C library would, with a word.
 * RANKS: 2
 * ENV: PERUSAL_SHARE_HEAP=on
 * EXIT: 134
 * STDERR: free(): no block of the shared heap begins at this address
 */
#include "check.h"

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    /* The compiler must not see through it. */
    char *volatile block = malloc(100000);
    char *again = block;
    free(block);
    MPI_Barrier(MPI_COMM_WORLD);
    free(again);
    MPI_Finalize();
    return verdict();
}
