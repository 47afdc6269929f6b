/* A combined send and receive cannot be cancelled: the call says so,
 * and the operation goes on (MPI 5.0 sections 3.8.4, 3.10).
 * RANKS: 1 2
 */
#include "check.h"

enum { TAG = 7 };

int main(int argc, char **argv) {
    int rank, size, out, in;
    MPI_Request request;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    for (int in_place = 0; in_place < 2; in_place++) {
        int cancelled = -1;
        out = in = 100 + rank;
        if (in_place) OK(MPI_Isendrecv_replace(&in, 1, MPI_INT, next, TAG, before, TAG, MPI_COMM_WORLD, &request));
        else OK(MPI_Isendrecv(&out, 1, MPI_INT, next, TAG, &in, 1, MPI_INT, before, TAG, MPI_COMM_WORLD, &request));
        CLASS(MPI_Cancel(&request), MPI_ERR_REQUEST);
        OK(MPI_Wait(&request, &status));
        OK(MPI_Test_cancelled(&status, &cancelled));
        SAME(cancelled, 0);
        SAME(in, 100 + before);
    }
    MPI_Finalize();
    return verdict();
}
