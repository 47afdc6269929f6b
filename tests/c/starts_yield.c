/* Where ranks outnumber CPUs, the start of a collective that cannot go on gives the CPU away once, so that the other
 * members come meanwhile; but not again and again while they do not come. coll_yields=0 turns it off.
 * RANKS: 4
 */
#include "mpi_t_counter.h"
#include "mpi_t_variable.h"

/* Of STARTS in vain the first two yield, and each 32nd. */
enum { STARTS = 640, LATE = 2 + STARTS / 32, TRIES = 200 };
static int rank;
static long data[STARTS];
static MPI_T_pvar_handle yields;

/* How often rank 1 gives its CPU away in starts of operations to which rank 0 comes after the last of them. */
static unsigned long long given_away(int try)
{
    static MPI_Request requests[STARTS];
    unsigned long long given = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) OK(MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < STARTS; i++) {
        data[i] = rank == 0 ? try + i : -1;
        unsigned long long before = read_of(yields);
        OK(MPI_Ibcast(&data[i], 1, MPI_LONG, 0, MPI_COMM_WORLD, &requests[i]));
        given += read_of(yields) - before;
    }
    if (rank == 1) OK(MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD));
    OK(MPI_Waitall(STARTS, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < STARTS; i++) SAME(data[i], try + i);
    OK(MPI_Bcast(&given, 1, MPI_UNSIGNED_LONG_LONG, 1, MPI_COMM_WORLD));
    return given;
}

/* `least`: of several tries one reaches it. In the others the job's yields may be slow. */
static void expect(unsigned long long least, unsigned long long most)
{
    unsigned long long given = 0;
    int try = 0;
    do {
        given = given_away(try);
        if (given > most) fprintf(stderr, "try %d: gave its CPU away %llu times, more than %llu\n", try, given, most);
        CHECK(given <= most);
    } while (given < least && ++try < TRIES);
    CHECK(given >= least);
}

int main(int argc, char **argv)
{
    int provided, oversubscribed = 0;
    unsigned long none = 0;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    OK(MPI_T_pvar_session_create(&session));
    yields = counter("yields");
    /* On by default where ranks outnumber CPUs. */
    OK(MPI_T_cvar_read(variable("keep_apart"), &oversubscribed));
    expect(oversubscribed ? 1 : 0, oversubscribed ? LATE : 0);
    OK(MPI_T_cvar_write(variable("coll_yields"), &none));
    expect(0, 0);
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return verdict();
}
