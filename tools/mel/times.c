/* times.c: open addressing with linear probing; a removal shifts the following entries back,
 * so that there are no tombstones. */
#include "mel.h"

#include <stdlib.h>

static size_t place(const mel_times *times, int64_t key) {
    uint64_t hash = (uint64_t)key * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(hash >> 20) & (times->room - 1);
}

static bool grow(mel_times *times) {
    size_t room = times->room ? 2 * times->room : 256;
    mel_times larger = {malloc(room * sizeof *larger.keys), malloc(room * sizeof *larger.times), calloc(room, 1), room, 0};
    if (!larger.keys || !larger.times || !larger.used) {
        free(larger.keys);
        free(larger.times);
        free(larger.used);
        return false;
    }
    for (size_t i = 0; i < times->room; i++) {
        if (times->used[i]) {
            mel_times_put(&larger, times->keys[i], times->times[i]);
        }
    }
    free(times->keys);
    free(times->times);
    free(times->used);
    *times = larger;
    return true;
}

bool mel_times_put(mel_times *times, int64_t key, double time) {
    if (2 * (times->held + 1) > times->room && !grow(times)) {
        return false;
    }
    size_t at = place(times, key);
    while (times->used[at] && times->keys[at] != key) {
        at = (at + 1) & (times->room - 1);
    }
    times->held += !times->used[at];
    times->used[at] = 1;
    times->keys[at] = key;
    times->times[at] = time;
    return true;
}

bool mel_times_take(mel_times *times, int64_t key, double *time) {
    if (times->held == 0) {
        return false;
    }
    size_t mask = times->room - 1, at = place(times, key);
    while (times->used[at] && times->keys[at] != key) {
        at = (at + 1) & mask;
    }
    if (!times->used[at]) {
        return false;
    }
    *time = times->times[at];
    times->held--;
    /* An entry behind the gap whose search would pass the gap moves into it. */
    for (size_t gap = at, next = (at + 1) & mask;; next = (next + 1) & mask) {
        if (!times->used[next]) {
            times->used[gap] = 0;
            return true;
        }
        size_t home = place(times, times->keys[next]);
        if (((next - home) & mask) >= ((next - gap) & mask)) {
            times->keys[gap] = times->keys[next];
            times->times[gap] = times->times[next];
            gap = next;
        }
    }
}
