/* Partitioned messages that are freed without having been started give their memory back, whichever side frees first;
 * the next ones with the same tag find each other. So does a receive from the rank itself whose send never comes.
 * RANKS: 2
 * ENV: PERUSAL_SHARED_HEAP=8388608
 */
#include "check.h"

enum { PARTS = 4, INTS = 8192, ROUNDS = 300, TAG = 3 };

static int rank, data[PARTS * INTS];

static void init(MPI_Request *request)
{
    if (rank == 0) OK(MPI_Psend_init(data, PARTS, INTS, MPI_INT, 1, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, request));
    else OK(MPI_Precv_init(data, PARTS, INTS, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, request));
}

int main(void)
{
    MPI_Request request;
    OK(MPI_Init(NULL, NULL));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    for (int round = 0; round < ROUNDS && failures == 0; round++) {
        /* The sender frees its request before the receiver has made its own, after it, or at any time. */
        if (round % 3 == 1 && rank == 1) OK(MPI_Recv(NULL, 0, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        if (round % 3 == 2 && rank == 0) OK(MPI_Recv(NULL, 0, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        init(&request);
        if (round % 3 == 2 && rank == 1) OK(MPI_Send(NULL, 0, MPI_INT, 0, 1, MPI_COMM_WORLD));
        OK(MPI_Request_free(&request));
        SAME(request == MPI_REQUEST_NULL, 1);
        if (round % 3 == 1 && rank == 0) OK(MPI_Send(NULL, 0, MPI_INT, 1, 1, MPI_COMM_WORLD));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    init(&request);
    for (int i = 0; i < PARTS * INTS; i++) data[i] = rank == 0 ? i : -1;
    OK(MPI_Start(&request));
    if (rank == 0) OK(MPI_Pready_range(0, PARTS - 1, request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < PARTS * INTS && failures == 0; i++) SAME(data[i], i);
    OK(MPI_Request_free(&request));

    OK(MPI_Precv_init(data, PARTS, INTS, MPI_INT, 0, TAG, MPI_COMM_SELF, MPI_INFO_NULL, &request));
    OK(MPI_Request_free(&request));
    OK(MPI_Finalize());
    return verdict();
}
