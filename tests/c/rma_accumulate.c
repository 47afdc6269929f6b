/* Accumulates: every predefined operation on every type that takes it, compare-and-swap,
 * and atomicity (MPI 5.0 sections 12.3.4, 12.7.1).
 * RANKS: 1 2 4
 */
#include "check.h"
#include <complex.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

static int rank, size, next, previous;

enum { N = 7, ROOM = N * 3 * 32 };

#define PLAIN(X)                                                                                        \
    X(char, MPI_CHAR) X(signed char, MPI_SIGNED_CHAR) X(unsigned char, MPI_UNSIGNED_CHAR)                \
    X(unsigned char, MPI_BYTE) X(wchar_t, MPI_WCHAR) X(char, MPI_CHARACTER) X(_Bool, MPI_C_BOOL)         \
    X(_Bool, MPI_CXX_BOOL) X(short, MPI_SHORT) X(unsigned short, MPI_UNSIGNED_SHORT) X(int, MPI_INT)     \
    X(unsigned, MPI_UNSIGNED) X(long, MPI_LONG) X(unsigned long, MPI_UNSIGNED_LONG)                      \
    X(long long, MPI_LONG_LONG) X(unsigned long long, MPI_UNSIGNED_LONG_LONG) X(int8_t, MPI_INT8_T)      \
    X(uint8_t, MPI_UINT8_T) X(int16_t, MPI_INT16_T) X(uint16_t, MPI_UINT16_T) X(int32_t, MPI_INT32_T)    \
    X(uint32_t, MPI_UINT32_T) X(int64_t, MPI_INT64_T) X(uint64_t, MPI_UINT64_T) X(MPI_Aint, MPI_AINT)    \
    X(MPI_Count, MPI_COUNT) X(MPI_Offset, MPI_OFFSET) X(float, MPI_FLOAT) X(double, MPI_DOUBLE)          \
    X(long double, MPI_LONG_DOUBLE) X(float complex, MPI_C_FLOAT_COMPLEX)                                \
    X(double complex, MPI_C_DOUBLE_COMPLEX) X(long double complex, MPI_C_LONG_DOUBLE_COMPLEX)            \
    X(float complex, MPI_CXX_FLOAT_COMPLEX) X(double complex, MPI_CXX_DOUBLE_COMPLEX)                    \
    X(long double complex, MPI_CXX_LONG_DOUBLE_COMPLEX) X(int, MPI_LOGICAL) X(int, MPI_INTEGER)          \
    X(float, MPI_REAL) X(double, MPI_DOUBLE_PRECISION) X(float complex, MPI_COMPLEX)                     \
    X(double complex, MPI_DOUBLE_COMPLEX) X(int8_t, MPI_INTEGER1) X(int16_t, MPI_INTEGER2)               \
    X(int32_t, MPI_INTEGER4) X(int64_t, MPI_INTEGER8) X(__int128, MPI_INTEGER16) X(float, MPI_REAL4)     \
    X(double, MPI_REAL8) X(__float128, MPI_REAL16) X(float complex, MPI_COMPLEX8)                        \
    X(double complex, MPI_COMPLEX16) X(int8_t, MPI_LOGICAL1) X(int16_t, MPI_LOGICAL2)                    \
    X(int32_t, MPI_LOGICAL4) X(int64_t, MPI_LOGICAL8)

#define PAIRS(X)                                                                                        \
    X(float, int, MPI_FLOAT_INT) X(double, int, MPI_DOUBLE_INT) X(long, int, MPI_LONG_INT)               \
    X(int, int, MPI_2INT) X(short, int, MPI_SHORT_INT) X(long double, int, MPI_LONG_DOUBLE_INT)          \
    X(float, float, MPI_2REAL) X(double, double, MPI_2DOUBLE_PRECISION) X(int, int, MPI_2INTEGER)

static const MPI_Op ops[] = {MPI_SUM,  MPI_PROD, MPI_MAX,  MPI_MIN,    MPI_LAND,   MPI_LOR,     MPI_LXOR,
                             MPI_BAND, MPI_BOR,  MPI_BXOR, MPI_MINLOC, MPI_MAXLOC, MPI_REPLACE, MPI_NO_OP};
static const char *const op_names[] = {"SUM",  "PROD", "MAX",  "MIN",    "LAND",   "LOR",     "LXOR",
                                       "BAND", "BOR",  "BXOR", "MINLOC", "MAXLOC", "REPLACE", "NO_OP"};
enum { OPS = sizeof ops / sizeof *ops };

/* A type with values of rank `from`, and `size` bytes from one to the next. */
struct values {
    MPI_Datatype type;
    const char *name;
    size_t stride;
    void (*fill)(void *to, int from);
};

static int number(int from, int i) { return (from * 3 + i * 5) % 7; }

#define FILL(T, handle)                                                                                  \
    static void fill_##handle(void *to, int from) {                                                      \
        for (int i = 0; i < N; i++) ((T *)to)[i] = (T)number(from, i); \
    }
PLAIN(FILL)
#define FILL_PAIR(T, I, handle)                                                                          \
    struct pair_##handle { T value; I at; };                                                             \
    static void fill_##handle(void *to, int from) {                                                      \
        for (int i = 0; i < N; i++) {                                                                    \
            ((struct pair_##handle *)to)[i].value = (T)number(from, i);                                  \
            ((struct pair_##handle *)to)[i].at = (I)(from * 10 + i);                                     \
        }                                                                                                \
    }
PAIRS(FILL_PAIR)

#define ROW(T, handle) {handle, #handle, sizeof(T), fill_##handle},
#define ROW_PAIR(T, I, handle) {handle, #handle, sizeof(struct pair_##handle), fill_##handle},
static const struct values all[] = {PLAIN(ROW) PAIRS(ROW_PAIR)};
enum { TYPES = sizeof all / sizeof *all };

static const void *expected_of(const struct values *v, MPI_Op op, const void *origin, const void *before) {
    static _Alignas(64) char result[ROOM];
    memcpy(result, before, ROOM);
    if (op == MPI_REPLACE) memcpy(result, origin, ROOM);
    else if (op != MPI_NO_OP) OK(MPI_Reduce_local(origin, result, N, v->type, op));
    return result;
}

/* Compares the values themselves: what lies between them, nobody promises. */
static int same(const struct values *v, const void *a, const void *b) {
    char packed[2][ROOM];
    int at[2] = {0, 0};
    OK(MPI_Pack(a, N, v->type, packed[0], ROOM, &at[0], MPI_COMM_SELF));
    OK(MPI_Pack(b, N, v->type, packed[1], ROOM, &at[1], MPI_COMM_SELF));
    return at[0] == at[1] && !memcmp(packed[0], packed[1], at[0]);
}

static void wrong(const struct values *v, int op, const char *what) {
    fprintf(stderr, "%s: MPI_%s on %s\n", what, op_names[op], v->name);
    failures++;
}

/* Each value of a type by itself: by MPI_Fetch_and_op, MPI_Accumulate and MPI_Get_accumulate in turn. */
static void one_by_one(const struct values *v, char *base, MPI_Win win) {
    static _Alignas(64) char origin[ROOM], before[ROOM], theirs[ROOM], got[ROOM], sent[ROOM];
    memset(origin, 0, ROOM), memset(before, 0, ROOM), memset(theirs, 0, ROOM), memset(sent, 0, ROOM);
    v->fill(origin, rank);
    v->fill(before, rank + 100);
    v->fill(theirs, next + 100);
    v->fill(sent, previous);
    for (int op = 0; op < OPS; op++) {
        int fetches = ops[op] == MPI_NO_OP;
        if (op < OPS - 2 && MPI_Reduce_local(origin, got, 1, v->type, ops[op]) != MPI_SUCCESS) {
            OK(MPI_Win_fence(0, win));
            CLASS(MPI_Fetch_and_op(origin, got, v->type, next, 0, ops[op], win), MPI_ERR_OP);
            OK(MPI_Win_fence(0, win));
            continue;
        }
        memcpy(base, before, ROOM);
        memcpy(got, theirs, ROOM);
        OK(MPI_Win_fence(0, win));
        for (int i = 0; i < N; i++) {
            size_t at = i * v->stride;
            const void *from = fetches ? NULL : origin + at;
            if (i % 3 == 1 && !fetches) {
                OK(MPI_Accumulate(from, 1, v->type, next, at, 1, v->type, ops[op], win));
                continue;
            }
            memset(got + at, 0, v->stride);
            if (i % 3 == 2) OK(MPI_Get_accumulate(from, 1, v->type, got + at, 1, v->type, next, at, 1, v->type, ops[op], win));
            else OK(MPI_Fetch_and_op(from, got + at, v->type, next, at, ops[op], win));
        }
        OK(MPI_Win_fence(0, win));
        if (!same(v, got, theirs)) wrong(v, op, "what was fetched one by one");
        if (!same(v, base, expected_of(v, ops[op], sent, before))) wrong(v, op, "one by one");
        OK(MPI_Win_fence(0, win));
    }
}

/* Each accumulates to the next, whose values are known. */
static void one_type(const struct values *v, char *base, MPI_Win win) {
    static _Alignas(64) char origin[ROOM], before[ROOM], theirs[ROOM], got[ROOM], sent[ROOM];
    MPI_Datatype spread;
    OK(MPI_Type_create_resized(v->type, 0, 3 * v->stride, &spread));
    OK(MPI_Type_commit(&spread));
    memset(origin, 0, ROOM), memset(before, 0, ROOM), memset(theirs, 0, ROOM), memset(sent, 0, ROOM);
    v->fill(origin, rank);
    v->fill(before, rank + 100);
    v->fill(theirs, next + 100);
    v->fill(sent, previous);
    for (int op = 0; op < OPS; op++) {
        int fetches = ops[op] == MPI_NO_OP;
        memcpy(got, before, ROOM);
        if (op < OPS - 2 && MPI_Reduce_local(origin, got, N, v->type, ops[op]) != MPI_SUCCESS) {
            /* What a reduction does not take, an accumulate does not. */
            OK(MPI_Win_fence(0, win));
            CLASS(MPI_Accumulate(origin, N, v->type, next, 0, N, v->type, ops[op], win), MPI_ERR_OP);
            OK(MPI_Win_fence(0, win));
            continue;
        }
        if (!fetches) {
            memcpy(base, before, ROOM);
            OK(MPI_Win_fence(0, win));
            OK(MPI_Accumulate(origin, N, v->type, next, 0, N, v->type, ops[op], win));
            OK(MPI_Win_fence(0, win));
            if (!same(v, base, expected_of(v, ops[op], sent, before))) wrong(v, op, "accumulate");
        }
        memcpy(base, before, ROOM);
        memset(got, 0, ROOM);
        OK(MPI_Win_fence(0, win));
        OK(MPI_Get_accumulate(fetches ? NULL : origin, N, v->type, got, N, v->type, next, 0, N, v->type, ops[op], win));
        OK(MPI_Win_fence(0, win));
        if (!same(v, got, theirs)) wrong(v, op, "what get_accumulate fetches");
        if (!same(v, base, expected_of(v, ops[op], sent, before))) wrong(v, op, "get_accumulate");
        /* Into places with gaps, and from there. */
        memset(base, 0, ROOM);
        for (int i = 0; i < N; i++) memcpy(base + i * 3 * v->stride, before + i * v->stride, v->stride);
        memset(got, 0, ROOM);
        OK(MPI_Win_fence(0, win));
        OK(MPI_Get_accumulate_c(origin, N, v->type, got, N, spread, next, 0, N, spread, ops[op], win));
        OK(MPI_Win_fence(0, win));
        char close[ROOM] = {0};
        for (int i = 0; i < N; i++) memcpy(close + i * v->stride, got + i * 3 * v->stride, v->stride);
        if (!same(v, close, theirs)) wrong(v, op, "what get_accumulate fetches with gaps");
        for (int i = 0; i < N; i++) memcpy(close + i * v->stride, base + i * 3 * v->stride, v->stride);
        if (!same(v, close, expected_of(v, ops[op], sent, before))) wrong(v, op, "get_accumulate with gaps");
        OK(MPI_Win_fence(0, win));
    }
    OK(MPI_Type_free(&spread));
}

#define SWAPPED(X)                                                                                       \
    X(char, MPI_CHAR) X(signed char, MPI_SIGNED_CHAR) X(unsigned char, MPI_UNSIGNED_CHAR)                \
    X(unsigned char, MPI_BYTE) X(short, MPI_SHORT) X(unsigned short, MPI_UNSIGNED_SHORT) X(int, MPI_INT) \
    X(unsigned, MPI_UNSIGNED) X(long, MPI_LONG) X(unsigned long, MPI_UNSIGNED_LONG)                      \
    X(long long, MPI_LONG_LONG) X(unsigned long long, MPI_UNSIGNED_LONG_LONG) X(int8_t, MPI_INT8_T)      \
    X(uint8_t, MPI_UINT8_T) X(int16_t, MPI_INT16_T) X(uint16_t, MPI_UINT16_T) X(int32_t, MPI_INT32_T)    \
    X(uint32_t, MPI_UINT32_T) X(int64_t, MPI_INT64_T) X(uint64_t, MPI_UINT64_T) X(MPI_Aint, MPI_AINT)    \
    X(MPI_Count, MPI_COUNT) X(MPI_Offset, MPI_OFFSET) X(int, MPI_LOGICAL) X(int, MPI_INTEGER)            \
    X(int8_t, MPI_INTEGER1) X(int16_t, MPI_INTEGER2) X(int32_t, MPI_INTEGER4) X(int64_t, MPI_INTEGER8)   \
    X(__int128, MPI_INTEGER16) X(int8_t, MPI_LOGICAL1) X(int16_t, MPI_LOGICAL2) X(int32_t, MPI_LOGICAL4) \
    X(int64_t, MPI_LOGICAL8)

#define SWAP(T, handle)                                                                                  \
    {                                                                                                    \
        T *mine = (T *)base, compare = 3, new = 5, other = 7, old = 0;                                   \
        mine[0] = 1, mine[1] = 3, mine[2] = 1;                                                           \
        OK(MPI_Win_fence(0, win));                                                                       \
        OK(MPI_Compare_and_swap(&new, &compare, &old, handle, next, sizeof(T), win));                    \
        CHECK(old == 3);                                                                                 \
        OK(MPI_Compare_and_swap(&other, &compare, &old, handle, next, sizeof(T), win));                  \
        CHECK(old == 5);                                                                                 \
        OK(MPI_Win_fence(0, win));                                                                       \
        CHECK(mine[0] == 1 && mine[1] == 5 && mine[2] == 1);                                             \
        OK(MPI_Win_fence(0, win));                                                                       \
    }

static void swaps(char *base, MPI_Win win) {
    _Bool yes = 1, no = 0, old = 1, *mine = (_Bool *)base;
    SWAPPED(SWAP)
    *mine = 0;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Compare_and_swap(&yes, &no, &old, MPI_C_BOOL, next, 0, win));
    CHECK(!old);
    OK(MPI_Win_fence(0, win));
    CHECK(*mine);
    OK(MPI_Win_fence(0, win));
}

/* Fewer elements come than are fetched: what lies behind them is fetched alone, contiguous or with gaps (`step`
 * elements from one to the next). */
static void fewer_than_fetched(char *base, MPI_Win win, MPI_Datatype type, int step) {
    int *mine = (int *)base, sent[2] = {10, 20}, old[3];
    for (int count = 0; count <= 2; count++) {
        for (int i = 0; i < 6; i++) mine[i] = i + 1;
        memset(old, 0x55, sizeof old);
        OK(MPI_Win_fence(0, win));
        OK(MPI_Get_accumulate(sent, count, MPI_INT, old, 3, MPI_INT, next, 0, 1, type, count ? MPI_SUM : MPI_REPLACE, win));
        OK(MPI_Win_fence(0, win));
        for (int i = 0; i < 3; i++) {
            SAME(old[i], i * step + 1);
            SAME(mine[i * step], i * step + 1 + (i < count ? sent[i] : 0));
        }
        OK(MPI_Win_fence(0, win));
    }
}

static void unequal_counts(char *base, MPI_Win win) {
    MPI_Datatype close, apart;
    OK(MPI_Type_contiguous(3, MPI_INT, &close));
    OK(MPI_Type_vector(3, 1, 2, MPI_INT, &apart));
    OK(MPI_Type_commit(&close));
    OK(MPI_Type_commit(&apart));
    fewer_than_fetched(base, win, close, 1);
    fewer_than_fetched(base, win, apart, 2);
    OK(MPI_Type_free(&close));
    OK(MPI_Type_free(&apart));
}

enum { ROUNDS = 400 };

/* All add to the first rank's elements at once, and read them meanwhile. */
static void contention(char *base, MPI_Win win) {
    struct { double value; int at; } pair, pair_old, *pairs;
    struct area {
        int number;
        long wide;
        double real;
        double complex complex_;
        char pair[sizeof pair];
        long double extended;
        short narrow;
    } *area = (struct area *)base;
    int one = 1, int_old, last_int = -1;
    long wide = 1, wide_old, sum = 0, total;
    double real = 0.5, real_old, last = -1;
    double complex both = 1 + 2 * I, both_old;
    long double extended = 1, extended_old;
    short narrow = 1, narrow_old;
    pairs = (void *)area->pair;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
    memset(base, 0, ROOM);
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < ROUNDS; i++) {
        OK(MPI_Fetch_and_op(&one, &int_old, MPI_INT, 0, offsetof(struct area, number), MPI_SUM, win));
        OK(MPI_Accumulate(&wide, 1, MPI_LONG, 0, offsetof(struct area, wide), 1, MPI_LONG, MPI_SUM, win));
        OK(MPI_Get_accumulate(&real, 1, MPI_DOUBLE, &real_old, 1, MPI_DOUBLE, 0, offsetof(struct area, real), 1, MPI_DOUBLE,
                              MPI_SUM, win));
        OK(MPI_Accumulate(&both, 1, MPI_C_DOUBLE_COMPLEX, 0, offsetof(struct area, complex_), 1, MPI_C_DOUBLE_COMPLEX, MPI_SUM,
                          win));
        OK(MPI_Fetch_and_op(NULL, &both_old, MPI_C_DOUBLE_COMPLEX, 0, offsetof(struct area, complex_), MPI_NO_OP, win));
        pair.value = pair.at = rank * ROUNDS + i;
        OK(MPI_Fetch_and_op(&pair, &pair_old, MPI_DOUBLE_INT, 0, offsetof(struct area, pair), i % 2 ? MPI_REPLACE : MPI_MAXLOC,
                            win));
        OK(MPI_Fetch_and_op(&extended, &extended_old, MPI_LONG_DOUBLE, 0, offsetof(struct area, extended), MPI_SUM, win));
        OK(MPI_Fetch_and_op(&narrow, &narrow_old, MPI_SHORT, 0, offsetof(struct area, narrow), MPI_SUM, win));
        OK(MPI_Win_flush(0, win));
        CHECK(int_old > last_int && int_old < size * ROUNDS);
        CHECK(real_old > last);
        last_int = int_old, last = real_old, sum += int_old;
        CHECK(cimag(both_old) == 2 * creal(both_old) && creal(both_old) > i);
        CHECK(pair_old.value == pair_old.at);
        CHECK(extended_old >= i);
        OK(MPI_Fetch_and_op(NULL, &wide_old, MPI_LONG, 0, offsetof(struct area, wide), MPI_NO_OP, win));
        OK(MPI_Win_flush(0, win));
        CHECK(wide_old > i);
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    long n = (long)size * ROUNDS;
    OK(MPI_Allreduce(&sum, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    SAME(total, n * (n - 1) / 2);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    if (rank == 0) {
        SAME(area->number, n);
        SAME(area->wide, n);
        CHECK(area->real == n * 0.5);
        CHECK(area->complex_ == n * both);
        CHECK(area->extended == n);
        SAME(area->narrow, (short)n);
        CHECK(pairs->value == pairs->at);
    }
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Elements of a large array, which others change at the same time in another order. */
static void arrays(int allocated) {
    enum { MANY = 5000 };
    static double own[MANY], ones[MANY], old[MANY];
    double *base = own;
    MPI_Win win;
    MPI_Datatype backwards;
    OK(MPI_Type_vector(MANY, 1, -1, MPI_DOUBLE, &backwards));
    OK(MPI_Type_commit(&backwards));
    if (allocated)
        OK(MPI_Win_allocate(sizeof own, sizeof *own, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    else
        OK(MPI_Win_create(own, sizeof own, sizeof *own, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    for (int i = 0; i < MANY; i++) base[i] = 0, ones[i] = 1;
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < 20; i++) {
        int to = (rank + i) % size;
        if (i % 3 == 0)
            OK(MPI_Accumulate(ones, MANY, MPI_DOUBLE, to, MANY - 1, 1, backwards, MPI_SUM, win));
        else if (i % 3 == 1)
            OK(MPI_Accumulate(ones, MANY, MPI_DOUBLE, to, 0, MANY, MPI_DOUBLE, MPI_SUM, win));
        else
            OK(MPI_Get_accumulate(ones, MANY, MPI_DOUBLE, old, MANY, MPI_DOUBLE, to, 0, MANY, MPI_DOUBLE, MPI_SUM, win));
    }
    OK(MPI_Win_fence(0, win));
    long wrong_ = 0;
    for (int i = 0; i < MANY; i++) wrong_ += base[i] != 20;
    SAME(wrong_, 0);
    OK(MPI_Type_free(&backwards));
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    next = (rank + 1) % size, previous = (rank + size - 1) % size;
    errors_return();
    for (int kind = 0; kind < 2; kind++) {
        static _Alignas(64) char own[ROOM];
        char *base = own;
        MPI_Win win;
        if (kind == 0)
            OK(MPI_Win_allocate(ROOM, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        else
            OK(MPI_Win_create(own, ROOM, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
        /* Small values by themselves come first: while nothing else was done they are changed by instructions. */
        for (int i = 0; i < TYPES; i++)
            if (all[i].stride <= 8) one_by_one(&all[i], base, win);
        swaps(base, win);
        unequal_counts(base, win);
        for (int i = 0; i < TYPES; i++) {
            one_by_one(&all[i], base, win);
            one_type(&all[i], base, win);
        }
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
        contention(base, win);
        OK(MPI_Win_free(&win));
        arrays(kind == 0);
    }
    MPI_Finalize();
    return verdict();
}
