/* What a tool writes before MPI_Init reaches the engine, and wins over the environment; what the launcher has decided
 * cannot be written even then.
 * RANKS: 2
 * ENV: PERUSAL_SPIN_US=17
 * ENV: PERUSAL_YIELDS=9
 */
#include "check.h"

static MPI_T_cvar_handle handle_of(const char *name) {
    int index = -1, count = 0;
    MPI_T_cvar_handle handle;
    OK(MPI_T_cvar_get_index(name, &index));
    OK(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count));
    return handle;
}

int main(int argc, char **argv) {
    int provided, on = 1, off = 0, fences = -1;
    unsigned long spin = 0, yields = 0, limit = 3000, cells = 0, other = 8;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    MPI_T_cvar_handle spins = handle_of("spin_us"), gives = handle_of("yields"), eager = handle_of("eager_limit"),
                      fence = handle_of("sender_fences"), ring = handle_of("ring_cells"), bind = handle_of("bind_to");
    OK(MPI_T_cvar_read(spins, &spin));
    SAME(spin, 17);
    OK(MPI_T_cvar_read(ring, &cells));
    CHECK(cells >= 8);
    spin = 19;
    OK(MPI_T_cvar_write(spins, &spin));
    OK(MPI_T_cvar_write(eager, &limit));
    OK(MPI_T_cvar_write(fence, &off));
    OK(MPI_T_cvar_write(fence, &on));
    SAME(MPI_T_cvar_write(ring, &other), MPI_T_ERR_CVAR_SET_NEVER);
    SAME(MPI_T_cvar_write(bind, "none"), MPI_T_ERR_CVAR_SET_NEVER);
    spin = 10000000;
    SAME(MPI_T_cvar_write(spins, &spin), MPI_T_ERR_INVALID);
    OK(MPI_T_cvar_read(spins, &spin));
    SAME(spin, 19);

    OK(MPI_Init(&argc, &argv));
    OK(MPI_T_cvar_read(spins, &spin));
    SAME(spin, 19);
    OK(MPI_T_cvar_read(gives, &yields));
    SAME(yields, 9);
    OK(MPI_T_cvar_read(eager, &limit));
    SAME(limit, 3000);
    OK(MPI_T_cvar_read(fence, &fences));
    SAME(fences, 1);
    SAME(MPI_T_cvar_write(fence, &off), MPI_T_ERR_CVAR_SET_NEVER);
    unsigned long now = 0;
    OK(MPI_T_cvar_read(ring, &now));
    SAME(now, cells);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return verdict();
}
