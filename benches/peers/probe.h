/* probe.h: how ranks ask for the speed of a line, without MPI.
 *
 * The two threads of prober.c, each bound to a processor, sleep until all ranks of a job have come to probe(); then the
 * ranks sleep, and the processors are the prober's alone. Ranks and prober meet in a page that the driver made. */
#ifndef PROBE_H
#define PROBE_H

#include "line.h"

struct probe_page {
    /* Ranks that have come; the driver sets it to 0 before a job, the last rank after. At the page's start. */
    _Alignas(128) _Atomic unsigned arrived;
    /* What sleeps here wakes when it changes: the prober at `asked`, its other thread at `begun`,
     * the ranks at `answered`. */
    _Alignas(128) _Atomic unsigned asked;
    _Alignas(128) _Atomic unsigned begun;
    _Alignas(128) _Atomic unsigned answered;
    /* Microseconds one way, of the last probe. */
    double latest;
    struct line line;
};

/* The page at `path`, shared; NULL if there is none. */
struct probe_page *probe_open(const char *path);

/* Called by all of `ranks` processes. Gives each of them the same:
 * microseconds one way of a line, each way on its own, just now. */
double probe(struct probe_page *page, unsigned ranks);

/* Sleeps until *word is no longer `seen`; gives what it is now. Wakes all that sleep there. */
unsigned probe_wait(_Atomic unsigned *word, unsigned seen);
void probe_tell(_Atomic unsigned *word);

#endif
