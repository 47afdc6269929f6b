/* Accumulates of elements that lie apart: several runs in each block that has a lock, elements that lie across two
 * blocks, fewer new elements than are fetched, runs of a few and of hundreds of elements in any order, pairs with gaps;
 * all ranks at once on the same ones; in memory that is mapped and in private memory.
 * RANKS: 1 2 3
 */
#include "check.h"

enum { BYTES = 3 * 16384, SPACE = 24, SHIFT = 12, ELEMENTS = 2000, SENT = 1200, ROUNDS = 10 };

static int rank, size;

/* Elements of 8 bytes, each `SPACE` bytes behind the one before: the 683rd lies across two blocks. */
static long long *element(char *base, int i) { return (long long *)(base + SHIFT + (size_t)i * SPACE); }

static long long value(char *base, int i) {
    long long is;
    memcpy(&is, element(base, i), sizeof is);
    return is;
}

/* How many of the first `n` elements have this value. */
static int equal(char *base, int n, long long expected) {
    int found = 0;
    for (int i = 0; i < n; i++) found += value(base, i) == expected;
    return found;
}

static int all(const long long *list, long long expected) {
    int found = 0;
    for (int i = 0; i < ELEMENTS; i++) found += list[i] == expected;
    return found == ELEMENTS;
}

static void run(char *base, MPI_Win win) {
    MPI_Datatype apart;
    long long ones[ELEMENTS], was[ELEMENTS];
    OK(MPI_Type_create_hvector(ELEMENTS, 1, SPACE, MPI_LONG_LONG, &apart));
    OK(MPI_Type_commit(&apart));
    for (int i = 0; i < ELEMENTS; i++) ones[i] = 1;
    memset(base, 0, BYTES);
    OK(MPI_Win_fence(0, win));
    for (int round = 0; round < ROUNDS; round++)
        for (int target = 0; target < size; target++)
            OK(MPI_Accumulate(ones, ELEMENTS, MPI_LONG_LONG, target, SHIFT, 1, apart, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    SAME(equal(base, ELEMENTS, ROUNDS * size), ELEMENTS);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get_accumulate(ones, ELEMENTS, MPI_LONG_LONG, was, ELEMENTS, MPI_LONG_LONG, (rank + 1) % size, SHIFT, 1, apart, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    CHECK(all(was, ROUNDS * size));
    SAME(equal(base, ELEMENTS, ROUNDS * size + 1), ELEMENTS);
    OK(MPI_Win_fence(0, win));
    /* Nothing lies between them that an update has changed. */
    for (int i = 0; i < ELEMENTS; i++) memset(element(base, i), 0, sizeof(long long));
    int changed = 0;
    for (int i = 0; i < BYTES; i++) changed += base[i] != 0;
    SAME(changed, 0);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get_accumulate(ones, SENT, MPI_LONG_LONG, was, ELEMENTS, MPI_LONG_LONG, (rank + 1) % size, SHIFT, 1, apart, MPI_REPLACE, win));
    OK(MPI_Win_fence(0, win));
    CHECK(all(was, 0));
    SAME(equal(base, SENT, 1), SENT);
    SAME(equal(base, ELEMENTS, 1), SENT);
    OK(MPI_Type_free(&apart));
}

enum { RUNS = 12 };

/* Runs of these lengths with a gap behind each, in the order of their places or in none. */
static void uneven(char *base, MPI_Win win, int ordered) {
    static const int lengths[RUNS] = {1, 2, 1300, 1, 1, 5, 600, 3, 1, 1100, 2, 1};
    int length[RUNS], elements = 0, right = 0, touched = 0;
    MPI_Aint at[RUNS], next = 5;
    double *ones, *was;
    MPI_Datatype apart;
    for (int i = 0; i < RUNS; i++) {
        const int k = ordered ? i : i * 5 % RUNS;
        length[k] = lengths[i];
        at[k] = next;
        next += (MPI_Aint)sizeof(double) * lengths[i] + 4 * i + 8;
        elements += lengths[i];
    }
    OK(MPI_Type_create_hindexed(RUNS, length, at, MPI_DOUBLE, &apart));
    OK(MPI_Type_commit(&apart));
    ones = malloc((size_t)elements * sizeof *ones);
    was = malloc((size_t)elements * sizeof *was);
    for (int i = 0; i < elements; i++) ones[i] = i;
    memset(base, 0, BYTES);
    OK(MPI_Win_fence(0, win));
    for (int round = 0; round < ROUNDS; round++)
        for (int target = 0; target < size; target++) OK(MPI_Accumulate(ones, elements, MPI_DOUBLE, target, 0, 1, apart, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get_accumulate(NULL, 0, MPI_DOUBLE, was, elements, MPI_DOUBLE, (rank + 1) % size, 0, 1, apart, MPI_NO_OP, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < elements; i++) right += was[i] == (double)i * ROUNDS * size;
    SAME(right, elements);
    for (int i = 0; i < RUNS; i++) memset(base + at[i], 0, sizeof(double) * (size_t)length[i]);
    for (int i = 0; i < BYTES; i++) touched += base[i] != 0;
    SAME(touched, 0);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Type_free(&apart));
    free(ones);
    free(was);
}

/* The largest value wins, with the number of its rank; what lies in the gaps stays. */
static void pairs(char *base, MPI_Win win) {
    enum { PAIRS = 2000 };
    struct pair { double value; int rank; } *mine = calloc(PAIRS, sizeof *mine), *there = (struct pair *)base;
    int right = 0;
    memset(base, 0, BYTES);
    for (int i = 0; i < PAIRS; i++) {
        mine[i].value = 1 + (i + rank) % size;
        mine[i].rank = rank;
        memset((char *)&there[i] + 12, 0x55, 4);
    }
    OK(MPI_Win_fence(0, win));
    for (int target = 0; target < size; target++) OK(MPI_Accumulate(mine, PAIRS, MPI_DOUBLE_INT, target, 0, PAIRS, MPI_DOUBLE_INT, MPI_MAXLOC, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < PAIRS; i++) {
        int gap;
        memcpy(&gap, (char *)&there[i] + 12, 4);
        right += there[i].value == size && (i + there[i].rank) % size == size - 1 && gap == 0x55555555;
    }
    SAME(right, PAIRS);
    OK(MPI_Win_fence(0, win));
    free(mine);
}

int main(void) {
    MPI_Win win;
    char *base;
    MPI_Init(NULL, NULL);
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    run(base, win);
    uneven(base, win, 1);
    uneven(base, win, 0);
    pairs(base, win);
    OK(MPI_Win_free(&win));
    base = malloc(BYTES);
    OK(MPI_Win_create(base, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    run(base, win);
    uneven(base, win, 1);
    uneven(base, win, 0);
    pairs(base, win);
    OK(MPI_Win_free(&win));
    free(base);
    MPI_Finalize();
    return verdict();
}
