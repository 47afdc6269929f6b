/* tracks.h: what a tool remembers about each request, message or search that is under way.
 *
 * PERUSE gives every event a unique id, which holds from a beginning event to an ending one (PERUSE 2.0 §5.1.2) and may
 * then be given to something else. Ids of requests, messages and searches are kept apart here by their kind. The table
 * is an open-addressing hash that grows; it has no lock of its own. Nothing in it calls MPI. */
#ifndef TRACKS_H
#define TRACKS_H

#include <peruse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVENT_KINDS = 32 }; /* room for the sixteen events and an implementation's own */

enum kind { NO_KIND, REQUEST, MESSAGE, POSTED_SEARCH, UNEXPECTED_SEARCH };

struct track {
    enum kind kind; /* NO_KIND: the slot is free */
    MPI_Aint id;
    int last;               /* the latest event seen */
    double at[EVENT_KINDS]; /* when each event was seen, in seconds */
    void *buf;              /* the request's buffer, as the first event gave it */
};

struct tracks {
    struct track *slot;
    size_t room; /* a power of two, or 0 */
    size_t used;
};

static inline enum kind kind_of(int event)
{
    if (event >= PERUSE_COMM_REQ_ACTIVATE && event <= PERUSE_COMM_REQ_NOTIFY) return REQUEST;
    if (event >= PERUSE_COMM_MSG_ARRIVED && event <= PERUSE_COMM_MSG_MATCH_POSTED_REQ) return MESSAGE;
    if (event == PERUSE_COMM_SEARCH_POSTED_Q_BEGIN || event == PERUSE_COMM_SEARCH_POSTED_Q_END) return POSTED_SEARCH;
    if (event == PERUSE_COMM_SEARCH_UNEX_QUEUE_BEGIN || event == PERUSE_COMM_SEARCH_UNEX_Q_END)
        return UNEXPECTED_SEARCH;
    return REQUEST; /* perusal's own event, XFER_CONTINUE, belongs to a request */
}

static inline int ends_its_id(int event)
{
    return event == PERUSE_COMM_REQ_NOTIFY || event == PERUSE_COMM_MSG_REMOVE_FROM_UNEX_Q ||
           event == PERUSE_COMM_MSG_MATCH_POSTED_REQ || event == PERUSE_COMM_SEARCH_POSTED_Q_END ||
           event == PERUSE_COMM_SEARCH_UNEX_Q_END;
}

static inline size_t track_home(const struct tracks *t, enum kind kind, MPI_Aint id)
{
    unsigned long long mixed = ((unsigned long long)id * 8 + (unsigned)kind) * 0x9E3779B97F4A7C15ull;
    return (size_t)(mixed >> 20) & (t->room - 1);
}

static inline struct track *track_find(const struct tracks *t, enum kind kind, MPI_Aint id)
{
    if (t->room == 0) return NULL;
    for (size_t i = track_home(t, kind, id); t->slot[i].kind != NO_KIND; i = (i + 1) & (t->room - 1))
        if (t->slot[i].kind == kind && t->slot[i].id == id) return &t->slot[i];
    return NULL;
}

static inline void tracks_grow(struct tracks *t)
{
    struct tracks bigger = {NULL, t->room ? t->room * 2 : 256, t->used};
    bigger.slot = calloc(bigger.room, sizeof *bigger.slot);
    if (bigger.slot == NULL) {
        fprintf(stderr, "out of memory for the table of unique ids\n");
        abort();
    }
    for (size_t i = 0; i < t->room; i++) {
        if (t->slot[i].kind == NO_KIND) continue;
        size_t j = track_home(&bigger, t->slot[i].kind, t->slot[i].id);
        while (bigger.slot[j].kind != NO_KIND) j = (j + 1) & (bigger.room - 1);
        bigger.slot[j] = t->slot[i];
    }
    free(t->slot);
    *t = bigger;
}

/* The track of an id, made anew if there is none. Valid until the next call that makes or drops one. */
static inline struct track *track_of(struct tracks *t, enum kind kind, MPI_Aint id)
{
    struct track *known = track_find(t, kind, id);
    if (known != NULL) return known;
    if (2 * t->used >= t->room) tracks_grow(t);
    size_t i = track_home(t, kind, id);
    while (t->slot[i].kind != NO_KIND) i = (i + 1) & (t->room - 1);
    memset(&t->slot[i], 0, sizeof t->slot[i]);
    t->slot[i].kind = kind;
    t->slot[i].id = id;
    t->used++;
    return &t->slot[i];
}

static inline void track_drop(struct tracks *t, struct track *gone)
{
    size_t hole = (size_t)(gone - t->slot);
    t->slot[hole].kind = NO_KIND;
    t->used--;
    /* Entries that were pushed past the hole move back, or a search would stop at it. */
    for (size_t i = (hole + 1) & (t->room - 1); t->slot[i].kind != NO_KIND; i = (i + 1) & (t->room - 1)) {
        size_t home = track_home(t, t->slot[i].kind, t->slot[i].id);
        if (((i - home) & (t->room - 1)) < ((i - hole) & (t->room - 1))) continue;
        t->slot[hole] = t->slot[i];
        t->slot[i].kind = NO_KIND;
        hole = i;
    }
}

static inline void tracks_free(struct tracks *t)
{
    free(t->slot);
    memset(t, 0, sizeof *t);
}

#endif
