/* Rank 0 takes a message back that lies at rank 1, and sends another one with the same tag,
 * which rank 1 receives by a matched probe. */
#include <mpi.h>

enum { TAG = 4, SEEN, BACK };

int main(int argc, char **argv)
{
    int rank, data = 0, flag = 0;
    MPI_Request request;
    MPI_Message message;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        MPI_Issend(&data, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, &request);
        MPI_Recv(NULL, 0, MPI_INT, 1, SEEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &flag);
        if (!flag) MPI_Abort(MPI_COMM_WORLD, 3);
        MPI_Send(NULL, 0, MPI_INT, 1, BACK, MPI_COMM_WORLD);
        MPI_Send(&data, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD);
    } else {
        while (!flag) MPI_Iprobe(0, TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        MPI_Send(NULL, 0, MPI_INT, 0, SEEN, MPI_COMM_WORLD);
        MPI_Recv(NULL, 0, MPI_INT, 0, BACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Mprobe(0, TAG, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(&data, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
