/* The leader of the other group has died: no member of this one gets an intercommunicator, and all get the same error,
 * also those who do not have the peer communicator: that of the leader's death, and not of a later one.
 * RANKS: 4 6
 * OPTIONS: --survive
 */
#include "survive.h"

int main(int argc, char **argv) {
    int rank, code, length;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Comm local, between;
    MPI_Init(&argc, &argv);
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &local));
    OK(MPI_Comm_set_errhandler(local, MPI_ERRORS_RETURN));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 1) die();
    await_deaths(MPI_COMM_WORLD, 1);
    if (rank == 3) die();
    await_deaths(MPI_COMM_WORLD, 2);
    code = MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &between);
    CLASS(code, MPIX_ERR_PROC_FAILED);
    OK(MPI_Error_string(code, text, &length));
    if (rank % 2 == 0) CHECK(strstr(text, "rank 1 "));
    OK(MPI_Comm_free(&local));
    MPI_Finalize();
    return verdict();
}
