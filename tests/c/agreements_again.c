/* A rank that is in too many agreements gets an error, and can try again when it has waited for one:
 * nobody has counted what failed.
 * RANKS: 3
 * OPTIONS: --survive
 */
#include "survive.h"

int main(int argc, char **argv) {
    enum { MOST = 12 };
    MPI_Comm two, other, several[MOST];
    MPI_Request requests[MOST];
    int rank, flags[MOST], flag = 3;
    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank == 2 ? MPI_UNDEFINED : 0, rank, &two));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank == 1 ? MPI_UNDEFINED : 0, rank, &other));
    for (int i = 0; rank != 2 && i < MOST; i++) OK(MPI_Comm_dup(two, &several[i]));
    for (int i = 0; i < MOST; i++) flags[i] = 1;
    if (rank == 0) {
        OK(MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN));
        for (int i = 0; i < MOST; i++) OK(MPIX_Comm_iagree(several[i], &flags[i], &requests[i]));
        CLASS(MPIX_Comm_agree(other, &flag), MPI_ERR_NO_MEM);
        OK(MPI_Send(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD));
        OK(MPI_Waitall(MOST, requests, MPI_STATUSES_IGNORE));
    } else if (rank == 1) {
        OK(MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < MOST; i++) OK(MPIX_Comm_iagree(several[i], &flags[i], &requests[i]));
        OK(MPI_Waitall(MOST, requests, MPI_STATUSES_IGNORE));
    }
    if (rank != 1) {
        flag = rank ? 6 : 3;
        OK(MPIX_Comm_agree(other, &flag));
        SAME(flag, 2);
    }
    MPI_Finalize();
    return verdict();
}
