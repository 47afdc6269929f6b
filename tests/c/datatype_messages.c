/* Messages of derived datatypes: any layout into any other, small and large, freed early, partly filled.
 * RANKS: 1 2
 */
#include "check.h"

/* A matrix of SIDE x SIDE doubles; large enough that a column travels as more than one piece. */
enum { SIDE = 300 };
static double from[SIDE][SIDE], to[SIDE][SIDE];

static int rank, size, other;

static MPI_Datatype transposed(int side) {
    MPI_Datatype column, step, all;
    OK(MPI_Type_vector(side, 1, SIDE, MPI_DOUBLE, &column));
    OK(MPI_Type_create_resized(column, 0, sizeof(double), &step));
    OK(MPI_Type_contiguous(side, step, &all));
    OK(MPI_Type_commit(&all));
    OK(MPI_Type_free(&column));
    OK(MPI_Type_free(&step));
    return all;
}

static MPI_Datatype corner(int side) {
    MPI_Datatype type;
    int sizes[] = {SIDE, SIDE}, parts[] = {side, side}, starts[] = {0, 0};
    OK(MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &type));
    OK(MPI_Type_commit(&type));
    return type;
}

/* The upper left corner of `from` arrives transposed in `to`, and nothing else is touched. */
static void transpose(int side) {
    MPI_Datatype out = transposed(side), in = corner(side);
    MPI_Request request;
    MPI_Status status;
    int n;
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            from[i][j] = 1000 * rank + i + j / 1024.0;
            to[i][j] = -1;
        }
    OK(MPI_Irecv(to, 1, in, other, 7, MPI_COMM_WORLD, &request));
    OK(MPI_Send(from, 1, out, other, 7, MPI_COMM_WORLD));
    OK(MPI_Type_free(&out));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Get_count(&status, in, &n));
    SAME(n, 1);
    OK(MPI_Get_elements(&status, in, &n));
    SAME(n, side * side);
    OK(MPI_Type_free(&in));
    long wrong = 0;
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            double expected = i < side && j < side ? 1000 * other + j + i / 1024.0 : -1;
            wrong += to[i][j] != expected;
        }
    SAME(wrong, 0);
}

/* A receive with types that are freed before the message comes. */
static void freed_in_use(void) {
    MPI_Datatype type = corner(200);
    MPI_Request request;
    memset(to, 0, sizeof to);
    OK(MPI_Irecv(to, 1, type, other, 8, MPI_COMM_WORLD, &request));
    OK(MPI_Type_free(&type));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_Send(from, 200 * 200, MPI_DOUBLE, other, 8, MPI_COMM_WORLD));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    SAME(to[199][199], 1000 * other + (200 * 200 - 1) / SIDE);
    SAME(to[200][0], 0);
}

static void partly_filled(void) {
    struct item { int i; char c; } items[4];
    int lengths[] = {1, 1}, n;
    MPI_Aint at[] = {0, 4};
    MPI_Datatype parts[] = {MPI_INT, MPI_CHAR}, type;
    MPI_Status status;
    OK(MPI_Type_create_struct(2, lengths, at, parts, &type));
    CLASS(MPI_Send(items, 1, type, other, 9, MPI_COMM_WORLD), MPI_ERR_TYPE);
    OK(MPI_Type_commit(&type));
    memset(items, 0, sizeof items);
    for (int i = 0; i < 2; i++) items[i].i = i + 1, items[i].c = 'a' + i;
    int one_and_a_bit = 5 + 4;
    char packed[16];
    int position = 0;
    OK(MPI_Pack(items, 2, type, packed, sizeof packed, &position, MPI_COMM_WORLD));
    SAME(position, 10);
    memset(items, 0, sizeof items);
    OK(MPI_Sendrecv(packed, one_and_a_bit, MPI_PACKED, other, 9, items, 4, type, other, 9, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, type, &n));
    SAME(n, MPI_UNDEFINED);
    OK(MPI_Get_elements(&status, type, &n));
    SAME(n, 3);
    SAME(items[0].i, 1);
    SAME(items[0].c, 'a');
    SAME(items[1].i, 2);
    SAME(items[1].c, 0);
    OK(MPI_Type_free(&type));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    other = size - 1 - rank;
    int sides[] = {1, 2, 3, 10, 64, SIDE};
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) transpose(sides[i]);
    freed_in_use();
    partly_filled();
    MPI_Finalize();
    return verdict();
}
