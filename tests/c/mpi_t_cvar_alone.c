/* A program without launcher makes its own job: even the rings can be chosen before MPI_Init.
 */
#include "check.h"

int main(int argc, char **argv) {
    int provided, index, count;
    unsigned long cells = 0;
    MPI_T_cvar_handle ring;
    /* As if nobody had launched it. */
    unsetenv("PERUSAL_JOB_FD");
    unsetenv("PERUSAL_SIZE");
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_cvar_get_index("ring_cells", &index));
    OK(MPI_T_cvar_handle_alloc(index, NULL, &ring, &count));
    cells = 100;
    SAME(MPI_T_cvar_write(ring, &cells), MPI_T_ERR_INVALID);
    cells = 1024;
    OK(MPI_T_cvar_write(ring, &cells));
    OK(MPI_Init(&argc, &argv));
    cells = 0;
    OK(MPI_T_cvar_read(ring, &cells));
    SAME(cells, 1024);
    cells = 64;
    SAME(MPI_T_cvar_write(ring, &cells), MPI_T_ERR_CVAR_SET_NEVER);
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return verdict();
}
