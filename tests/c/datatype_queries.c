/* Sizes, extents, names, envelopes and contents of datatypes,
 * and what a status tells of them (MPI 5.0 sections 5.1, 7.8).
 * RANKS: 1
 */
#include "check.h"
#include <float.h>
#include <complex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

static void sizes_of_c(void) {
    struct { MPI_Datatype type; size_t size; } known[] = {
        {MPI_CHAR, 1}, {MPI_SIGNED_CHAR, 1}, {MPI_UNSIGNED_CHAR, 1}, {MPI_BYTE, 1}, {MPI_PACKED, 1},
        {MPI_SHORT, sizeof(short)}, {MPI_UNSIGNED_SHORT, sizeof(short)}, {MPI_INT, sizeof(int)},
        {MPI_UNSIGNED, sizeof(int)}, {MPI_LONG, sizeof(long)}, {MPI_UNSIGNED_LONG, sizeof(long)},
        {MPI_LONG_LONG, sizeof(long long)}, {MPI_UNSIGNED_LONG_LONG, sizeof(long long)},
        {MPI_FLOAT, sizeof(float)}, {MPI_DOUBLE, sizeof(double)}, {MPI_LONG_DOUBLE, sizeof(long double)},
        {MPI_WCHAR, sizeof(wchar_t)}, {MPI_C_BOOL, sizeof(bool)}, {MPI_C_FLOAT_COMPLEX, sizeof(float complex)},
        {MPI_C_DOUBLE_COMPLEX, sizeof(double complex)}, {MPI_C_LONG_DOUBLE_COMPLEX, sizeof(long double complex)},
        {MPI_INT8_T, 1}, {MPI_UINT16_T, 2}, {MPI_INT32_T, 4}, {MPI_UINT64_T, 8},
        {MPI_AINT, sizeof(MPI_Aint)}, {MPI_COUNT, sizeof(MPI_Count)}, {MPI_OFFSET, sizeof(MPI_Offset)},
        {MPI_INTEGER, 4}, {MPI_REAL, 4}, {MPI_DOUBLE_PRECISION, 8}, {MPI_LOGICAL, 4}, {MPI_COMPLEX, 8},
        {MPI_DOUBLE_COMPLEX, 16}, {MPI_INTEGER16, 16}, {MPI_REAL16, 16}, {MPI_COMPLEX32, 32},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        int size;
        MPI_Count large, lb, extent;
        OK(MPI_Type_size(known[i].type, &size));
        SAME(size, known[i].size);
        OK(MPI_Type_size_c(known[i].type, &large));
        SAME(large, known[i].size);
        OK(MPI_Type_get_extent_c(known[i].type, &lb, &extent));
        SAME(lb, 0);
        SAME(extent, known[i].size);
    }
    int size;
    OK(MPI_Type_size(MPI_REAL2, &size));
    SAME(size, MPI_UNDEFINED);
    OK(MPI_Type_size(MPI_COMPLEX4, &size));
    SAME(size, MPI_UNDEFINED);
}

#define PAIR(name, value)                                                       \
    do {                                                                        \
        struct pair { value v; int i; };                                        \
        int size;                                                               \
        MPI_Aint lb, extent, true_lb, true_extent;                              \
        OK(MPI_Type_size(name, &size));                                         \
        SAME(size, sizeof(value) + sizeof(int));                                \
        OK(MPI_Type_get_extent(name, &lb, &extent));                            \
        SAME(extent, sizeof(struct pair));                                      \
        OK(MPI_Type_get_true_extent(name, &true_lb, &true_extent));             \
        SAME(true_extent, offsetof(struct pair, i) + sizeof(int));              \
    } while (0)

static void bounds(void) {
    PAIR(MPI_FLOAT_INT, float);
    PAIR(MPI_DOUBLE_INT, double);
    PAIR(MPI_LONG_INT, long);
    PAIR(MPI_2INT, int);
    PAIR(MPI_SHORT_INT, short);
    PAIR(MPI_LONG_DOUBLE_INT, long double);

    MPI_Datatype type, wide, types[2];
    MPI_Aint lb, extent, at[] = {0, 8};
    MPI_Count large_lb, large_extent;
    int lengths[] = {1, 1};
    types[0] = MPI_DOUBLE;
    types[1] = MPI_CHAR;
    OK(MPI_Type_create_struct(2, lengths, at, types, &type));
    OK(MPI_Type_get_extent(type, &lb, &extent));
    SAME(extent, 16);
    OK(MPI_Type_create_resized(type, -3, 9, &wide));
    OK(MPI_Type_get_extent(wide, &lb, &extent));
    SAME(lb, -3);
    SAME(extent, 9);
    OK(MPI_Type_get_true_extent_c(wide, &large_lb, &large_extent));
    SAME(large_lb, 0);
    SAME(large_extent, 9);
    OK(MPI_Type_get_true_extent_x(wide, &large_lb, &large_extent));
    SAME(large_extent, 9);
    OK(MPI_Type_get_extent_x(wide, &large_lb, &large_extent));
    SAME(large_lb, -3);
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free(&wide));
}

static void names(void) {
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    OK(MPI_Type_get_name(MPI_C_DOUBLE_COMPLEX, name, &length));
    CHECK(strcmp(name, "MPI_C_DOUBLE_COMPLEX") == 0);
    SAME(length, strlen(name));
    MPI_Datatype type;
    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    OK(MPI_Type_get_name(type, name, &length));
    SAME(length, 0);
    OK(MPI_Type_set_name(type, "two"));
    OK(MPI_Type_get_name(type, name, &length));
    CHECK(strcmp(name, "two") == 0);
    OK(MPI_Type_free(&type));
    CLASS(MPI_Type_get_name(MPI_Type_fromint(4096 + 77777), name, &length), MPI_ERR_TYPE);
}

static void taking_apart(void) {
    MPI_Datatype type, again, inner, given[2];
    int ni, na, nd, combiner, integers[8];
    MPI_Aint addresses[4];
    MPI_Count cni, cna, cnc, cnd, counts[8], large_at[] = {0, 64};
    int lengths[] = {2, 3};
    MPI_Aint at[] = {0, 64};
    OK(MPI_Type_contiguous(2, MPI_INT, &inner));
    MPI_Datatype types[] = {MPI_DOUBLE, inner};
    OK(MPI_Type_create_struct(2, lengths, at, types, &type));
    OK(MPI_Type_free(&inner));
    OK(MPI_Type_get_envelope(type, &ni, &na, &nd, &combiner));
    SAME(combiner, MPI_COMBINER_STRUCT);
    SAME(ni, 3);
    SAME(na, 2);
    SAME(nd, 2);
    OK(MPI_Type_get_contents(type, ni, na, nd, integers, addresses, given));
    SAME(integers[0], 2);
    SAME(integers[1], 2);
    SAME(integers[2], 3);
    SAME(addresses[1], 64);
    CHECK(given[0] == MPI_DOUBLE);
    OK(MPI_Type_get_envelope(given[1], &ni, &na, &nd, &combiner));
    SAME(combiner, MPI_COMBINER_CONTIGUOUS);
    OK(MPI_Type_free(&given[1]));
    OK(MPI_Type_free(&type));

    MPI_Count large_lengths[] = {2, 3};
    OK(MPI_Type_create_hindexed_c(2, large_lengths, large_at, MPI_INT, &again));
    OK(MPI_Type_get_envelope_c(again, &cni, &cna, &cnc, &cnd, &combiner));
    SAME(combiner, MPI_COMBINER_HINDEXED);
    SAME(cni, 0);
    SAME(cna, 0);
    SAME(cnc, 5);
    SAME(cnd, 1);
    OK(MPI_Type_get_contents_c(again, 0, 0, 5, 1, NULL, NULL, counts, given));
    SAME(counts[0], 2);
    SAME(counts[2], 3);
    SAME(counts[4], 64);
    CLASS(MPI_Type_get_envelope(again, &ni, &na, &nd, &combiner), MPI_ERR_TYPE);
    CLASS(MPI_Type_get_contents_c(again, 0, 0, 4, 1, NULL, NULL, counts, given), MPI_ERR_ARG);
    OK(MPI_Type_free(&again));

    OK(MPI_Type_get_envelope(MPI_INT, &ni, &na, &nd, &combiner));
    SAME(combiner, MPI_COMBINER_NAMED);
    CLASS(MPI_Type_get_contents(MPI_INT, 0, 0, 0, NULL, NULL, NULL), MPI_ERR_TYPE);
}

static void numbers_by_property(void) {
    MPI_Datatype type, same, other;
    int size, ni, na, nd, combiner, integers[2];
    OK(MPI_Type_create_f90_real(15, 307, &type));
    OK(MPI_Type_size(type, &size));
    SAME(size, 8);
    OK(MPI_Type_create_f90_real(15, 307, &same));
    CHECK(type == same);
    OK(MPI_Type_get_envelope(type, &ni, &na, &nd, &combiner));
    SAME(combiner, MPI_COMBINER_F90_REAL);
    SAME(ni, 2);
    OK(MPI_Type_get_contents(type, 2, 0, 0, integers, NULL, NULL));
    SAME(integers[0], 15);
    SAME(integers[1], 307);
    CLASS(MPI_Type_free(&same), MPI_ERR_TYPE);
    OK(MPI_Type_create_f90_complex(6, MPI_UNDEFINED, &other));
    OK(MPI_Type_size(other, &size));
    SAME(size, 8);
    OK(MPI_Type_create_f90_integer(12, &other));
    OK(MPI_Type_size(other, &size));
    SAME(size, 8);
    CLASS(MPI_Type_create_f90_integer(50, &other), MPI_ERR_ARG);
    CLASS(MPI_Type_create_f90_real(MPI_UNDEFINED, MPI_UNDEFINED, &other), MPI_ERR_ARG);
    CLASS(MPI_Type_create_f90_complex(MPI_UNDEFINED, MPI_UNDEFINED, &other), MPI_ERR_ARG);
    double two[] = {1.5, 2.5};
    OK(MPI_Reduce_local(&two[0], &two[1], 1, type, MPI_SUM));
    CHECK(two[1] == 4.0);
#if LDBL_DIG == 18
    /* gfortran has a kind of 18 digits, C's long double, and another one of more. */
    long double wide[] = {1.5L, 2.5L};
    OK(MPI_Type_create_f90_real(16, MPI_UNDEFINED, &type));
    OK(MPI_Reduce_local(&wide[0], &wide[1], 1, type, MPI_SUM));
    CHECK(wide[1] == 4.0L);
    OK(MPI_Type_create_f90_real(MPI_UNDEFINED, 400, &type));
    OK(MPI_Reduce_local(&wide[0], &wide[1], 1, type, MPI_SUM));
    CHECK(wide[1] == 5.5L);
    long double _Complex both[] = {2.0L, 3.0L};
    OK(MPI_Type_create_f90_complex(18, 4931, &type));
    OK(MPI_Reduce_local(&both[0], &both[1], 1, type, MPI_PROD));
    CHECK(both[1] == 6.0L);
#endif
    OK(MPI_Type_create_f90_real(19, MPI_UNDEFINED, &type));
    OK(MPI_Type_size(type, &size));
    SAME(size, 16);

    OK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &type));
    CHECK(type == MPI_REAL8);
    CLASS(MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 3, &type), MPI_ERR_ARG);
    OK(MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &type));
    CHECK(type == MPI_DOUBLE_INT);
    OK(MPI_Type_get_value_index(MPI_DOUBLE, MPI_FLOAT, &type));
    CHECK(type == MPI_DATATYPE_NULL);
}

static void statuses(void) {
    MPI_Status status;
    MPI_Datatype type, pair[] = {MPI_INT, MPI_CHAR};
    int n, lengths[] = {1, 1};
    MPI_Aint at[] = {0, 4};
    MPI_Count large;
    memset(&status, 0, sizeof status);
    OK(MPI_Type_create_struct(2, lengths, at, pair, &type));
    /* Bytes 0, 4 and 5 of a stream of five-byte elements end an int, an element and nothing. */
    struct { int bytes, count, elements; } expected[] = {
        {0, 0, 0}, {4, MPI_UNDEFINED, 1}, {5, 1, 2}, {6, MPI_UNDEFINED, MPI_UNDEFINED}, {9, MPI_UNDEFINED, 3}, {15, 3, 6},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        OK(MPI_Status_set_elements(&status, MPI_BYTE, expected[i].bytes));
        OK(MPI_Get_count(&status, type, &n));
        SAME(n, expected[i].count);
        OK(MPI_Get_elements(&status, type, &n));
        SAME(n, expected[i].elements);
        OK(MPI_Get_elements_x(&status, type, &large));
        SAME(large, expected[i].elements);
    }
    OK(MPI_Status_set_elements_c(&status, type, 5));
    OK(MPI_Get_count_c(&status, MPI_BYTE, &large));
    SAME(large, 14);
    OK(MPI_Status_set_elements_x(&status, MPI_INT, (MPI_Count)1 << 32));
    OK(MPI_Get_count(&status, MPI_INT, &n));
    SAME(n, MPI_UNDEFINED);
    OK(MPI_Get_elements_c(&status, MPI_INT, &large));
    SAME(large, (MPI_Count)1 << 32);
    OK(MPI_Type_free(&type));
}

static int deleted = 0;
static int copy_plus_one(MPI_Datatype t, int k, void *extra, void *in, void *out, int *flag) {
    (void)t, (void)k, (void)extra;
    *(void **)out = (char *)in + 1;
    *flag = 1;
    return MPI_SUCCESS;
}
static int count_deleted(MPI_Datatype t, int k, void *value, void *extra) {
    (void)t, (void)k, (void)value, (void)extra;
    deleted++;
    return MPI_SUCCESS;
}

static void attributes(void) {
    MPI_Datatype type, copy;
    int key, flag;
    char here[2], *found;
    OK(MPI_Type_create_keyval(copy_plus_one, count_deleted, &key, NULL));
    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    OK(MPI_Type_set_attr(type, key, here));
    OK(MPI_Type_dup(type, &copy));
    OK(MPI_Type_get_attr(copy, key, &found, &flag));
    SAME(flag, 1);
    CHECK(found == here + 1);
    OK(MPI_Type_free(&type));
    SAME(deleted, 1);
    OK(MPI_Type_delete_attr(copy, key));
    SAME(deleted, 2);
    OK(MPI_Type_free(&copy));
    SAME(deleted, 2);
    OK(MPI_Type_set_attr(MPI_INT, key, here));
    OK(MPI_Type_delete_attr(MPI_INT, key));
    OK(MPI_Type_free_keyval(&key));
    CLASS(MPI_Type_set_attr(MPI_DATATYPE_NULL, key, here), MPI_ERR_TYPE);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    errors_return();
    sizes_of_c();
    bounds();
    names();
    taking_apart();
    numbers_by_property();
    statuses();
    attributes();
    MPI_Finalize();
    return verdict();
}
