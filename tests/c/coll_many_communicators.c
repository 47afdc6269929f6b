/* More communicators at once than there are areas for collectives: those that get none go by messages;
 * freed ones make room.
 * RANKS: 2 3
 */
#include "check.h"

enum { MANY = 260 };

int main(int argc, char **argv)
{
    static MPI_Comm comms[MANY];
    static int out[500], in[500];
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < MANY; i++) OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
        for (int i = 0; i < MANY; i++) {
            int n = i % 26 == 0 ? 500 : 2;
            for (int k = 0; k < n; k++) out[k] = rank + i + k;
            OK(MPI_Allreduce(out, in, n, MPI_INT, MPI_SUM, comms[i]));
            SAME(in[n - 1], size * (size - 1) / 2 + size * (i + n - 1));
            OK(MPI_Barrier(comms[i]));
        }
        for (int i = 0; i < MANY; i++) OK(MPI_Comm_free(&comms[i]));
    }
    MPI_Finalize();
    return failures != 0;
}
