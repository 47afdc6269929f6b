/* Messages whose two buffers are the same memory of a shared window, or lie within each other: they arrive, and nothing
 * beside them changes. What a message brings to where it comes from is only known where each byte stays in its place.
 * RANKS: 2
 */
#include "check.h"

enum { INTS = 1 << 18 };
static int rank;

/* Each of so many integers is `start` and, from one to the next, `step` more. */
static void are(const int *at, int count, int start, int step)
{
    int i = 0;
    while (i < count && at[i] == start + i * step) i++;
    if (i < count) {
        fprintf(stderr, "integer %d of %d is %d, expected %d\n", i, count, at[i], start + i * step);
        failures++;
    }
}

static void same_place(int *at, int count)
{
    if (rank == 0) {
        for (int i = 0; i < count; i++) at[i] = 3 * i + 1;
        OK(MPI_Send(at, count, MPI_INT, 1, 1, MPI_COMM_WORLD));
    } else {
        OK(MPI_Recv(at, count, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        are(at, count, 1, 3);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Every other integer on one side, so many in a row on the other. */
static void interleaved(int *at, int count, int scattered)
{
    MPI_Datatype every_other;
    OK(MPI_Type_vector(count, 1, 2, MPI_INT, &every_other));
    OK(MPI_Type_commit(&every_other));
    int received = rank == 1, mine = rank == scattered;
    if (rank == 0)
        for (int i = 0; i < 2 * count; i++) at[i] = 7;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (received)
        OK(MPI_Recv(at, mine ? 1 : count, mine ? every_other : MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    else
        OK(MPI_Ssend(at, mine ? 1 : count, mine ? every_other : MPI_INT, 1, 2, MPI_COMM_WORLD));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    are(at, 2 * count, 7, 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Type_free(&every_other));
}

int main(int argc, char **argv)
{
    MPI_Win win;
    MPI_Aint bytes;
    int unit, *at;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Win_allocate_shared(rank == 0 ? INTS * sizeof(int) : 0, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &at, &win));
    OK(MPI_Win_shared_query(win, 0, &bytes, &unit, &at));
    for (int count = 1; count <= INTS; count *= 8) same_place(at, count);
    same_place(at, INTS);
    for (int count = 1; count <= INTS / 2; count *= 8) {
        interleaved(at, count, 0);
        interleaved(at, count, 1);
    }
    OK(MPI_Win_free(&win));
    OK(MPI_Finalize());
    return verdict();
}
