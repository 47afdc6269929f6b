/* Rank 1 writes one record into its ring that no rank writes, as ARGV[1] says; rank 0 has to say what is wrong with it,
 * and neither to use it, nor to crash, nor to hang. */
#include "job_memory.h"

/* Kinds of record (src/protocol/record.rs). */
enum {
    EAGER = 1, RTS = 3, MATCHED, CTS, DATA, SPLIT_CTS, SPLIT_DONE, FIN, CANCEL_REPLY = 11, FIRST, FRAGMENT, HEAP_CTS, HEAP_DONE,
    UNKNOWN = 99,
};

/* A place in the shared heap, behind its bitmap. */
enum { INSIDE = 64 << 20 };

struct record {
    uint32_t context, tag, source, id;
    uint64_t words[5];
};

static char *memory;

/* The cell with the first record that has not been written, or whose `which` is the kind asked for. */
static char *cell_of(uint32_t from, uint32_t to, int which)
{
    char *cells = ring_of(memory, from, to) + CONTROL;
    for (uint64_t position = 0;; position++) {
        char *cell = cells + position * CELL;
        uint64_t word = __atomic_load_n((uint64_t *)cell, __ATOMIC_ACQUIRE);
        if ((uint32_t)word != position + 1) {
            if (which == 0) return cell;
            position--;
            usleep(100);
        } else if (which != 0 && (int)(word >> 32 & 255) == which) {
            return cell;
        }
    }
}

/* Commits a record of that kind and length behind the last one. */
static void commit(int kind, uint64_t length, struct record record)
{
    char *cell = cell_of(1, 0, 0);
    uint64_t position = (uint64_t)(cell - ring_of(memory, 1, 0) - CONTROL) / CELL;
    memcpy(cell + 8, &record, sizeof record);
    __atomic_store_n((uint64_t *)cell, (position + 1) | (uint64_t)kind << 32 | length << 40, __ATOMIC_RELEASE);
    set_flag(memory, 1, 0);
}

static struct record words(uint32_t id, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    return (struct record){0, 2, 1, id, {a, b, c, d, 0}};
}

/* The id of the message that rank 0 has announced. */
static uint32_t announced(void) { return ((struct record *)(cell_of(0, 1, RTS) + 8))->id; }

/* Announces a message of 16 bytes that are nowhere to be read; returns the request that rank 0 has for it. */
static uint32_t asked_for(void)
{
    commit(RTS, 32, words(0, 16, 0, 0, 0));
    return (uint32_t)((struct record *)(cell_of(0, 1, CTS) + 8))->words[0];
}

static void lie(const char *what)
{
    const uint64_t far = (uint64_t)1 << 60;
#define LIE(name, ...) if (strcmp(what, name) == 0) { __VA_ARGS__; return; }
    LIE("kind", commit(UNKNOWN, 32, words(0, 0, 0, 0, 0)))
    LIE("length", commit(EAGER, 0x7fffff, words(0, 0, 0, 0, 0)))
    LIE("block", commit(EAGER, 0x800040, words(0, 0, 0, 0, 0)))
    LIE("context", struct record record = words(0, 0, 0, 0, 0); record.context = 0xffffff; commit(EAGER, 32, record))
    LIE("place", commit(RTS, 32, words(0, 100000, 0, far, 0)))
    LIE("first-none", commit(FIRST, 32, words(0, 0, 0, 0, 0)))
    LIE("first-huge", commit(FIRST, 32, words(0, far, 0, 0, 0)))
    LIE("first-twice", commit(FIRST, 32, words(0, 1000, 0, 0, 0)); commit(FIRST, 32, words(0, 1000, 0, 0, 0)))
    LIE("fragment-alone", commit(FRAGMENT, 32, words(0, 0, 0, 0, 0)))
    LIE("fragment-long", commit(FIRST, 32, words(0, 10, 0, 0, 0)); commit(FRAGMENT, 32, words(0, 0, 0, 0, 0)))
    LIE("fragment-empty", commit(FIRST, 32, words(0, 10, 0, 0, 0)); commit(FRAGMENT, 0, words(0, 0, 0, 0, 0)))
    LIE("matched", commit(MATCHED, 32, words(12345, 0, 0, 0, 0)))
    LIE("cts", commit(CTS, 32, words(12345, 0, 1, 0, 0)))
    LIE("data", commit(DATA, 32, words(12345, 0, 0, 0, 0)))
    LIE("split-cts", commit(SPLIT_CTS, 32, words(12345, 0, far, 0, 1)))
    LIE("split-done", commit(SPLIT_DONE, 32, words(12345, 1, 0, 0, 0)))
    LIE("fin", commit(FIN, 32, words(12345, 1, 0, 0, 0)))
    LIE("heap-cts", commit(HEAP_CTS, 32, words(12345, 0, 0, 1, 0)))
    LIE("heap-done", commit(HEAP_DONE, 32, words(12345, 1, 0, 0, 0)))
    LIE("cancelled", commit(CANCEL_REPLY, 32, words(12345, 1, 0, 0, 0)))
    LIE("cts-none", commit(CTS, 32, words(announced(), 0, 0, 0, 0)))
    LIE("cts-long", commit(CTS, 32, words(announced(), 0, 300001, 0, 0)))
    LIE("split-backwards", commit(SPLIT_CTS, 32, words(announced(), 0, far, 5, 3)))
    LIE("split-long", commit(SPLIT_CTS, 32, words(announced(), 0, far, 0, 300001)))
    LIE("heap-outside", commit(HEAP_CTS, 32, words(announced(), 0, far, 300000, 0)))
    LIE("heap-long", commit(HEAP_CTS, 32, words(announced(), 0, INSIDE, 300001, 0)))
    LIE("heap-shared", commit(HEAP_CTS, 32, words(announced(), 0, INSIDE, 300000, 1)))
    LIE("data-of-a-send", commit(DATA, 32, words(announced(), 0, 0, 0, 0)))
    LIE("data-long", commit(DATA, 32, words(asked_for(), 0, 0, 0, 0)))
    LIE("data-empty", commit(DATA, 0, words(asked_for(), 0, 0, 0, 0)))
    LIE("copied-unasked", commit(HEAP_DONE, 32, words(asked_for(), 16, 0, 0, 0)))
    fprintf(stderr, "no lie is called %s\n", what);
}

int main(int argc, char **argv)
{
    static char large[300000];
    int rank, number = 1;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    memory = job_memory();
    if (rank == 0) {
        OK(MPI_Recv(&number, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Issend(large, sizeof large, MPI_CHAR, 1, 3, MPI_COMM_WORLD, &request));
        /* Nobody sends this: the wait ends with what is wrong. */
        MPI_Recv(large, sizeof large, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("rank 0 received a lie\n");
        return 1;
    }
    OK(MPI_Send(&number, 1, MPI_INT, 0, 1, MPI_COMM_WORLD));
    lie(argv[1]);
    sleep(100);
    return 1;
}
