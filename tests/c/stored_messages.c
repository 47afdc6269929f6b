/* What a rank stores right before it sends, and looks at as soon as it has come, whichever way it was copied: one after
 * the other and both ways at once, of lengths that go in one record, in fragments, and by the kernel or the ring; with
 * receives that are posted before, and that come late.
 * RANKS: 2 3
 */
#include "check.h"

enum { MOST = 140000, ROUNDS = 160, LATE = 5 };
static const int sizes[] = {39, 41, 4096, 16384, 16385, 24576, 40000, 65535, 65536, 100001, MOST};
enum { SIZES = sizeof sizes / sizeof *sizes };

static unsigned char out[LATE][MOST], in[LATE][MOST];

static unsigned char at_place(int at, int seed) { return (unsigned char)(at * 3 + at / 257 + seed); }

static void store(unsigned char *to, int bytes, int seed)
{
    for (int at = 0; at < bytes; at++) to[at] = at_place(at, seed);
}

static int differs(const unsigned char *got, int bytes, int seed)
{
    for (int at = 0; at < bytes; at++) {
        if (got[at] != at_place(at, seed)) return at + 1;
    }
    return 0;
}

int main(void)
{
    int rank, size;
    MPI_Init(NULL, NULL);
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Request requests[2 * LATE];
    MPI_Status status;
    for (int s = 0; s < SIZES; s++) {
        int bytes = sizes[s], got;
        for (int i = 0; i < ROUNDS; i++) {
            /* Round the ring, one after the other. */
            if (rank == 0) {
                store(out[0], bytes, i);
                OK(MPI_Send(out[0], bytes, MPI_BYTE, next, 1, MPI_COMM_WORLD));
            }
            OK(MPI_Recv(in[0], MOST, MPI_BYTE, i % 3 ? before : MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status));
            OK(MPI_Get_count(&status, MPI_BYTE, &got));
            SAME(got, bytes);
            SAME(differs(in[0], bytes, i + (rank ? rank - 1 : size - 1)), 0);
            if (rank != 0) {
                store(out[0], bytes, i + rank);
                OK(MPI_Send(out[0], bytes, MPI_BYTE, next, 1, MPI_COMM_WORLD));
            }
        }
        for (int i = 0; i < ROUNDS; i++) {
            /* All at once. */
            store(out[0], bytes, i * size + rank);
            OK(MPI_Irecv(in[0], bytes, MPI_BYTE, before, 2, MPI_COMM_WORLD, &requests[0]));
            OK(MPI_Isend(out[0], bytes, MPI_BYTE, next, 2, MPI_COMM_WORLD, &requests[1]));
            OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
            SAME(differs(in[0], bytes, i * size + before), 0);
        }
        for (int i = 0; i < ROUNDS / LATE; i++) {
            /* Several that come before their receives, which are posted in the order of other tags. */
            for (int j = 0; j < LATE; j++) {
                store(out[j], bytes, i + j);
                OK(MPI_Isend(out[j], bytes, MPI_BYTE, next, 10 + j, MPI_COMM_WORLD, &requests[j]));
            }
            for (int j = 0; j < LATE; j++) {
                int of = (j * 2 + i) % LATE;
                OK(MPI_Irecv(in[of], bytes, MPI_BYTE, before, 10 + of, MPI_COMM_WORLD, &requests[LATE + j]));
            }
            OK(MPI_Waitall(2 * LATE, requests, MPI_STATUSES_IGNORE));
            for (int j = 0; j < LATE; j++) SAME(differs(in[j], bytes, i + j), 0);
        }
    }
    MPI_Finalize();
    return verdict();
}
