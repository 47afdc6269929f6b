/* Where ranks outnumber CPUs, a rank that waits in a collective gives its CPU away as often as was written to
 * coll_yields before it waits as for a message. Where they do not, it never does.
 * RANKS: 3
 * ENV: PERUSAL_YIELDS=0
 * ENV: PERUSAL_COLL_BARRIER=counted
 */
#include "mpi_t_counter.h"
#include "mpi_t_variable.h"
#include <unistd.h>

/* Beside something that computes a rank tries only at each 256th wait whether giving its CPU away has become worth
 * while. */
enum { TRIES = 600, LATE_US = 3000 };
static int rank;

/* How often rank 0 gives its CPU away while another is late for a barrier. */
static unsigned long long given_away(MPI_T_pvar_handle yields)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    unsigned long long before = read_of(yields);
    if (rank == 1) usleep(LATE_US);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    unsigned long long given = read_of(yields) - before;
    OK(MPI_Bcast(&given, 1, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD));
    return given;
}

int main(int argc, char **argv)
{
    static const struct { unsigned long written, least, most; } ways[] = {{0, 0, 0}, {100000, 1, ~0ul}, {7, 1, 7}, {0, 0, 0}};
    int provided, oversubscribed = 0;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    OK(MPI_T_pvar_session_create(&session));
    MPI_T_pvar_handle yields = counter("yields");
    MPI_T_cvar_handle coll = variable("coll_yields");
    /* On by default where ranks outnumber CPUs. */
    OK(MPI_T_cvar_read(variable("keep_apart"), &oversubscribed));
    for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++) {
        unsigned long long least = oversubscribed ? ways[i].least : 0, most = oversubscribed ? ways[i].most : 0, given = 0;
        int tries = 0;
        OK(MPI_T_cvar_write(coll, &ways[i].written));
        do given = given_away(yields);
        while ((given < least || given > most) && tries++ < TRIES);
        if (given < least || given > most) fprintf(stderr, "way %u: gave its CPU away %llu times\n", i, given);
        CHECK(given >= least && given <= most);
    }
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return verdict();
}
