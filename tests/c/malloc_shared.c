/* With --share-heap what malloc and its kin give is shared if it is large, from before MPI_Init until after
 * MPI_Finalize, and holds what it should; what is small is not, nor what is on the stack.
 * Blocks move in and out as they are resized.
 * RANKS: 2
 * ENV: PERUSAL_SHARE_HEAP=on
 */
#include "check.h"
#include "malloc_shared.h"
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>

enum { LARGE = 100000, HUGE = 4 << 20 };
static char ballast[LARGE];

static void family(void)
{
    char *block = malloc(LARGE), *aligned = NULL;
    /* The compiler must not see that it is too much. */
    volatile size_t half = SIZE_MAX / 2;
    CHECK(is_shared(block) && malloc_usable_size(block) >= LARGE);
    memset(block, 1, malloc_usable_size(block));
    free(block);
    /* Had again, and zeroed although it was written to. */
    char *zeroed = calloc(LARGE / 4, 4);
    CHECK(is_shared(zeroed));
    for (int i = 0; i < LARGE; i++) CHECK(zeroed[i] == 0);
    free(zeroed);
    errno = 0;
    CHECK(!calloc(half, 3) && errno == ENOMEM);
    errno = 0;
    CHECK(!reallocarray(NULL, half, 3) && errno == ENOMEM);
    errno = 77;
    for (size_t align = sizeof(void *); align <= HUGE; align *= 2) {
        SAME(posix_memalign((void **)&aligned, align, LARGE), 0);
        SAME((uintptr_t)aligned % align, 0);
        CHECK(align > 2 << 20 || is_shared(aligned));
        memset(aligned, 2, LARGE);
        free(aligned);
        aligned = memalign(align, LARGE);
        CHECK((uintptr_t)aligned % align == 0);
        free(aligned);
    }
    SAME(errno, 77);
    SAME(posix_memalign((void **)&aligned, 3, LARGE), EINVAL);
    aligned = aligned_alloc(64, LARGE);
    CHECK(is_shared(aligned) && (uintptr_t)aligned % 64 == 0);
    free(aligned);
    char *page = valloc(LARGE);
    CHECK(is_shared(page) && (uintptr_t)page % 4096 == 0);
    free(page);
    char *small = malloc(100);
    CHECK(!is_shared(small) && !is_shared(ballast) && !is_shared((char *)&small));
    free(small);
    free(NULL);
    char *none = malloc(0);
    free(none);
}

static void pattern(char *block, int from, int to)
{
    for (int i = from; i < to; i++) block[i] = (char)(i * 7 + i / 251);
}

static int intact(const char *block, int bytes)
{
    for (int i = 0; i < bytes; i++)
        if (block[i] != (char)(i * 7 + i / 251)) return 0;
    return 1;
}

/* Grows from nothing beyond the threshold and back, with somebody behind it at times. */
static void resizing(void)
{
    char *block = NULL, *others[20] = {0};
    int had = 0, other = 0;
    for (int bytes = 10; bytes < 3000000; bytes = bytes * 3 / 2) {
        block = realloc(block, (size_t)bytes);
        CHECK(is_shared(block) == (bytes >= 32 << 10));
        CHECK(intact(block, had));
        pattern(block, had, bytes);
        had = bytes;
        if (bytes > 200000 && other < 20) others[other++] = malloc(LARGE);
    }
    while (other) free(others[--other]);
    for (int bytes = had; bytes > 10; bytes = bytes * 2 / 3) {
        block = realloc(block, (size_t)bytes);
        CHECK(is_shared(block) == (bytes >= 32 << 10));
        CHECK(intact(block, bytes));
    }
    CHECK(realloc(block, 0) == NULL);
}

static void *churn(void *seed)
{
    unsigned state = (unsigned)(uintptr_t)seed;
    unsigned char *held[16] = {0};
    size_t bytes[16];
    for (int turn = 0; turn < 3000; turn++) {
        state = state * 1103515245u + 12345u;
        unsigned slot = state >> 16 & 15;
        if (held[slot]) {
            CHECK(held[slot][0] == (unsigned char)slot && held[slot][bytes[slot] - 1] == (unsigned char)slot);
            free(held[slot]);
        }
        bytes[slot] = 1000 + (state >> 8) % 300000;
        held[slot] = malloc(bytes[slot]);
        held[slot][0] = held[slot][bytes[slot] - 1] = (unsigned char)slot;
    }
    for (int i = 0; i < 16; i++) free(held[i]);
    return malloc(LARGE);
}

/* What one thread takes another frees. */
static void threads(void)
{
    pthread_t thread[4];
    void *left;
    for (uintptr_t i = 0; i < 4; i++) pthread_create(&thread[i], NULL, churn, (void *)(i + 1));
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], &left);
        CHECK(is_shared(left));
        free(left);
    }
}

int main(int argc, char **argv)
{
    int rank;
    char *before = malloc(HUGE), *after;
    CHECK(is_shared(before));
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    after = malloc(HUGE);
    CHECK(is_shared(after));
    for (int i = 0; i < 4; i++) {
        /* Between two blocks of the heap, and between each and ordinary memory. */
        char *from = i & 1 ? before : ballast, *to = i & 2 ? after : ballast;
        int bytes = from == ballast || to == ballast ? LARGE : HUGE;
        if (rank == 0) pattern(from, 0, bytes);
        else memset(to, 0, (size_t)bytes);
        if (rank == 0) OK(MPI_Send(from, bytes, MPI_BYTE, 1, i, MPI_COMM_WORLD));
        else OK(MPI_Recv(to, bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        if (rank == 1) CHECK(intact(to, bytes));
    }
    family();
    resizing();
    threads();
    MPI_Finalize();
    memset(after, 1, HUGE);
    free(before);
    free(after);
    char *last = malloc(LARGE);
    CHECK(last && malloc_usable_size(last) >= LARGE);
    free(last);
    return verdict();
}
