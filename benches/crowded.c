/* crowded.c: what programs whose ranks share CPUs do with them, whose ranks talk to others than one partner.
 *
 *   mpiexec -n 4 crowded [SECONDS]
 *
 * halo: each rank exchanges messages with both neighbours of a circle; microseconds an exchange, of 8 bytes, and of
 * 4 KiB with WORK microseconds of computing after each. farm: rank 0 gives a task to whoever answers; microseconds a
 * task, with tasks that are nothing, and that compute for TASK microseconds. Each is measured for SECONDS (0.3) after a
 * tenth of that. At the end how often ranks have moved to another CPU by themselves (performance variable `moves`),
 * all together; -1: not known.
 *
 * To compare two ways to run: jobs in turn, PERUSAL_KEEP_APART=on and off (docs/performance.md). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORK = 5, TASK = 20, LARGE = 4096, STEP = 50, DATA = 1, NO_TASK = -1 };

static int rank, size;
static double seconds = 0.3;

static void compute(double microseconds)
{
    double end = MPI_Wtime() + microseconds * 1e-6;
    while (MPI_Wtime() < end) continue;
}

/* Does `step` for so long on all ranks; microseconds a unit, of which a step has STEP. */
static double timed(void (*step)(int bytes, double work), int bytes, double work, double how_long)
{
    double start, took;
    long steps = 0;
    int on = 1;
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    while (on) {
        step(bytes, work);
        steps++;
        on = MPI_Wtime() - start < how_long;
        MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    took = MPI_Wtime() - start;
    return took * 1e6 / (double)(steps * STEP);
}

static void halo(int bytes, double work)
{
    static char out[LARGE], from_left[LARGE], from_right[LARGE];
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    for (int i = 0; i < STEP; i++) {
        MPI_Request requests[4];
        MPI_Irecv(from_left, bytes, MPI_BYTE, left, DATA, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(from_right, bytes, MPI_BYTE, right, DATA + 1, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(out, bytes, MPI_BYTE, right, DATA, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(out, bytes, MPI_BYTE, left, DATA + 1, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        if (work > 0) compute(work);
    }
}

static void give(void)
{
    int given = 0, task;
    for (int worker = 1; worker < size; worker++) {
        task = given < STEP ? given++ : NO_TASK;
        MPI_Send(&task, 1, MPI_INT, worker, DATA, MPI_COMM_WORLD);
    }
    for (int done = 0; done < STEP; done++) {
        MPI_Status status;
        MPI_Recv(&task, 1, MPI_INT, MPI_ANY_SOURCE, DATA, MPI_COMM_WORLD, &status);
        task = given < STEP ? given++ : NO_TASK;
        MPI_Send(&task, 1, MPI_INT, status.MPI_SOURCE, DATA, MPI_COMM_WORLD);
    }
}

static void farm(int bytes, double work)
{
    int task;
    (void)bytes;
    if (rank == 0) {
        give();
        return;
    }
    for (;;) {
        MPI_Recv(&task, 1, MPI_INT, 0, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (task == NO_TASK) return;
        if (work > 0) compute(work);
        MPI_Send(&task, 1, MPI_INT, 0, DATA, MPI_COMM_WORLD);
    }
}

static void measure(const char *name, void (*step)(int, double), int bytes, double work)
{
    double took;
    timed(step, bytes, work, seconds / 10);
    took = timed(step, bytes, work, seconds);
    if (rank == 0) printf("%-32s %10.3f us\n", name, took);
}

/* Moves of all ranks so far. */
static long moves(void)
{
    int provided, index, count;
    long sum = 0;
    unsigned long long mine = 0;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return -1;
    if (MPI_T_pvar_get_index("moves", MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS) {
        MPI_T_pvar_session_create(&session);
        MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
        MPI_T_pvar_read(session, handle, &mine);
        MPI_T_pvar_session_free(&session);
        sum = (long)mine;
    } else {
        sum = -1;
    }
    MPI_T_finalize();
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return sum < 0 ? -1 : sum;
}

int main(int argc, char **argv)
{
    long moved;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1) seconds = atof(argv[1]);
    if (size < 2 || seconds <= 0) {
        if (rank == 0) fprintf(stderr, "usage: mpiexec -n RANKS crowded [SECONDS], two ranks or more\n");
        MPI_Finalize();
        return 2;
    }
    measure("halo, 8 B", halo, 8, 0);
    measure("halo, 4 KiB and 5 us of work", halo, LARGE, WORK);
    measure("farm, tasks that are nothing", farm, 0, 0);
    measure("farm, tasks of 20 us", farm, 0, TASK);
    moved = moves();
    if (rank == 0) printf("%-32s %10ld\n", "moves", moved);
    MPI_Finalize();
    return 0;
}
