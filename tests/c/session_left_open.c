/* A rank that ends with a session open, after another was finalized, has not ended in order.
 * RANKS: 2
 * EXIT: 1
 * STDERR: exited with status 0 before MPI_Session_finalize
 */
#include <mpi.h>

int main(void) {
    MPI_Session session;
    if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) != MPI_SUCCESS) return 2;
    if (MPI_Session_finalize(&session) != MPI_SUCCESS) return 2;
    if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) != MPI_SUCCESS) return 2;
    return 0;
}
