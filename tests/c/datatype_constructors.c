/* Every constructor of derived datatypes, in both forms,
 * picks the elements it should (MPI 5.0 sections 5.1.2 to 5.1.4).
 * RANKS: 1
 */
#include "check.h"

enum { MANY = 200 };
static int numbers[MANY];

#define LIST(...) (const int[]){__VA_ARGS__}, sizeof(const int[]){__VA_ARGS__} / sizeof(int)

/* Packing `count` elements from numbers[0..] on gives `expected`, and unpacking puts it back and nothing else. */
static void picks(int line, MPI_Datatype type, int count, const int *expected, size_t n) {
    int packed[MANY], back[MANY], position = 0, size;
    int before = failures;
    OK(MPI_Type_commit(&type));
    OK(MPI_Pack_size(count, type, MPI_COMM_SELF, &size));
    SAME(size, n * sizeof(int));
    OK(MPI_Pack(numbers, count, type, packed, sizeof packed, &position, MPI_COMM_SELF));
    SAME(position, n * sizeof(int));
    for (size_t i = 0; i < n; i++) SAME(packed[i], expected[i]);

    memset(back, 0xff, sizeof back);
    position = 0;
    OK(MPI_Unpack(packed, (int)(n * sizeof(int)), &position, back, count, type, MPI_COMM_SELF));
    int left = MANY;
    for (int i = 0; i < MANY; i++) left -= back[i] == -1;
    SAME(left, n);
    for (size_t i = 0; i < n; i++) SAME(back[expected[i]], expected[i]);
    OK(MPI_Type_free(&type));
    CHECK(type == MPI_DATATYPE_NULL);
    if (failures != before) fprintf(stderr, "  (the type made before line %d)\n", line);
}
#define PICKS(type, count, ...) picks(__LINE__, type, count, LIST(__VA_ARGS__))

static void one_dimension(void) {
    MPI_Datatype t;
    OK(MPI_Type_contiguous(3, MPI_INT, &t));
    PICKS(t, 2, 0, 1, 2, 3, 4, 5);
    OK(MPI_Type_contiguous_c(3, MPI_INT, &t));
    PICKS(t, 1, 0, 1, 2);
    OK(MPI_Type_vector(3, 2, 4, MPI_INT, &t));
    PICKS(t, 2, 0, 1, 4, 5, 8, 9, 10, 11, 14, 15, 18, 19);
    OK(MPI_Type_vector_c(2, 1, 3, MPI_INT, &t));
    PICKS(t, 1, 0, 3);
    OK(MPI_Type_create_hvector(3, 1, 8, MPI_INT, &t));
    PICKS(t, 1, 0, 2, 4);
    OK(MPI_Type_create_hvector_c(3, 2, 12, MPI_INT, &t));
    PICKS(t, 1, 0, 1, 3, 4, 6, 7);
    OK(MPI_Type_dup(MPI_INT, &t));
    PICKS(t, 3, 0, 1, 2);
    OK(MPI_Type_create_resized(MPI_INT, 0, 12, &t));
    PICKS(t, 3, 0, 3, 6);
    OK(MPI_Type_create_resized_c(MPI_INT, -4, 8, &t));
    PICKS(t, 3, 0, 2, 4);
}

static void scattered(void) {
    MPI_Datatype t;
    int lengths[] = {2, 0, 1}, at[] = {5, 1, 0};
    MPI_Count large_lengths[] = {2, 0, 1}, large_at[] = {5, 1, 0}, large_bytes[] = {20, 4, 0};
    MPI_Aint bytes[] = {20, 4, 0};
    OK(MPI_Type_indexed(3, lengths, at, MPI_INT, &t));
    PICKS(t, 1, 5, 6, 0);
    OK(MPI_Type_indexed_c(3, large_lengths, large_at, MPI_INT, &t));
    PICKS(t, 2, 5, 6, 0, 12, 13, 7);
    OK(MPI_Type_create_hindexed(3, lengths, bytes, MPI_INT, &t));
    PICKS(t, 1, 5, 6, 0);
    OK(MPI_Type_create_hindexed_c(3, large_lengths, large_bytes, MPI_INT, &t));
    PICKS(t, 1, 5, 6, 0);
}

static void blocks(void) {
    MPI_Datatype t;
    int at[] = {7, 3, 0};
    MPI_Count large_at[] = {7, 3, 0}, large_bytes[] = {28, 12, 0};
    MPI_Aint bytes[] = {28, 12, 0};
    OK(MPI_Type_create_indexed_block(3, 2, at, MPI_INT, &t));
    PICKS(t, 1, 7, 8, 3, 4, 0, 1);
    OK(MPI_Type_create_indexed_block_c(3, 2, large_at, MPI_INT, &t));
    PICKS(t, 1, 7, 8, 3, 4, 0, 1);
    OK(MPI_Type_create_hindexed_block(3, 1, bytes, MPI_INT, &t));
    PICKS(t, 1, 7, 3, 0);
    OK(MPI_Type_create_hindexed_block_c(3, 2, large_bytes, MPI_INT, &t));
    PICKS(t, 1, 7, 8, 3, 4, 0, 1);
}

static void structures(void) {
    MPI_Datatype t, every_second, types[2];
    int lengths[] = {1, 2};
    MPI_Count large_lengths[] = {1, 2}, large_at[] = {40, 0};
    MPI_Aint at[] = {40, 0};
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &every_second));
    types[0] = MPI_INT;
    types[1] = every_second;
    OK(MPI_Type_create_struct(2, lengths, at, types, &t));
    PICKS(t, 1, 10, 0, 2, 3, 5);
    OK(MPI_Type_create_struct_c(2, large_lengths, large_at, types, &t));
    /* The old type may go before the new one. */
    OK(MPI_Type_free(&every_second));
    PICKS(t, 1, 10, 0, 2, 3, 5);
}

static void arrays(void) {
    MPI_Datatype t;
    int sizes[] = {3, 4}, parts[] = {2, 2}, starts[] = {1, 2};
    MPI_Count large_sizes[] = {3, 4}, large_parts[] = {2, 2}, large_starts[] = {1, 2};
    OK(MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &t));
    PICKS(t, 2, 6, 7, 10, 11, 18, 19, 22, 23);
    OK(MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_FORTRAN, MPI_INT, &t));
    PICKS(t, 1, 7, 8, 10, 11);
    OK(MPI_Type_create_subarray_c(2, large_sizes, large_parts, large_starts, MPI_ORDER_C, MPI_INT, &t));
    PICKS(t, 1, 6, 7, 10, 11);

    int kinds[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
    int arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG}, grid[] = {2, 2};
    OK(MPI_Type_create_darray(4, 1, 2, sizes, kinds, arguments, grid, MPI_ORDER_C, MPI_INT, &t));
    PICKS(t, 1, 1, 3, 5, 7);
    OK(MPI_Type_create_darray_c(4, 2, 2, large_sizes, kinds, arguments, grid, MPI_ORDER_C, MPI_INT, &t));
    PICKS(t, 1, 8, 10);

    /* Of a dimension that is not distributed the argument is ignored, as the standard's example has it. */
    int of_rows[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE}, with_zero[] = {MPI_DISTRIBUTE_DFLT_DARG, 0}, rows[] = {3, 1};
    OK(MPI_Type_create_darray(3, 1, 2, sizes, of_rows, with_zero, rows, MPI_ORDER_C, MPI_INT, &t));
    PICKS(t, 1, 4, 5, 6, 7);
    with_zero[0] = 0;
    CLASS(MPI_Type_create_darray(3, 1, 2, sizes, of_rows, with_zero, rows, MPI_ORDER_C, MPI_INT, &t), MPI_ERR_ARG);
}

static void mistakes(void) {
    MPI_Datatype t = MPI_INT;
    int none[] = {0}, some[] = {4}, far[] = {9}, processes[] = {3}, block[] = {MPI_DISTRIBUTE_BLOCK};
    int arguments[] = {MPI_DISTRIBUTE_DFLT_DARG}, lengths[] = {-1};
    CLASS(MPI_Type_contiguous(-1, MPI_INT, &t), MPI_ERR_COUNT);
    CLASS(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &t), MPI_ERR_TYPE);
    CLASS(MPI_Type_contiguous(1, MPI_INT, NULL), MPI_ERR_ARG);
    CLASS(MPI_Type_vector(1, -1, 1, MPI_INT, &t), MPI_ERR_ARG);
    CLASS(MPI_Type_indexed(1, lengths, none, MPI_INT, &t), MPI_ERR_ARG);
    CLASS(MPI_Type_indexed(1, NULL, none, MPI_INT, &t), MPI_ERR_ARG);
    CLASS(MPI_Type_create_subarray(1, some, far, none, MPI_ORDER_C, MPI_INT, &t), MPI_ERR_ARG);
    CLASS(MPI_Type_create_subarray(1, some, some, none, 77, MPI_INT, &t), MPI_ERR_ARG);
    CLASS(MPI_Type_create_darray(2, 0, 1, some, block, arguments, processes, MPI_ORDER_C, MPI_INT, &t), MPI_ERR_ARG);
    CLASS(MPI_Type_contiguous_c((MPI_Count)1 << 62, MPI_INT, &t), MPI_ERR_COUNT);
    CHECK(t == MPI_INT);
    CLASS(MPI_Type_free(&t), MPI_ERR_TYPE);
    CHECK(t == MPI_INT);
    t = MPI_DATATYPE_NULL;
    CLASS(MPI_Type_free(&t), MPI_ERR_TYPE);
    CLASS(MPI_Type_commit(&t), MPI_ERR_TYPE);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    errors_return();
    for (int i = 0; i < MANY; i++) numbers[i] = i;
    one_dimension();
    scattered();
    blocks();
    structures();
    arrays();
    mistakes();
    MPI_Finalize();
    return verdict();
}
