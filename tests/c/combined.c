/* A combined send and receive is a send and a receive at once, whatever the size and the types, who is at the other
 * ends, and whether both use one buffer; what is wrong with either is an error before anything is sent
 * (MPI 5.0 section 3.10).
 * RANKS: 1 2 3 4
 */
#include "check.h"
#include <stdlib.h>

enum { TAG = 7, BACK = 8, MOST = 200000 };

static int rank, size, next, before;
static int *out, *in;

static void fill(int n) {
    for (int i = 0; i < n; i++) out[i] = rank * 1000000 + i, in[i] = -1;
}

static void plain(int n, int replace) {
    MPI_Status status;
    int got = -1, *to = replace ? out : in;
    fill(n);
    if (replace) OK(MPI_Sendrecv_replace(out, n, MPI_INT, next, TAG, before, TAG, MPI_COMM_WORLD, &status));
    else OK(MPI_Sendrecv(out, n, MPI_INT, next, TAG, in, n, MPI_INT, before, TAG, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_INT, &got));
    SAME(got, n);
    SAME(status.MPI_SOURCE, before);
    SAME(status.MPI_TAG, TAG);
    for (int i = 0; i < n; i++) SAME(to[i], before * 1000000 + i);
}

/* Every other int goes, and comes without gaps; and the other way round. */
static void with_gaps(int n) {
    MPI_Datatype every_other;
    MPI_Status status;
    OK(MPI_Type_vector(n, 1, 2, MPI_INT, &every_other));
    OK(MPI_Type_commit(&every_other));
    fill(2 * n);
    OK(MPI_Sendrecv(out, 1, every_other, next, TAG, in, n, MPI_INT, before, TAG, MPI_COMM_WORLD, &status));
    for (int i = 0; i < n; i++) SAME(in[i], before * 1000000 + 2 * i);
    fill(2 * n);
    OK(MPI_Sendrecv(out, n, MPI_INT, next, TAG, in, 1, every_other, before, TAG, MPI_COMM_WORLD, &status));
    for (int i = 0; i < n - 1; i++) { SAME(in[2 * i], before * 1000000 + i); SAME(in[2 * i + 1], -1); }
    fill(2 * n);
    OK(MPI_Sendrecv_replace(out, 1, every_other, next, TAG, before, TAG, MPI_COMM_WORLD, &status));
    for (int i = 0; i < n; i++) { SAME(out[2 * i], before * 1000000 + 2 * i); SAME(out[2 * i + 1], rank * 1000000 + 2 * i + 1); }
    OK(MPI_Type_free(&every_other));
}

/* A line of ranks: nobody is before the first one and behind the last one. */
static void with_ends(int n) {
    int to = rank + 1 < size ? rank + 1 : MPI_PROC_NULL, from = rank > 0 ? rank - 1 : MPI_PROC_NULL, got = -1;
    MPI_Status status;
    fill(n);
    OK(MPI_Sendrecv(out, n, MPI_INT, to, TAG, in, n, MPI_INT, from, TAG, MPI_COMM_WORLD, &status));
    SAME(status.MPI_SOURCE, from);
    OK(MPI_Get_count(&status, MPI_INT, &got));
    SAME(got, rank > 0 ? n : 0);
    if (rank == 0) SAME(status.MPI_TAG, MPI_ANY_TAG);
    for (int i = 0; i < n; i++) SAME(in[i], rank > 0 ? (rank - 1) * 1000000 + i : -1);
}

/* The message that the receive wants comes behind others, which stay in their order. */
static void out_of_order(void) {
    MPI_Status status;
    fill(3);
    OK(MPI_Send(out, 1, MPI_INT, next, BACK, MPI_COMM_WORLD));
    OK(MPI_Sendrecv(out + 1, 1, MPI_INT, next, TAG, in, 1, MPI_INT, before, TAG, MPI_COMM_WORLD, &status));
    SAME(in[0], before * 1000000 + 1);
    OK(MPI_Sendrecv(out + 2, 1, MPI_INT, next, BACK, in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
    SAME(in[0], before * 1000000);
    OK(MPI_Recv(in, 1, MPI_INT, before, BACK, MPI_COMM_WORLD, &status));
    SAME(in[0], before * 1000000 + 2);
}

/* A message that is too long is the receiver's error; its own message has been sent all the same. */
static void too_long(void) {
    MPI_Status status;
    fill(2);
    CLASS(MPI_Sendrecv(out, 2, MPI_INT, next, TAG, in, 1, MPI_INT, before, TAG, MPI_COMM_WORLD, &status), MPI_ERR_TRUNCATE);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void wrong(void) {
    int there = 0;
    MPI_Status status;
    fill(1);
    CLASS(MPI_Sendrecv(out, 1, MPI_INT, next, TAG, in, 1, MPI_INT, before, -5, MPI_COMM_WORLD, &status), MPI_ERR_TAG);
    CLASS(MPI_Sendrecv(out, 1, MPI_INT, next, -5, in, 1, MPI_INT, before, TAG, MPI_COMM_WORLD, &status), MPI_ERR_TAG);
    CLASS(MPI_Sendrecv(out, 1, MPI_INT, next, TAG, in, 1, MPI_INT, size, TAG, MPI_COMM_WORLD, &status), MPI_ERR_RANK);
    CLASS(MPI_Sendrecv(out, 1, MPI_INT, size, TAG, in, 1, MPI_INT, before, TAG, MPI_COMM_WORLD, &status), MPI_ERR_RANK);
    CLASS(MPI_Sendrecv(out, 1, MPI_INT, next, TAG, in, -1, MPI_INT, before, TAG, MPI_COMM_WORLD, &status), MPI_ERR_COUNT);
    CLASS(MPI_Sendrecv(out, -1, MPI_INT, MPI_PROC_NULL, TAG, in, 1, MPI_INT, before, TAG, MPI_COMM_WORLD, &status), MPI_ERR_COUNT);
    CLASS(MPI_Sendrecv(out, 1, MPI_INT, next, TAG, in, 1, MPI_DATATYPE_NULL, before, TAG, MPI_COMM_WORLD, &status), MPI_ERR_TYPE);
    CLASS(MPI_Sendrecv(out, 1, MPI_INT, next, TAG, NULL, 1, MPI_INT, before, TAG, MPI_COMM_WORLD, &status), MPI_ERR_BUFFER);
    CLASS(MPI_Sendrecv_replace(out, 1, MPI_INT, next, TAG, size, TAG, MPI_COMM_WORLD, &status), MPI_ERR_RANK);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < 100 && !there; i++) OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &status));
    SAME(there, 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv) {
    static const int lengths[] = {0, 1, 10, 300, 1000, 20000, MOST};
    MPI_Init(&argc, &argv);
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    next = (rank + 1) % size, before = (rank + size - 1) % size;
    out = malloc(2 * MOST * sizeof *out), in = malloc(2 * MOST * sizeof *in);
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        for (int again = 0; again < 3; again++) plain(lengths[l], 0), plain(lengths[l], 1);
        if (lengths[l] > 0) with_gaps(lengths[l]);
        with_ends(lengths[l]);
    }
    for (int again = 0; again < 100; again++) out_of_order();
    too_long();
    wrong();
    free(out);
    free(in);
    MPI_Finalize();
    return verdict();
}
