/* line.c: see line.h. */
#include "line.h"
#include <stdlib.h>
#include <time.h>

enum { CHUNKS = 5 };

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static inline void between_looks(enum looks looks)
{
#if defined __x86_64__
    if (looks == LOOKS_WITH_PAUSE) __builtin_ia32_pause();
    if (looks == LOOKS_IN_TURN) __builtin_ia32_lfence();
#else
    (void)looks;
#endif
}

static void bounce(_Atomic unsigned *mine, _Atomic unsigned *theirs, unsigned base, unsigned rounds, int first, enum looks looks)
{
    for (unsigned i = 0; i < rounds; i++) {
        unsigned ping = base + 2 * i + 1;
        if (first) atomic_store_explicit(mine, ping, memory_order_release);
        unsigned until = first ? ping + 1 : ping;
        while (atomic_load_explicit(theirs, memory_order_acquire) != until) between_looks(looks);
        if (!first) atomic_store_explicit(mine, ping + 1, memory_order_release);
    }
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void line_one_way(struct line *line, int first, int each_way, unsigned rounds, unsigned ways, double *took)
{
    _Atomic unsigned *mine = line->words[each_way && !first], *theirs = line->words[each_way && first];
    for (unsigned way = 0; way < ways; way++) {
        double times[CHUNKS];
        for (unsigned i = 0; i <= CHUNKS; i++) {
            double start = now();
            bounce(mine, theirs, (way * (CHUNKS + 1) + i) * 2 * rounds, rounds, first, (enum looks)way);
            /* The first chunk has the other side's start in it. */
            if (i > 0) times[i - 1] = (now() - start) / rounds / 2;
        }
        qsort(times, CHUNKS, sizeof *times, by_size);
        took[way] = times[CHUNKS / 2];
    }
}
