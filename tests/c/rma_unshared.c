/* Where memory cannot be shared, a shared window is MPI_ERR_RMA_SHARED at every rank, on the communicator's error
 * handler (MPI 5.0 sections 12.2.3, 12.6.2); other windows, whose locks would lie there, find no memory.
 * RANKS: 1 2
 * ENV: PERUSAL_SHARED_HEAP=0
 */
#include "check.h"

int main(int argc, char **argv)
{
    MPI_Win win = MPI_WIN_NULL;
    MPI_Info apart;
    int own[4];
    void *base;
    char why[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Init(&argc, &argv);
    errors_return();
    OK(MPI_Info_create(&apart));
    OK(MPI_Info_set(apart, "alloc_shared_noncontig", "true"));
    CLASS(MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), MPI_ERR_RMA_SHARED);
    int code = MPI_Win_allocate_shared(0, 1, apart, MPI_COMM_WORLD, &base, &win);
    CLASS(code, MPI_ERR_RMA_SHARED);
    OK(MPI_Error_string(code, why, &length));
    CHECK(strstr(why, "PERUSAL_SHARED_HEAP") != NULL);
    CLASS(MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), MPI_ERR_NO_MEM);
    CLASS(MPI_Win_create(own, sizeof own, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_NO_MEM);
    CHECK(win == MPI_WIN_NULL);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Info_free(&apart));
    MPI_Finalize();
    return verdict();
}
