/* Communicators and persistent operations that come and go take the collective segments that others have freed, whose
 * memory is not clear: of other sizes, and of more or fewer members.
 * RANKS: 2 3 5
 */
#include "check.h"

enum { TURNS = 120, MOST = 200000, STARTS = 9 };

static int value(int r, int i, int turn) { return r * 7 + i % 1000 + turn; }

int main(int argc, char **argv)
{
    static int out[MOST], in[MOST];
    static const int lengths[] = {1, 60, 61, 3000, 17, 50000, 2, MOST, 400};
    MPI_Comm comm;
    int world, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int turn = 0; turn < TURNS; turn++) {
        int rank, size, n = lengths[turn % 9];
        /* The first so many ranks, and each of the others alone. */
        int together = turn % ranks + 1;
        OK(MPI_Comm_split(MPI_COMM_WORLD, world < together ? 0 : world, 0, &comm));
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
        SAME(size, world < together ? together : 1);

        for (int i = 0; i < n; i++) out[i] = value(rank, i, turn), in[i] = -1;
        OK(MPI_Allreduce(out, in, n, MPI_INT, MPI_MAX, comm));
        SAME(in[n - 1], value(size - 1, n - 1, turn));
        MPI_Request request;
        for (int i = 0; i < n; i++) in[i] = rank == size - 1 ? value(rank, i, turn) : -1;
        OK(MPI_Ibcast(in, n, MPI_INT, size - 1, comm, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        SAME(in[n - 1], value(size - 1, n - 1, turn));

        OK(MPI_Allreduce_init(out, in, n, MPI_INT, MPI_MIN, comm, MPI_INFO_NULL, &request));
        for (int start = 0; start < STARTS; start++) {
            for (int i = 0; i < n; i++) out[i] = value(rank, i, turn + start), in[i] = -1;
            OK(MPI_Start(&request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            SAME(in[0], value(0, 0, turn + start));
            SAME(in[n - 1], value(0, n - 1, turn + start));
        }
        if (turn % 2) OK(MPI_Request_free(&request));
        OK(MPI_Comm_free(&comm));
        if (turn % 2 == 0) OK(MPI_Request_free(&request));
    }
    MPI_Finalize();
    return failures != 0;
}
