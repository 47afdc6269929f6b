/* With a session alone MPI_COMM_WORLD can be used as soon as the session has made a communicator of all ranks.
 * RANKS: 1 3
 */
#include "check.h"

int main(void) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    int rank, size, sum, flag, result;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, "all", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Group_free(&group));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_compare(comm, MPI_COMM_WORLD, &result));
    SAME(result, MPI_CONGRUENT);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    SAME(sum, size * (size - 1) / 2);
    int to = (rank + 1) % size, from = (rank + size - 1) % size, got = -1;
    OK(MPI_Sendrecv(&rank, 1, MPI_INT, to, 1, &got, 1, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    SAME(got, from);
    OK(MPI_Allreduce(&rank, &got, 1, MPI_INT, MPI_MAX, MPI_COMM_SELF));
    SAME(got, rank);
    OK(MPI_Initialized(&flag));
    SAME(flag, 0);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Session_finalize(&session));
    return verdict();
}
