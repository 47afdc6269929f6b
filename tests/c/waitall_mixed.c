/* MPI_Waitall takes plain messages one after the other, and hands over to the slow path at what is none.
 * RANKS: 2
 */
#include "check.h"

enum { ALL = 7, TAG = 3 };

/* A null handle, plain receives, a persistent one, an operation in the background, a message that does not fit. */
static void everything(int rank, int early)
{
    int in[ALL] = {0}, out[2] = {10, 11};
    MPI_Request requests[ALL], kept;
    MPI_Status statuses[ALL];
    memset(statuses, 77, sizeof statuses);
    if (rank == 0) {
        if (early) {
            MPI_Ibarrier(MPI_COMM_WORLD, requests);
            MPI_Barrier(MPI_COMM_WORLD);
        }
        for (int i = 0; i < 5; i++) MPI_Send(out, i == 3 ? 2 : 1, MPI_INT, 1, TAG, MPI_COMM_WORLD);
        if (!early) {
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Ibarrier(MPI_COMM_WORLD, requests);
        }
        OK(MPI_Wait(requests, MPI_STATUS_IGNORE));
        return;
    }
    if (!early) MPI_Barrier(MPI_COMM_WORLD);
    requests[0] = MPI_REQUEST_NULL;
    MPI_Irecv(&in[1], 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Irecv(&in[2], 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &requests[2]);
    MPI_Recv_init(&in[3], 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &requests[3]);
    MPI_Start(&requests[3]);
    kept = requests[3];
    MPI_Irecv(&in[4], 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &requests[4]);
    MPI_Irecv(&in[5], 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &requests[5]);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[6]);
    if (early) MPI_Barrier(MPI_COMM_WORLD);
    CLASS(MPI_Waitall(ALL, requests, statuses), MPI_ERR_IN_STATUS);
    for (int i = 0; i < ALL; i++) {
        int count, message = i > 0 && i < 6;
        SAME(statuses[i].MPI_ERROR == MPI_SUCCESS, i != 4);
        SAME(requests[i], i == 3 ? kept : MPI_REQUEST_NULL);
        SAME(in[i], message ? 10 : 0);
        MPI_Get_count(&statuses[i], MPI_INT, &count);
        SAME(count, message);
        if (message) SAME(statuses[i].MPI_TAG, TAG);
    }
    SAME(statuses[0].MPI_SOURCE, MPI_ANY_SOURCE);
    CLASS(statuses[4].MPI_ERROR, MPI_ERR_TRUNCATE);
    MPI_Request_free(&requests[3]);
}

/* A handle that is none is found before anything is waited for. */
static void wrong_handle(int rank)
{
    int in[2], out = 5;
    MPI_Request requests[3];
    if (rank == 1) {
        MPI_Irecv(&in[0], 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &requests[0]);
        requests[1] = (MPI_Request)(size_t)123456789;
        MPI_Irecv(&in[1], 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &requests[2]);
        CLASS(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE), MPI_ERR_REQUEST);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 2 && rank == 0; i++) MPI_Send(&out, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD);
    if (rank == 0) return;
    requests[1] = MPI_REQUEST_NULL;
    OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    SAME(in[0] + in[1], 10);
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    errors_return();
    everything(rank, 1);
    everything(rank, 0);
    wrong_handle(rank);
    MPI_Finalize();
    return verdict();
}
