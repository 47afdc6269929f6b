/* Rank 0 ends without ever using MPI, and the others have a session without it: nobody misses it.
 * RANKS: 3
 */
#include "check.h"
#include <unistd.h>

enum { LARGE = 1 << 22 };

int main(void) {
    if (strcmp(getenv("PERUSAL_RANK"), "0") == 0) return 0;
    MPI_Session session;
    MPI_Group all, some;
    MPI_Comm comm;
    int nobody[1] = {0}, rank;
    /* By then the launcher has most likely seen rank 0 end. */
    usleep(100000);
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &all));
    OK(MPI_Group_excl(all, 1, nobody, &some));
    OK(MPI_Comm_create_from_group(some, "some", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&some));
    OK(MPI_Comm_rank(comm, &rank));
    char *buffer = calloc(LARGE, 1);
    if (rank == 0) {
        buffer[LARGE - 1] = 5;
        OK(MPI_Send(buffer, LARGE, MPI_CHAR, 1, 0, comm));
    } else {
        /* Long enough for a look at who is alive. */
        usleep(300000);
        OK(MPI_Recv(buffer, LARGE, MPI_CHAR, MPI_ANY_SOURCE, 0, comm, MPI_STATUS_IGNORE));
        SAME(buffer[LARGE - 1], 5);
    }
    OK(MPI_Comm_free(&comm));
    OK(MPI_Session_finalize(&session));
    return verdict();
}
