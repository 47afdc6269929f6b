/* What was sent by a request that was freed, or out of an attached buffer, arrives, though its sender goes straight
 * into MPI_Finalize (MPI 5.0 section 11.2.2).
 * RANKS: 2 3
 */
#include "check.h"
#include <unistd.h>

enum { LARGE = 3 << 20 };
static char data[LARGE], room[MPI_BSEND_OVERHEAD + LARGE];

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) {
        usleep(50000);
        for (int from = 1; from < size; from++)
            for (int tag = 0; tag < 2; tag++) {
                memset(data, 0, LARGE);
                OK(MPI_Recv(data, LARGE, MPI_CHAR, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
                SAME(data[0], from);
                SAME(data[LARGE - 1], from);
            }
    } else {
        MPI_Request request;
        memset(data, rank, LARGE);
        OK(MPI_Isend(data, LARGE, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request));
        OK(MPI_Request_free(&request));
        SAME(request == MPI_REQUEST_NULL, 1);
        OK(MPI_Buffer_attach(room, sizeof room));
        OK(MPI_Bsend(data, LARGE, MPI_CHAR, 0, 1, MPI_COMM_WORLD));
    }
    MPI_Finalize();
    return verdict();
}
