/* MPIX_Comm_revoke ends what the other members do, without any death.
 * RANKS: 2 4
 */
#include "survive.h"

enum { LONG = 1 << 20 };
static char big[LONG];

int main(void) {
    int rank, size, value = 0, flag = -1;
    MPI_Comm comm, other;
    MPI_Request requests[3];
    MPI_Status statuses[3];
    MPI_Init(NULL, NULL);
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < 20; round++) {
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
        OK(MPIX_Comm_is_revoked(comm, &flag));
        SAME(flag, 0);
        OK(MPI_Barrier(comm));
        if (rank == 0) {
            OK(MPIX_Comm_revoke(comm));
            OK(MPIX_Comm_revoke(comm));
        } else if (round % 2) {
            CLASS(MPI_Recv(&value, 1, MPI_INT, 0, 1, comm, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
        } else {
            OK(MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1, comm, &requests[0]));
            OK(MPI_Isend(big, LONG, MPI_CHAR, 0, 2, comm, &requests[1]));
            OK(MPI_Issend(big, 4, MPI_CHAR, rank, 2, comm, &requests[2]));
            CLASS(MPI_Waitall(3, requests, statuses), MPI_ERR_IN_STATUS);
            for (int i = 0; i < 3; i++) SAME(statuses[i].MPI_ERROR, MPIX_ERR_REVOKED);
        }
        OK(MPIX_Comm_is_revoked(comm, &flag));
        SAME(flag, 1);
        CLASS(MPI_Send(&value, 1, MPI_INT, (rank + 1) % size, 1, comm), MPIX_ERR_REVOKED);
        CLASS(MPI_Barrier(comm), MPIX_ERR_REVOKED);
        CLASS(MPI_Allreduce(&rank, &value, 1, MPI_INT, MPI_SUM, comm), MPIX_ERR_REVOKED);
        CLASS(MPI_Comm_dup(comm, &other), MPIX_ERR_REVOKED);
        CLASS(MPI_Probe(MPI_ANY_SOURCE, 1, comm, statuses), MPIX_ERR_REVOKED);
        /* These work on what is revoked. */
        flag = rank == 0 ? 6 : 3;
        OK(MPIX_Comm_agree(comm, &flag));
        SAME(flag, size > 1 ? 2 : 6);
        other = shrunk(comm, size);
        OK(MPI_Allreduce(&rank, &value, 1, MPI_INT, MPI_SUM, other));
        SAME(value, size * (size - 1) / 2);
        OK(MPI_Comm_free(&other));
        OK(MPI_Comm_free(&comm));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    MPI_Finalize();
    return verdict();
}
