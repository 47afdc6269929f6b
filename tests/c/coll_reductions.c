/* Reductions and scans, against arithmetic: every root, operations that do not commute, in place,
 * derived types, both widths.
 * RANKS: 1 2 3 4 5 7
 */
#include "check.h"

static int rank, size;

/* 2 x 2 matrices modulo 1009: associative, and hardly any two commute. */
typedef struct { int a, b, c, d; } Matrix;
static const Matrix ONE = {1, 0, 0, 1};
static Matrix times(Matrix x, Matrix y) {
    Matrix z = {(x.a * y.a + x.b * y.c) % 1009, (x.a * y.b + x.b * y.d) % 1009,
                (x.c * y.a + x.d * y.c) % 1009, (x.c * y.b + x.d * y.d) % 1009};
    return z;
}
static void multiply(void *in, void *inout, int *len, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *len; i++) ((Matrix *)inout)[i] = times(((Matrix *)in)[i], ((Matrix *)inout)[i]);
}
static void multiply_c(void *in, void *inout, MPI_Count *len, MPI_Datatype *type) {
    int n = (int)*len;
    multiply(in, inout, &n, type);
}
static Matrix own(int r, int i) {
    Matrix m = {r + 1, i + 2, r + i, 3 * r + 1};
    return m;
}
static Matrix product(int from, int to, int i) {
    Matrix m = ONE;
    for (int r = from; r < to; r++) m = times(m, own(r, i));
    return m;
}
static int equal(Matrix x, Matrix y) { return x.a == y.a && x.b == y.b && x.c == y.c && x.d == y.d; }

static void in_order(MPI_Op op, MPI_Datatype type) {
    enum { N = 3 };
    Matrix mine[8 * N], got[8 * N];
    int counts[8];
    for (int i = 0; i < N * size; i++) mine[i] = own(rank, i);
    for (int root = 0; root < size; root++) {
        OK(MPI_Reduce(mine, got, N, type, op, root, MPI_COMM_WORLD));
        for (int i = 0; rank == root && i < N; i++) CHECK(equal(got[i], product(0, size, i)));
    }
    memcpy(got, mine, sizeof mine);
    OK(MPI_Allreduce(MPI_IN_PLACE, got, N, type, op, MPI_COMM_WORLD));
    for (int i = 0; i < N; i++) CHECK(equal(got[i], product(0, size, i)));
    OK(MPI_Scan_c(mine, got, N, type, op, MPI_COMM_WORLD));
    for (int i = 0; i < N; i++) CHECK(equal(got[i], product(0, rank + 1, i)));
    memcpy(got, mine, sizeof mine);
    OK(MPI_Exscan(MPI_IN_PLACE, got, N, type, op, MPI_COMM_WORLD));
    for (int i = 0; i < N; i++) CHECK(equal(got[i], rank ? product(0, rank, i) : own(0, i)));
    OK(MPI_Reduce_scatter_block(mine, got, N, type, op, MPI_COMM_WORLD));
    for (int i = 0; i < N; i++) CHECK(equal(got[i], product(0, size, N * rank + i)));
    int total = 0, start = 0;
    for (int r = 0; r < size; r++) {
        counts[r] = r % 3;
        if (r < rank) start += counts[r];
        total += counts[r];
    }
    memcpy(got, mine, sizeof mine);
    OK(MPI_Reduce_scatter(MPI_IN_PLACE, got, counts, type, op, MPI_COMM_WORLD));
    for (int i = 0; i < counts[rank]; i++) CHECK(equal(got[i], product(0, size, start + i)));
}

static void predefined(void) {
    int n = 100000;
    double *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
    for (int i = 0; i < n; i++) x[i] = rank + i;
    OK(MPI_Allreduce(x, y, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < n; i += 999) CHECK(y[i] == (double)size * i + size * (size - 1) / 2.0);
    OK(MPI_Reduce(rank ? x : MPI_IN_PLACE, rank ? NULL : x, n, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD));
    if (rank == 0) CHECK(x[10] == 10 + size - 1);
    free(x), free(y);
    struct { double value; int at; } mine = {(rank * 7) % 5, rank}, best;
    OK(MPI_Allreduce(&mine, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD));
    int at = 0;
    for (int r = 1; r < size; r++)
        if ((r * 7) % 5 > (at * 7) % 5) at = r;
    SAME(best.at, at);
    int empty = 5;
    OK(MPI_Allreduce(MPI_IN_PLACE, &empty, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    SAME(empty, 5);
}

int main(void) {
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    MPI_Datatype type;
    MPI_Op op, op_c;
    OK(MPI_Type_contiguous(4, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Op_create(multiply, 0, &op));
    OK(MPI_Op_create_c(multiply_c, 0, &op_c));
    in_order(op, type);
    in_order(op_c, type);
    OK(MPI_Op_free(&op));
    OK(MPI_Op_free(&op_c));
    OK(MPI_Type_free(&type));
    predefined();
    OK(MPI_Finalize());
    return verdict();
}
