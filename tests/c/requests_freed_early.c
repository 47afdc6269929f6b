/* Requests of partitioned messages and of collective operations cannot be freed while they are under way; those that
 * are complete can, without a wait, and give their memory back.
 * RANKS: 2
 * ENV: PERUSAL_SHARED_HEAP=8388608
 */
#include "check.h"

enum { PARTS = 4, INTS = 256, ROUNDS = 1000 };

static int rank, data[PARTS * INTS];

static void partitioned(MPI_Request *request)
{
    int other = 1 - rank;
    if (rank == 0) OK(MPI_Psend_init(data, PARTS, INTS, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_INFO_NULL, request));
    else OK(MPI_Precv_init(data, PARTS, INTS, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_INFO_NULL, request));
}

int main(void)
{
    MPI_Request request;
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));

    partitioned(&request);
    OK(MPI_Start(&request));
    if (rank == 0) OK(MPI_Pready_range(0, PARTS - 2, request));
    MPI_Request kept = request;
    CLASS(MPI_Request_free(&request), MPI_ERR_REQUEST);
    SAME(request == kept, 1);
    /* Of a list with a partition that is marked already, none is marked. */
    if (rank == 0) {
        int some[] = {PARTS - 1, 0};
        CLASS(MPI_Pready_list(2, some, request), MPI_ERR_ARG);
        /* Not before the receiver has tried, too. */
        OK(MPI_Recv(NULL, 0, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Pready(PARTS - 1, request));
    } else {
        OK(MPI_Send(NULL, 0, MPI_INT, 0, 3, MPI_COMM_WORLD));
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&request));

    for (int round = 0; round < ROUNDS && failures == 0; round++) {
        int over = 0;
        partitioned(&request);
        OK(MPI_Start(&request));
        if (rank == 0) OK(MPI_Pready_range(0, PARTS - 1, request));
        while (!over && failures == 0) OK(MPI_Request_get_status(request, &over, MPI_STATUS_IGNORE));
        OK(MPI_Request_free(&request));
    }

    if (rank == 0) {
        OK(MPI_Ibarrier(MPI_COMM_WORLD, &request));
        CLASS(MPI_Request_free(&request), MPI_ERR_REQUEST);
        OK(MPI_Send(data, 1, MPI_INT, 1, 2, MPI_COMM_WORLD));
    } else {
        OK(MPI_Recv(data, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Ibarrier(MPI_COMM_WORLD, &request));
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));

    OK(MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    if (rank == 0) {
        OK(MPI_Start(&request));
        CLASS(MPI_Request_free(&request), MPI_ERR_REQUEST);
        OK(MPI_Send(data, 1, MPI_INT, 1, 2, MPI_COMM_WORLD));
    } else {
        OK(MPI_Recv(data, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Start(&request));
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&request));

    CLASS(MPI_Precv_init(data, 1, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request), MPI_ERR_RANK);
    CLASS(MPI_Precv_init(data, 1, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &request), MPI_ERR_TAG);
    OK(MPI_Finalize());
    return verdict();
}
