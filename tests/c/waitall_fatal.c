/* Where the failure of one of several requests ends the job, nobody can look at the statuses:
 * the message says which request failed, and of what.
 * RANKS: 2
 * EXIT: 19
 * STDERR: MPI_Waitall: request 2 of the array failed, message of 400 bytes does not fit into a receive buffer of 4 bytes
 */
#include "check.h"

enum { MANY = 4, TOO_LONG = 2 };

int main(int argc, char **argv)
{
    MPI_Request requests[MANY];
    int rank, data[100] = {0}, room[MANY];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < MANY; i++) {
        if (rank == 0)
            MPI_Irecv(&room[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &requests[i]);
        else
            MPI_Isend(data, i == TOO_LONG ? 100 : 1, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
