/* A user's operation may change its first operand: MPI says what it returns in the second one, and nothing of the
 * first (MPI 5.0 section 6.9.5). The result is right at every rank, and nobody's send buffer changes.
 * RANKS: 4
 */
#include "check.h"

enum { MOST = 40000 };
static int from[MOST], to[MOST], kept[MOST], rank, size;

/* The sum; what was added is gone afterwards, as after a rotation. */
static void moves(void *in, void *inout, int *len, MPI_Datatype *type) {
    (void)type;
    int *left = in, *right = inout;
    for (int i = 0; i < *len; i++) {
        right[i] += left[i];
        left[i] = -1000000;
    }
}

/* Of `n` elements from element `first` on, each is that of the ranks below `upto` in sum. */
static void expect(const char *what, int n, int first, int upto) {
    int wrong = 0;
    for (int i = 0; i < n; i++) wrong += to[i] != upto * (first + i) + upto * (upto - 1) / 2;
    wrong += memcmp(from, kept, sizeof from) != 0;
    if (wrong) {
        fprintf(stderr, "rank %d: %s of %d elements: %d are wrong, or the send buffer has changed\n", rank, what, n, wrong);
        failures++;
    }
    memset(to, 0, sizeof to);
}

int main(int argc, char **argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    for (int i = 0; i < MOST; i++) from[i] = kept[i] = i + rank;
    static const int lengths[] = {1, 7, 500, 5000, MOST};
    for (int commutes = 0; commutes < 2; commutes++) {
        MPI_Op op;
        OK(MPI_Op_create(moves, commutes, &op));
        for (unsigned l = 0; l < sizeof lengths / sizeof *lengths; l++) {
            int n = lengths[l], part = n / size;
            for (int again = 0; again < 3; again++) {
                OK(MPI_Allreduce(from, to, n, MPI_INT, op, MPI_COMM_WORLD));
                expect("MPI_Allreduce", n, 0, size);
                OK(MPI_Reduce(from, to, n, MPI_INT, op, again, MPI_COMM_WORLD));
                if (rank == again) expect("MPI_Reduce", n, 0, size);
                OK(MPI_Scan(from, to, n, MPI_INT, op, MPI_COMM_WORLD));
                expect("MPI_Scan", n, 0, rank + 1);
                OK(MPI_Exscan(from, to, n, MPI_INT, op, MPI_COMM_WORLD));
                if (rank > 0) expect("MPI_Exscan", n, 0, rank);
                OK(MPI_Reduce_scatter_block(from, to, part, MPI_INT, op, MPI_COMM_WORLD));
                expect("MPI_Reduce_scatter_block", part, rank * part, size);
                MPI_Request request;
                OK(MPI_Iallreduce(from, to, n, MPI_INT, op, MPI_COMM_WORLD, &request));
                OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
                expect("MPI_Iallreduce", n, 0, size);
                OK(MPI_Iscan(from, to, n, MPI_INT, op, MPI_COMM_WORLD, &request));
                OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
                expect("MPI_Iscan", n, 0, rank + 1);
            }
        }
        OK(MPI_Op_free(&op));
    }
    OK(MPI_Finalize());
    return verdict();
}
