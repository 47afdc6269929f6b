/* line.h: a bare cache line bounced between two processes or threads: no message can be faster. */
#ifndef LINE_H
#define LINE_H

#include <stdatomic.h>

/* Two lines, each far from everything else. */
struct line {
    _Alignas(128) _Atomic unsigned words[2][32];
};

/* One side of a conversation over lines that are zero; both sides call it with the same arguments, one as the first. Gives the
 * first the seconds one way, medians of chunks of `rounds` round trips: without a pause between looks, and with one, which is
 * mostly quicker but now and then much more so. With `each_way` a line for each direction, as a message is; else one word that
 * both write. */
void line_one_way(struct line *line, int first, int each_way, unsigned rounds, double took[2]);

#endif
