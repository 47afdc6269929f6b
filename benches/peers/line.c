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

static inline void pause_if(int pause)
{
#if defined __x86_64__
    if (pause) __builtin_ia32_pause();
#else
    (void)pause;
#endif
}

static void bounce(_Atomic unsigned *mine, _Atomic unsigned *theirs, unsigned base, unsigned rounds, int first, int pause)
{
    for (unsigned i = 0; i < rounds; i++) {
        unsigned ping = base + 2 * i + 1;
        if (first) atomic_store_explicit(mine, ping, memory_order_release);
        unsigned until = first ? ping + 1 : ping;
        while (atomic_load_explicit(theirs, memory_order_acquire) != until) pause_if(pause);
        if (!first) atomic_store_explicit(mine, ping + 1, memory_order_release);
    }
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void line_one_way(struct line *line, int first, int each_way, unsigned rounds, double took[2])
{
    _Atomic unsigned *mine = line->words[each_way && !first], *theirs = line->words[each_way && first];
    for (unsigned pause = 0; pause < 2; pause++) {
        double times[CHUNKS];
        for (unsigned i = 0; i <= CHUNKS; i++) {
            double start = now();
            bounce(mine, theirs, (pause * (CHUNKS + 1) + i) * 2 * rounds, rounds, first, (int)pause);
            /* The first chunk has the other side's start in it. */
            if (i > 0) times[i - 1] = (now() - start) / rounds / 2;
        }
        qsort(times, CHUNKS, sizeof *times, by_size);
        took[pause] = times[CHUNKS / 2];
    }
}
