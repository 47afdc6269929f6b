/* One rank has a session, and the others none: it waits for nobody,
 * and what a rank has sent outlives its session and itself.
 * RANKS: 1 4
 */
#include "check.h"
#include <unistd.h>

enum { MANY = 2000, LARGE = 1 << 21 };

int main(void) {
    MPI_Session session;
    MPI_Group world, group;
    MPI_Comm comm;
    int rank, size;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &world));
    OK(MPI_Group_rank(world, &rank));
    OK(MPI_Group_size(world, &size));
    if (rank == 1) {
        OK(MPI_Group_free(&world));
        OK(MPI_Session_finalize(&session));
        return verdict();
    }
    /* Rank 0 sends more than there is room for, and what is received from its memory, and leaves. */
    int ranks[2] = {0, size - 1};
    if (rank == 0 || rank == size - 1) {
        static int numbers[MANY], got;
        char *large = malloc(LARGE), *buffer = malloc(LARGE + MPI_BSEND_OVERHEAD);
        MPI_Request request;
        OK(MPI_Group_incl(world, size > 1 ? 2 : 1, ranks, &group));
        OK(MPI_Comm_create_from_group(group, "first and last", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
        OK(MPI_Group_free(&group));
        if (rank == size - 1) OK(MPI_Irecv(large, LARGE, MPI_CHAR, 0, 1, comm, &request));
        if (rank == 0) {
            OK(MPI_Buffer_attach(buffer, LARGE + MPI_BSEND_OVERHEAD));
            memset(size > 1 ? large : buffer, 7, LARGE);
            if (size > 1) {
                OK(MPI_Bsend(large, LARGE, MPI_CHAR, 1, 1, comm));
                for (int i = 0; i < MANY; i++) {
                    numbers[i] = i;
                    MPI_Request freed;
                    OK(MPI_Isend(&numbers[i], 1, MPI_INT, 1, 2, comm, &freed));
                    OK(MPI_Request_free(&freed));
                }
                /* So large that it is read from this rank's memory,
                 * which nobody waits for but the end of the session. */
                MPI_Request freed;
                OK(MPI_Isend(large, LARGE, MPI_CHAR, 1, 3, comm, &freed));
                OK(MPI_Request_free(&freed));
            } else {
                OK(MPI_Send(buffer, LARGE, MPI_CHAR, 0, 1, comm));
            }
        }
        if (rank == size - 1) {
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            SAME(large[LARGE - 1], 7);
            for (int i = 0; size > 1 && i < MANY; i++) {
                OK(MPI_Recv(&got, 1, MPI_INT, 0, 2, comm, MPI_STATUS_IGNORE));
                SAME(got, i);
            }
            if (size > 1) {
                usleep(50000);
                memset(large, 0, LARGE);
                OK(MPI_Recv(large, LARGE, MPI_CHAR, 0, 3, comm, MPI_STATUS_IGNORE));
                SAME(large[0], 7);
                SAME(large[LARGE - 1], 7);
            }
        }
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Group_free(&world));
    OK(MPI_Session_finalize(&session));
    return verdict();
}
