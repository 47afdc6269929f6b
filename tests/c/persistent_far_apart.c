/* Persistent collectives that are started in different orders at different ranks do not meet one another's, however
 * many nonblocking ones were begun between them.
 * RANKS: 2
 */
#include "check.h"

int main(int argc, char **argv) {
    enum { BETWEEN = (1 << 18) - 1 };
    MPI_Request requests[2], one;
    int rank, values[2];
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Bcast_init(&values[0], 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    for (int i = 0; i < BETWEEN; i++) {
        OK(MPI_Ibarrier(MPI_COMM_WORLD, &one));
        OK(MPI_Wait(&one, MPI_STATUS_IGNORE));
    }
    OK(MPI_Bcast_init(&values[1], 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    for (int turn = 0; turn < 10; turn++) {
        values[0] = rank ? -1 : 10 + turn;
        values[1] = rank ? -1 : 20 + turn;
        OK(MPI_Start(&requests[rank]));
        OK(MPI_Start(&requests[1 - rank]));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        SAME(values[0], 10 + turn);
        SAME(values[1], 20 + turn);
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
    MPI_Finalize();
    return verdict();
}
