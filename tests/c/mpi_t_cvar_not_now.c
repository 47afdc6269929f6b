/* A variable that all ranks must change together cannot be set while a collective operation of this rank is under way.
 * RANKS: 2
 */
#include "check.h"

int main(int argc, char **argv) {
    int provided, index, count, rank, way = -1, messages = 1;
    MPI_T_cvar_handle barrier;
    MPI_Request request;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    OK(MPI_T_cvar_get_index("coll_barrier", &index));
    OK(MPI_T_cvar_handle_alloc(index, NULL, &barrier, &count));
    if (rank == 0) {
        /* Rank 1 comes to this barrier only when it has got the message below. */
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        SAME(MPI_T_cvar_write(barrier, &messages), MPI_T_ERR_CVAR_SET_NOT_NOW);
        MPI_Send(&rank, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&way, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    OK(MPI_T_cvar_write(barrier, &messages));
    OK(MPI_T_cvar_read(barrier, &way));
    SAME(way, messages);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return verdict();
}
