/* With a session alone MPI_COMM_WORLD names nothing before a communicator of all ranks has been made, and the error is
 * fatal: MPI_COMM_SELF has no error handler either.
 * RANKS: 1
 * EXIT: 5
 * STDERR: MPI_Comm_size: invalid communicator: it names nothing before MPI_Init and after MPI_Finalize; with sessions alone, not until one of them has made a communicator of all ranks
 */
#include <mpi.h>

int main(void) {
    MPI_Session session;
    int size;
    if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) != MPI_SUCCESS) return 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return 0;
}
