/* Ranks that are put on one CPU, where they may use others: what the tests of keep_apart share. */
#ifndef KEEP_APART_H
#define KEEP_APART_H

#define _GNU_SOURCE
#include "mpi_t_event.h"
#include <sched.h>

static cpu_set_t allowed;
static int rank, first_cpu;
static MPI_T_pvar_session session;
static MPI_T_pvar_handle moves_handle;

static void use(const cpu_set_t *cpus) { SAME(sched_setaffinity(0, sizeof *cpus, cpus), 0); }

static void use_first(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first_cpu, &one);
    use(&one);
}

/* How often this rank has moved by itself. */
static unsigned long long moves(void)
{
    unsigned long long n = 99;
    OK(MPI_T_pvar_read(session, moves_handle, &n));
    return n;
}

/* So many round trips; gives rank 1's moves to both. */
static unsigned long long talk(int n)
{
    unsigned long long word = 0;
    for (int i = 0; i < n; i++) {
        if (rank == 0) OK(MPI_Send(&word, 1, MPI_UNSIGNED_LONG_LONG, 1, 0, MPI_COMM_WORLD));
        OK(MPI_Recv(&word, 1, MPI_UNSIGNED_LONG_LONG, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        if (rank == 1) {
            word = moves();
            OK(MPI_Send(&word, 1, MPI_UNSIGNED_LONG_LONG, 0, 0, MPI_COMM_WORLD));
        }
    }
    return word;
}

/* Both talk on the first CPU, where the scheduler has put them and where all of them are allowed. */
static inline unsigned long long talk_together(int n)
{
    use_first();
    talk(1);
    use(&allowed);
    return talk(n);
}

/* False: there is one CPU, and nothing to see. */
static int begin(int *argc, char ***argv)
{
    int provided, index = -1, count;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_Init(argc, argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    OK(MPI_T_pvar_session_create(&session));
    OK(MPI_T_pvar_get_index("moves", MPI_T_PVAR_CLASS_COUNTER, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &moves_handle, &count));
    OK(MPI_T_pvar_start(session, moves_handle));
    SAME(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    while (!CPU_ISSET(first_cpu, &allowed)) first_cpu++;
    if (CPU_COUNT(&allowed) > 1) return 1;
    if (rank == 0) puts("one CPU: nothing to choose");
    return 0;
}

static int end(void)
{
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return verdict();
}

#endif
