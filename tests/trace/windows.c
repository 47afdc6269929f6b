/* One-sided communication that is known, for tests of what a trace says of it: three ranks, two windows. Rank 1 waits
 * for rank 0, which holds the lock of rank 2's memory for a while; rank 2 exposes its memory late to rank 1; rank 0
 * comes late to a fence. Argument: by how many microseconds. */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    unsigned late = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    static long private[64];
    long *base, values[64] = {0}, old;
    int rank;
    MPI_Win shelf, other;
    MPI_Group world, one;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate(4096, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &shelf);
    MPI_Win_set_name(shelf, "shelf \"A\"");
    MPI_Win_create(private, sizeof private, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &other);
    MPI_Comm_group(MPI_COMM_WORLD, &world);

    /* Every rank puts 3 longs to the next, gets 2 from the one after that, and adds 1 to rank 0's. */
    MPI_Win_fence(0, shelf);
    MPI_Put(values, 3, MPI_LONG, (rank + 1) % 3, 0, 3, MPI_LONG, shelf);
    MPI_Get(values, 2, MPI_LONG, (rank + 2) % 3, 8, 2, MPI_LONG, shelf);
    MPI_Accumulate(values, 1, MPI_LONG, 0, 20, 1, MPI_LONG, MPI_SUM, shelf);
    if (rank == 0) usleep(late);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, shelf);

    /* Rank 1 waits for the lock that rank 0 holds. */
    if (rank == 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, shelf);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        usleep(late);
        MPI_Win_unlock(2, shelf);
    }
    if (rank == 1) {
        MPI_Win_lock(MPI_LOCK_SHARED, 2, 0, shelf);
        MPI_Fetch_and_op(values, &old, MPI_LONG, 2, 30, MPI_SUM, shelf);
        MPI_Win_flush(2, shelf);
        MPI_Win_unlock(2, shelf);
    }

    /* Rank 2 exposes its memory late. */
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        int target = 2;
        MPI_Group_incl(world, 1, &target, &one);
        MPI_Win_start(one, 0, other);
        MPI_Put(values, 8, MPI_LONG, 2, 0, 8, MPI_LONG, other);
        MPI_Win_complete(other);
        MPI_Group_free(&one);
    }
    if (rank == 2) {
        int origin = 1;
        MPI_Group_incl(world, 1, &origin, &one);
        usleep(late);
        MPI_Win_post(one, 0, other);
        MPI_Win_wait(other);
        MPI_Group_free(&one);
    }
    MPI_Win_lock_all(0, other);
    MPI_Win_unlock_all(other);
    MPI_Group_free(&world);
    MPI_Win_free(&other);
    MPI_Win_free(&shelf);
    MPI_Finalize();
    return 0;
}
