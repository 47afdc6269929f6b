/* Where ranks outnumber CPUs, a rank that finds itself elsewhere than where it has begun goes back, also while it waits
 * for a collective in shared memory; it is not bound by that.
 * RANKS: 3
 * ENV: PERUSAL_KEEP_APART=on
 * ENV: PERUSAL_BIND_TO=none
 * ENV: PERUSAL_COLL_BARRIER=counted
 */
#include "keep_apart.h"

/* The most that a rank has moved. */
static unsigned long long most_moves(void)
{
    unsigned long long most = moves();
    OK(MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_UNSIGNED_LONG_LONG, MPI_MAX, MPI_COMM_WORLD));
    return most;
}

int main(int argc, char **argv)
{
    int ranks;
    if (!begin(&argc, &argv)) return end();
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (CPU_COUNT(&allowed) >= ranks) {
        if (rank == 0) puts("a CPU for each rank: they go where the kernel puts them");
        return end();
    }
    /* Two have begun elsewhere than one; the kernel may part them first, then they are put together again.
     * A hang is what the time limit of the test is for. */
    do {
        use_first();
        OK(MPI_Barrier(MPI_COMM_WORLD));
        use(&allowed);
        for (int i = 0; i < 1000; i++) OK(MPI_Barrier(MPI_COMM_WORLD));
    } while (most_moves() == 0);
    cpu_set_t now;
    SAME(sched_getaffinity(0, sizeof now, &now), 0);
    CHECK(CPU_EQUAL(&now, &allowed));
    return end();
}
