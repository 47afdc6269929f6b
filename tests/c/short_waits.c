/* A rank with a CPU of its own sleeps in a wait that is longer than it polls, but not in the next one if that was
 * short: then it polls on. After a long wait it sleeps again. It is tried until nothing else has delayed the ranks.
 * RANKS: 2
 */
#include "mpi_t_counter.h"
#include "mpi_t_variable.h"
#include <unistd.h>

enum { TRIES = 30, SPIN_US = 50000, SHORT_MS = 120, LONG_MS = 1200, IN_A_ROW = 6 };
static int rank;
static MPI_T_pvar_handle sleeps;

/* How often rank 0 sleeps while it waits so long for a message. */
static unsigned long long wait_for(int milliseconds)
{
    int value = 0;
    unsigned long long before = read_of(sleeps);
    if (rank == 0) {
        OK(MPI_Send(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD));
        OK(MPI_Recv(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    } else {
        OK(MPI_Recv(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        usleep((unsigned)milliseconds * 1000);
        OK(MPI_Send(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD));
    }
    return read_of(sleeps) - before;
}

int main(int argc, char **argv)
{
    unsigned long value, yields;
    int provided, done = 0;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_T_pvar_session_create(&session));
    sleeps = counter("sleeps");
    OK(MPI_T_cvar_read(variable("yields"), &yields));
    /* Ranks that share a CPU yield instead. */
    if (yields == 0) {
        value = SPIN_US;
        OK(MPI_T_cvar_write(variable("spin_us"), &value));
        value = 10000;
        OK(MPI_T_cvar_write(variable("nap_ms"), &value));
        for (int i = 0; i < TRIES && !done; i++) {
            unsigned long long after_long[2], after_short = 0;
            wait_for(LONG_MS);
            after_long[0] = wait_for(SHORT_MS);
            for (int j = 0; j < IN_A_ROW; j++) after_short += wait_for(SHORT_MS);
            wait_for(LONG_MS);
            after_long[1] = wait_for(SHORT_MS);
            done = after_long[0] == 1 && after_short == 0 && after_long[1] == 1;
            OK(MPI_Bcast(&done, 1, MPI_INT, 0, MPI_COMM_WORLD));
        }
        CHECK(done);
    }
    OK(MPI_T_finalize());
    OK(MPI_Finalize());
    return verdict();
}
