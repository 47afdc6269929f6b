/* A buffer that is none is an error of class MPI_ERR_BUFFER, not a crash.
 * RANKS: 1
 */
#include "check.h"

int main(int argc, char **argv)
{
    int one = 1, two = 2;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    errors_return();
    void *none[] = {NULL, MPI_IN_PLACE};
    for (int i = 0; i < 2; i++) {
        CLASS(MPI_Send(none[i], 1, MPI_INT, 0, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
        CLASS(MPI_Ssend(none[i], 1, MPI_INT, 0, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
        CLASS(MPI_Isend(none[i], 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request), MPI_ERR_BUFFER);
        CLASS(MPI_Recv(none[i], 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_ERR_BUFFER);
        CLASS(MPI_Irecv(none[i], 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request), MPI_ERR_BUFFER);
        CLASS(MPI_Reduce_local(none[i], &two, 1, MPI_INT, MPI_SUM), MPI_ERR_BUFFER);
        CLASS(MPI_Reduce_local(&one, none[i], 1, MPI_INT, MPI_SUM), MPI_ERR_BUFFER);
    }
    CLASS(MPI_Reduce_local(&one, &one, 1, MPI_INT, MPI_SUM), MPI_ERR_BUFFER);
    /* Nothing is nowhere. */
    OK(MPI_Irecv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, &request));
    OK(MPI_Send(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Reduce_local(&one, &two, 1, MPI_INT, MPI_SUM));
    SAME(two, 3);
    MPI_Finalize();
    return verdict();
}
