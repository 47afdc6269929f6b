/* Predefined operations compute as C does; users' operations are called as they ask (MPI 5.0 section 6.9).
 * RANKS: 1
 */
#include "check.h"
#include <complex.h>
#include <stdint.h>

#define EVERY(X)                                                                                       \
    X(char, MPI_CHAR) X(signed char, MPI_SIGNED_CHAR) X(unsigned char, MPI_UNSIGNED_CHAR)               \
    X(short, MPI_SHORT) X(unsigned short, MPI_UNSIGNED_SHORT) X(int, MPI_INT) X(unsigned, MPI_UNSIGNED) \
    X(long, MPI_LONG) X(unsigned long, MPI_UNSIGNED_LONG) X(long long, MPI_LONG_LONG)                   \
    X(unsigned long long, MPI_UNSIGNED_LONG_LONG) X(int8_t, MPI_INT8_T) X(uint8_t, MPI_UINT8_T)         \
    X(int16_t, MPI_INT16_T) X(uint16_t, MPI_UINT16_T) X(int32_t, MPI_INT32_T) X(uint32_t, MPI_UINT32_T) \
    X(int64_t, MPI_INT64_T) X(uint64_t, MPI_UINT64_T) X(MPI_Aint, MPI_AINT) X(MPI_Count, MPI_COUNT)     \
    X(MPI_Offset, MPI_OFFSET)

enum { N = 37 };

#define WITH(op, expression)                                                    \
    do {                                                                        \
        memcpy(c, b, sizeof b);                                                 \
        OK(MPI_Reduce_local(a, c, N, type, op));                                \
        int same = 1;                                                           \
        for (int i = 0; i < N; i++) same &= c[i] == (expression);               \
        if (!same) { fprintf(stderr, "%s on %s\n", #op, name); failures++; }    \
    } while (0)

#define ORDERED                                                                 \
    WITH(MPI_SUM, (a[i] + b[i]));                                               \
    WITH(MPI_PROD, (a[i] * b[i]));                                              \
    WITH(MPI_MAX, (a[i] > b[i] ? a[i] : b[i]));                                 \
    WITH(MPI_MIN, (a[i] < b[i] ? a[i] : b[i]))

#define FILL(T, step)                                                           \
    T a[N], b[N], c[N];                                                         \
    for (int i = 0; i < N; i++) {                                               \
        a[i] = (T)(i % 5 * (step));                                             \
        b[i] = (T)(i % 7);                                                      \
    }

#define INTEGER(T, handle)                                                      \
    {                                                                           \
        MPI_Datatype type = handle;                                             \
        const char *name = #handle;                                             \
        FILL(T, 1)                                                              \
        ORDERED;                                                                \
        WITH(MPI_LAND, (a[i] && b[i]));                                         \
        WITH(MPI_LOR, (a[i] || b[i]));                                          \
        WITH(MPI_LXOR, (!a[i] != !b[i]));                                       \
        WITH(MPI_BAND, (a[i] & b[i]));                                          \
        WITH(MPI_BOR, (a[i] | b[i]));                                           \
        WITH(MPI_BXOR, (a[i] ^ b[i]));                                          \
    }

#define REAL(T, handle)                                                         \
    {                                                                           \
        MPI_Datatype type = handle;                                             \
        const char *name = #handle;                                             \
        FILL(T, (T)-1.25L)                                                      \
        ORDERED;                                                                \
    }

#define COMPLEX(T, handle)                                                      \
    {                                                                           \
        MPI_Datatype type = handle;                                             \
        const char *name = #handle;                                             \
        FILL(T, 1.5f + 2 * I)                                                   \
        WITH(MPI_SUM, (a[i] + b[i]));                                           \
        WITH(MPI_PROD, (a[i] * b[i]));                                          \
    }

static void predefined(void) {
    EVERY(INTEGER)
    REAL(float, MPI_FLOAT)
    REAL(double, MPI_DOUBLE)
    REAL(long double, MPI_LONG_DOUBLE)
    REAL(float, MPI_REAL)
    REAL(double, MPI_REAL8)
    REAL(__float128, MPI_REAL16)
    COMPLEX(float complex, MPI_C_FLOAT_COMPLEX)
    COMPLEX(double complex, MPI_C_DOUBLE_COMPLEX)
    COMPLEX(long double complex, MPI_C_LONG_DOUBLE_COMPLEX)
    COMPLEX(double complex, MPI_DOUBLE_COMPLEX)
}

#define LOCATION(T, handle)                                                     \
    do {                                                                        \
        struct { T value; int at; } a[] = {{1, 9}, {4, 2}, {3, 5}}, b[] = {{2, 8}, {4, 1}, {3, 6}}; \
        OK(MPI_Reduce_local_c(a, b, 3, handle, MPI_MAXLOC));                    \
        CHECK(b[0].value == 2 && b[0].at == 8);                                 \
        CHECK(b[1].value == 4 && b[1].at == 1);                                 \
        CHECK(b[2].value == 3 && b[2].at == 5);                                 \
        OK(MPI_Reduce_local_c(a, b, 3, handle, MPI_MINLOC));                    \
        CHECK(b[0].value == 1 && b[0].at == 9);                                 \
    } while (0)

static void locations(void) {
    LOCATION(float, MPI_FLOAT_INT);
    LOCATION(double, MPI_DOUBLE_INT);
    LOCATION(long, MPI_LONG_INT);
    LOCATION(int, MPI_2INT);
    LOCATION(short, MPI_SHORT_INT);
    LOCATION(long double, MPI_LONG_DOUBLE_INT);
}

static int calls = 0;
static MPI_Datatype given;
static void subtract(void *in, void *inout, int *n, MPI_Datatype *type) {
    calls++;
    given = *type;
    for (int i = 0; i < *n; i++) ((int *)inout)[i] = ((int *)in)[i] - ((int *)inout)[i];
}
static void subtract_c(void *in, void *inout, MPI_Count *n, MPI_Datatype *type) {
    given = *type;
    for (MPI_Count i = 0; i < *n; i++) ((int *)inout)[i] = ((int *)in)[i] - ((int *)inout)[i];
}

static void of_the_user(void) {
    MPI_Op op, large;
    MPI_Datatype two;
    int commutes, a[] = {9, 8}, b[] = {1, 2};
    OK(MPI_Op_create(subtract, 0, &op));
    OK(MPI_Op_create_c(subtract_c, 1, &large));
    OK(MPI_Op_commutative(op, &commutes));
    SAME(commutes, 0);
    OK(MPI_Op_commutative(large, &commutes));
    SAME(commutes, 1);
    OK(MPI_Reduce_local(a, b, 2, MPI_INT, op));
    SAME(calls, 1);
    SAME(b[0], 8);
    SAME(b[1], 6);
    CHECK(given == MPI_INT);
    OK(MPI_Type_contiguous(2, MPI_INT, &two));
    CLASS(MPI_Reduce_local(a, b, 1, two, large), MPI_ERR_TYPE);
    OK(MPI_Type_commit(&two));
    OK(MPI_Reduce_local(a, b, 1, two, large));
    CHECK(given == two);
    OK(MPI_Type_free(&two));
    OK(MPI_Op_free(&op));
    CHECK(op == MPI_OP_NULL);
    OK(MPI_Op_free(&large));
}

static void mistakes(void) {
    float x = 1, y = 2;
    MPI_Op op = MPI_SUM;
    int commutes;
    CLASS(MPI_Reduce_local(&x, &y, 1, MPI_FLOAT, MPI_BAND), MPI_ERR_OP);
    CLASS(MPI_Reduce_local(&x, &y, 1, MPI_FLOAT, MPI_LAND), MPI_ERR_OP);
    CLASS(MPI_Reduce_local(&x, &y, 1, MPI_FLOAT, MPI_MAXLOC), MPI_ERR_OP);
    CLASS(MPI_Reduce_local(&x, &y, 1, MPI_BYTE, MPI_SUM), MPI_ERR_OP);
    CLASS(MPI_Reduce_local(&x, &y, 1, MPI_FLOAT, MPI_OP_NULL), MPI_ERR_OP);
    CLASS(MPI_Reduce_local(&x, &y, -1, MPI_FLOAT, MPI_SUM), MPI_ERR_COUNT);
    CLASS(MPI_Reduce_local(&x, &y, 1, MPI_DATATYPE_NULL, MPI_SUM), MPI_ERR_TYPE);
    CLASS(MPI_Op_free(&op), MPI_ERR_OP);
    CLASS(MPI_Op_create(NULL, 1, &op), MPI_ERR_ARG);
    CHECK(op == MPI_SUM && y == 2);
    OK(MPI_Op_commutative(MPI_SUM, &commutes));
    SAME(commutes, 1);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    errors_return();
    predefined();
    locations();
    of_the_user();
    mistakes();
    MPI_Finalize();
    return verdict();
}
