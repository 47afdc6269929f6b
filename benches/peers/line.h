/* line.h: a bare cache line bounced between two processes or threads: no message can be faster. */
#ifndef LINE_H
#define LINE_H

#include <stdatomic.h>

/* Two lines, each far from everything else. */
struct line {
    _Alignas(128) _Atomic unsigned words[2][32];
};

/* What who waits does between two looks: nothing, so that its processor looks several times ahead; a pause, which is
 * mostly quicker but now and then much more so; or it begins the second look when the first is over (the same as
 * nothing where that is not x86). */
enum looks { LOOKS_AHEAD, LOOKS_WITH_PAUSE, LOOKS_IN_TURN, WAYS_TO_LOOK };

/* One side of a conversation over lines that are zero; both sides call it with the same arguments, one as the first.
 * Gives the first the seconds one way, medians of chunks of `rounds` round trips, for each of the first `ways` ways to
 * look. With `each_way` a line for each direction, as a message is; else one word that both write. */
void line_one_way(struct line *line, int first, int each_way, unsigned rounds, unsigned ways, double *took);

#endif
