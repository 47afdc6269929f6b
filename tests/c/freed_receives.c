/* Receives whose user has let go of them, and of their communicator, still get their messages: the last one closes it.
 * RANKS: 2
 */
#include "check.h"

enum { ROUNDS = 40, WINDOW = 5, TAG = 1 };

int main(int argc, char **argv)
{
    int rank, out[WINDOW], in[WINDOW];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm own;
        MPI_Comm_dup(MPI_COMM_WORLD, &own);
        for (int i = 0; i < WINDOW; i++) {
            in[i] = -1;
            if (rank == 0) continue;
            MPI_Request request;
            MPI_Irecv(&in[i], 1, MPI_INT, 0, TAG, own, &request);
            MPI_Request_free(&request);
            SAME(request == MPI_REQUEST_NULL, 1);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < WINDOW && rank == 0; i++) {
            out[i] = round * WINDOW + i;
            MPI_Send(&out[i], 1, MPI_INT, 1, TAG, own);
        }
        MPI_Comm_free(&own);
        /* What comes behind them has them come first. */
        int last = 77;
        if (rank == 0) MPI_Send(&last, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD);
        if (rank == 0) continue;
        MPI_Recv(&last, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < WINDOW; i++) SAME(in[i], round * WINDOW + i);
    }
    MPI_Finalize();
    return verdict();
}
