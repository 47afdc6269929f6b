/* Messages with a rank that has died: each operation with it raises MPIX_ERR_PROC_FAILED, those among others go on.
 * RANKS: 3 5
 * OPTIONS: --survive
 * STDERR: killed by SIGKILL (signal 9); the others go on
 */
#include "survive.h"

enum { LONG = 1 << 20 };
static char big[LONG], room[LONG];

int main(void) {
    int rank, size, value = 0, flag;
    MPI_Request requests[5];
    MPI_Status status, statuses[4];
    MPI_Message message;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int dead = size - 1;
    if (rank == dead) {
        /* What it has sent before is received. */
        value = 77;
        MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        MPI_Recv(&value, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        die();
    }
    if (rank == 0) {
        /* Posted, announced and synchronous before the death. */
        OK(MPI_Irecv(room, 8, MPI_CHAR, dead, 3, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Isend(big, LONG, MPI_CHAR, dead, 4, MPI_COMM_WORLD, &requests[1]));
        OK(MPI_Issend(big, 8, MPI_CHAR, dead, 5, MPI_COMM_WORLD, &requests[2]));
        OK(MPI_Isend(big, 8, MPI_CHAR, dead, 10, MPI_COMM_WORLD, &requests[4]));
        OK(MPI_Irecv(&value, 1, MPI_INT, 1, 6, MPI_COMM_WORLD, &requests[3]));
        int go = 1;
        OK(MPI_Send(&go, 1, MPI_INT, dead, 2, MPI_COMM_WORLD));
        CLASS(MPI_Waitall(3, requests, statuses), MPI_ERR_IN_STATUS);
        for (int i = 0; i < 3; i++) SAME(statuses[i].MPI_ERROR, MPIX_ERR_PROC_FAILED);
        /* Whether it was received before nobody can say any more. */
        OK(MPI_Cancel(&requests[4]));
        MPI_Wait(&requests[4], &status);
        CLASS(MPI_Recv(room, 1, MPI_INT, dead, 9, MPI_COMM_WORLD, &status), MPIX_ERR_PROC_FAILED);
        OK(MPI_Recv(&value, 1, MPI_INT, dead, 1, MPI_COMM_WORLD, &status));
        SAME(value, 77);
        CLASS(MPI_Send(&value, 1, MPI_INT, dead, 9, MPI_COMM_WORLD), MPIX_ERR_PROC_FAILED);
        CLASS(MPI_Send(big, LONG, MPI_CHAR, dead, 9, MPI_COMM_WORLD), MPIX_ERR_PROC_FAILED);
        CLASS(MPI_Ssend(big, 4, MPI_CHAR, dead, 9, MPI_COMM_WORLD), MPIX_ERR_PROC_FAILED);
        CLASS(MPI_Probe(dead, 9, MPI_COMM_WORLD, &status), MPIX_ERR_PROC_FAILED);
        CLASS(MPI_Iprobe(dead, 9, MPI_COMM_WORLD, &flag, &status), MPIX_ERR_PROC_FAILED);
        CLASS(MPI_Mprobe(dead, 9, MPI_COMM_WORLD, &message, &status), MPIX_ERR_PROC_FAILED);
        CLASS(MPI_Sendrecv(&value, 1, MPI_INT, 1, 8, room, 1, MPI_INT, dead, 8, MPI_COMM_WORLD, &status),
              MPIX_ERR_PROC_FAILED);
        /* A request that begins after the death is started, and fails when it is waited for. */
        OK(MPI_Isend(&value, 1, MPI_INT, dead, 9, MPI_COMM_WORLD, &requests[0]));
        CLASS(MPI_Wait(&requests[0], &status), MPIX_ERR_PROC_FAILED);
        OK(MPI_Send_init(&value, 1, MPI_INT, dead, 9, MPI_COMM_WORLD, &requests[0]));
        for (int i = 0; i < 2; i++) {
            OK(MPI_Start(&requests[0]));
            CLASS(MPI_Wait(&requests[0], &status), MPIX_ERR_PROC_FAILED);
        }
        OK(MPI_Request_free(&requests[0]));
        /* Among the others. */
        for (int other = 1; other < dead; other++) {
            OK(MPI_Send(&other, 1, MPI_INT, other, 7, MPI_COMM_WORLD));
            OK(MPI_Send(big, LONG, MPI_CHAR, other, 7, MPI_COMM_WORLD));
        }
        OK(MPI_Wait(&requests[3], &status));
        SAME(value, 66);
    } else {
        OK(MPI_Recv(&value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, &status));
        SAME(value, rank);
        OK(MPI_Recv(room, LONG, MPI_CHAR, 0, 7, MPI_COMM_WORLD, &status));
        if (rank == 1) {
            value = 66;
            OK(MPI_Send(&value, 1, MPI_INT, 0, 6, MPI_COMM_WORLD));
            OK(MPI_Recv(&value, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, &status));
        }
        CLASS(MPI_Recv(room, 1, MPI_INT, dead, 9, MPI_COMM_WORLD, &status), MPIX_ERR_PROC_FAILED);
    }
    MPI_Finalize();
    return verdict();
}
