/* Where ranks outnumber CPUs, ranks that exchange messages with both neighbours gather in blocks, so that each shares a
 * CPU with one of them; when they do so no more they go back to the CPUs where they have begun, in turn.
 * RANKS: 4
 * ENV: PERUSAL_KEEP_APART=on
 * ENV: PERUSAL_BIND_TO=none
 * ENV: PERUSAL_COLL_BARRIER=counted
 */
#include "keep_apart.h"

enum { RANKS = 4, CPUS = 2 };

static void exchange(void)
{
    int in[2], left = (rank + RANKS - 1) % RANKS, right = (rank + 1) % RANKS;
    MPI_Request requests[4];
    OK(MPI_Irecv(&in[0], 1, MPI_INT, left, 0, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Irecv(&in[1], 1, MPI_INT, right, 0, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Isend(&rank, 1, MPI_INT, left, 0, MPI_COMM_WORLD, &requests[2]));
    OK(MPI_Isend(&rank, 1, MPI_INT, right, 0, MPI_COMM_WORLD, &requests[3]));
    OK(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
    SAME(in[0], left);
    SAME(in[1], right);
}

static int cpu_number(int number)
{
    int cpu = first_cpu;
    while (number > 0) number -= CPU_ISSET(++cpu, &allowed) != 0;
    return cpu;
}

/* Whether each rank runs on the CPU of that number. */
static int all_are_at(int number)
{
    int here = sched_getcpu() == cpu_number(number);
    OK(MPI_Allreduce(MPI_IN_PLACE, &here, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD));
    return here;
}

int main(int argc, char **argv)
{
    if (!begin(&argc, &argv)) return end();
    if (CPU_COUNT(&allowed) != CPUS) {
        if (rank == 0) puts("not two CPUs: blocks are others");
        return end();
    }
    /* Something else may take a rank away for a moment. A hang is what the time limit of the test is for. */
    do {
        for (int i = 0; i < 1000; i++) exchange();
    } while (!all_are_at(rank * CPUS / RANKS));
    do {
        for (int i = 0; i < 1000; i++) OK(MPI_Barrier(MPI_COMM_WORLD));
    } while (!all_are_at(rank % CPUS));
    cpu_set_t now;
    SAME(sched_getaffinity(0, sizeof now, &now), 0);
    CHECK(CPU_EQUAL(&now, &allowed));
    return end();
}
