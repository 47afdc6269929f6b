/* Memory that is private to its process, on the stack, static or of malloc, is read and changed by others while its
 * process computes and calls no function of MPI (MPI 5.0 section 12.5.3: passive means passive).
 * RANKS: 2 4
 */
#include "check.h"

static int rank, size;

enum { WORDS = 1 << 16, ROUNDS = 50 };
static long fixed[WORDS];

static long look(const long *at) { return *(const volatile long *)at; }

/* Rank 0 computes until the others have done their parts; word `from` of its memory says so. */
static void target(const long *memory) {
    double sum = 0;
    for (int from = 1; from < size; from++)
        while (look(memory + from) != from * 11) sum += 1e-9;
    CHECK(sum >= 0);
}

static void origin(MPI_Win win) {
    enum { PART = 4096 };
    static long large[PART], back[PART];
    long word = rank * 11, one = 1, old = -1, three[3] = {-1, -1, -1};
    int at = 1000 + rank * PART;
    MPI_Datatype strided;
    OK(MPI_Type_vector(PART / 2, 1, 2, MPI_LONG, &strided));
    OK(MPI_Type_commit(&strided));
    for (int i = 0; i < PART; i++) large[i] = rank * 100000 + i;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    OK(MPI_Put(large, PART, MPI_LONG, 0, at, PART, MPI_LONG, win));
    OK(MPI_Win_flush(0, win));
    OK(MPI_Get(back, PART, MPI_LONG, 0, at, PART, MPI_LONG, win));
    OK(MPI_Win_flush(0, win));
    CHECK(!memcmp(large, back, sizeof large));
    /* Every second word, to every second word. */
    for (int i = 0; i < PART; i++) large[i] = -i;
    OK(MPI_Put(large, 1, strided, 0, at, 1, strided, win));
    OK(MPI_Win_flush(0, win));
    memset(back, 0, sizeof back);
    OK(MPI_Get(back, 1, strided, 0, at, PART / 2, MPI_LONG, win));
    OK(MPI_Win_flush(0, win));
    for (int i = 0; i < PART; i++) SAME(back[i], i % 2 ? 0 : i / 2 % 2 ? rank * 100000 + i / 2 : -(i / 2));
    OK(MPI_Win_unlock(0, win));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    for (int i = 0; i < ROUNDS; i++) {
        OK(MPI_Accumulate(&one, 1, MPI_LONG, 0, 100, 1, MPI_LONG, MPI_SUM, win));
        OK(MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 101, MPI_SUM, win));
        OK(MPI_Win_flush(0, win));
        CHECK(old >= i && old < (size - 1) * ROUNDS);
        /* A counter by compare-and-swap. */
        long seen = 0, next;
        do {
            old = seen;
            next = old + 1;
            OK(MPI_Compare_and_swap(&next, &old, &seen, MPI_LONG, 0, 102, win));
            OK(MPI_Win_flush(0, win));
        } while (seen != old);
    }
    OK(MPI_Win_unlock(0, win));
    for (int i = 0; i < ROUNDS; i++) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Get(three, 3, MPI_LONG, 0, 200, 3, MPI_LONG, win));
        OK(MPI_Win_flush(0, win));
        CHECK(three[0] == three[1] && three[1] == three[2]);
        for (int k = 0; k < 3; k++) three[k]++;
        OK(MPI_Put(three, 3, MPI_LONG, 0, 200, 3, MPI_LONG, win));
        OK(MPI_Win_unlock(0, win));
    }
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    OK(MPI_Put(&word, 1, MPI_LONG, 0, rank, 1, MPI_LONG, win));
    OK(MPI_Win_unlock(0, win));
    OK(MPI_Type_free(&strided));
}

static void check(const long *memory) {
    enum { PART = 4096 };
    SAME(memory[100], (size - 1) * ROUNDS);
    SAME(memory[101], (size - 1) * ROUNDS);
    SAME(memory[102], (size - 1) * ROUNDS);
    for (int k = 0; k < 3; k++) SAME(memory[200 + k], (size - 1) * ROUNDS);
    for (int from = 1; from < size; from++) {
        const long *part = memory + 1000 + from * PART;
        long wrong = 0;
        for (int i = 0; i < PART; i++) wrong += part[i] != (i % 2 == 0 ? -i : from * 100000 + i);
        SAME(wrong, 0);
    }
}

static void of(long *memory) {
    MPI_Win win;
    memset(memory, 0, WORDS * sizeof *memory);
    /* Others have memory of another kind, or none. */
    MPI_Aint bytes = rank == 0 ? WORDS * sizeof *memory : rank % 2 ? 0 : 64;
    OK(MPI_Win_create(memory, bytes, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    if (rank == 0) {
        target(memory);
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        check(memory);
        OK(MPI_Win_unlock(0, win));
    } else {
        origin(win);
    }
    OK(MPI_Win_free(&win));
}

/* The owner accumulates into its memory as the others do: nothing is lost. */
static void owner_too(void) {
    MPI_Win win;
    long own[2] = {0}, one = 1, old;
    double real[2] = {0}, half = 0.5;
    MPI_Win reals;
    OK(MPI_Win_create(own, sizeof own, sizeof *own, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_create(real, sizeof real, sizeof *real, MPI_INFO_NULL, MPI_COMM_WORLD, &reals));
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Win_lock_all(0, reals));
    for (int i = 0; i < 500; i++) {
        OK(MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win));
        OK(MPI_Accumulate(&half, 1, MPI_DOUBLE, 0, 1, 1, MPI_DOUBLE, MPI_SUM, reals));
        OK(MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 1, MPI_SUM, win));
    }
    OK(MPI_Win_unlock_all(reals));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        SAME(own[0], 500 * size);
        SAME(own[1], 500 * size);
        CHECK(real[1] == 250.0 * size);
    }
    OK(MPI_Win_free(&reals));
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv) {
    long stack[WORDS], *heap = malloc(sizeof stack);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    of(fixed);
    of(stack);
    of(heap);
    owner_too();
    free(heap);
    MPI_Finalize();
    return verdict();
}
