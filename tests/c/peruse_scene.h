/* What the callbacks of a PERUSE program have been called for, a letter an event,
 * and whether that is what its scene had to raise. */
#ifndef PERUSE_SCENE_H
#define PERUSE_SCENE_H

#include "check.h"
#include <peruse.h>

enum { MOST = 128 };
static char happened[MOST];
static int count;
static MPI_Aint ids[MOST];

/* Notes an event, if there is room; returns whether there is. */
static inline int note(char letter, MPI_Aint id)
{
    if (count >= MOST - 1) return 0;
    happened[count] = letter;
    ids[count++] = id;
    return 1;
}

/* What has happened since the last scene, with one id. */
static inline void scene(const char *what, const char *wanted)
{
    happened[count] = 0;
    if (strcmp(happened, wanted) != 0) {
        fprintf(stderr, "%s: %s happened, not %s\n", what, happened, wanted);
        failures++;
    }
    for (int i = 1; i < count; i++) SAME(ids[i] == ids[0], 1);
    count = 0;
}

/* A callback of another kind of object. */
static inline int on_comm(peruse_event_h handle, MPI_Aint id, peruse_comm_spec_t *spec, void *param)
{
    (void)handle, (void)id, (void)spec, (void)param;
    return MPI_SUCCESS;
}

#endif
