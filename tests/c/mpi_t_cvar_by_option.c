/* Variables of the whole job that -x and -genv set are in force: the launcher makes the job by them.
 * RANKS: 2
 * OPTIONS: -x PERUSAL_RING_CELLS=512 -genv PERUSAL_SHARED_HEAP 0 -x PERUSAL_BIND_TO=none
 */
#include "mpi_t_variable.h"

static unsigned long value_of(const char *name) {
    MPI_T_cvar_handle handle = variable(name);
    unsigned long value = 0;
    OK(MPI_T_cvar_read(handle, &value));
    OK(MPI_T_cvar_handle_free(&handle));
    return value;
}

int main(int argc, char **argv) {
    int provided;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    SAME(value_of("ring_cells"), 512);
    SAME(value_of("shared_heap"), 0);
    OK(MPI_T_finalize());
    OK(MPI_Finalize());
    return verdict();
}
