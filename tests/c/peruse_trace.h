/* A trace of PERUSE events as text, and the comparison with what is expected. */
#ifndef PERUSE_TRACE_H
#define PERUSE_TRACE_H

#include "check.h"
#include <peruse.h>

enum { KINDS = PERUSE_FIRST_CUSTOM_EVENT + 1, MOST = 4096 };

/* One letter an event: of requests capital, of messages small, of searches brackets. */
static const char letter[KINDS] = {
    [PERUSE_COMM_REQ_ACTIVATE] = 'A', [PERUSE_COMM_REQ_MATCH_UNEX] = 'M', [PERUSE_COMM_REQ_INSERT_IN_POSTED_Q] = 'I',
    [PERUSE_COMM_REQ_REMOVE_FROM_POSTED_Q] = 'R', [PERUSE_COMM_REQ_XFER_BEGIN] = 'B', [PERUSE_COMM_REQ_XFER_END] = 'E',
    [PERUSE_COMM_REQ_COMPLETE] = 'C', [PERUSE_COMM_REQ_NOTIFY] = 'N', [PERUSE_COMM_MSG_ARRIVED] = 'a',
    [PERUSE_COMM_MSG_INSERT_IN_UNEX_Q] = 'i', [PERUSE_COMM_MSG_REMOVE_FROM_UNEX_Q] = 'r',
    [PERUSE_COMM_MSG_MATCH_POSTED_REQ] = 'm', [PERUSE_COMM_SEARCH_POSTED_Q_BEGIN] = '[',
    [PERUSE_COMM_SEARCH_POSTED_Q_END] = ']', [PERUSE_COMM_SEARCH_UNEX_Q_BEGIN] = '(',
    [PERUSE_COMM_SEARCH_UNEX_Q_END] = ')', [PERUSE_COMM_REQ_XFER_CONTINUE] = '+'};

struct entry {
    int event;
    MPI_Aint id;
    peruse_comm_spec_t spec;
};

static struct entry trace[MOST];
static int traced = 0, trace_from_tag = 0;
static peruse_event_h trace_handle[KINDS];

static int on_trace(peruse_event_h handle, MPI_Aint id, peruse_comm_spec_t *spec, void *param)
{
    (void)param;
    if ((spec->tag != MPI_ANY_TAG && spec->tag < trace_from_tag) || traced == MOST) return MPI_SUCCESS;
    PERUSE_Event_get(handle, &trace[traced].event);
    trace[traced].id = id;
    trace[traced].spec = *spec;
    traced++;
    return MPI_SUCCESS;
}

/* Traces all events of `comm` whose tag is at least `from_tag`. */
static void trace_open(MPI_Comm comm, int from_tag)
{
    trace_from_tag = from_tag;
    OK(PERUSE_Init());
    for (int event = 1; event < KINDS; event++) {
        OK(PERUSE_Event_comm_register(event, comm, on_trace, NULL, &trace_handle[event]));
        OK(PERUSE_Event_activate(trace_handle[event]));
    }
}

static void trace_close(void)
{
    for (int event = 1; event < KINDS; event++) OK(PERUSE_Event_release(&trace_handle[event]));
}

/* The letters of all events so far, or of one id. */
static inline const char *letters(int all, MPI_Aint id)
{
    static char text[MOST + 1];
    int length = 0;
    for (int i = 0; i < traced; i++)
        if (all || trace[i].id == id) text[length++] = letter[trace[i].event];
    text[length] = 0;
    return text;
}

/* The id of the n-th trace entry of this kind, from 0; -1 if there is none. */
static inline MPI_Aint nth_id(int event, int n)
{
    for (int i = 0; i < traced; i++)
        if (trace[i].event == event && n-- == 0) return trace[i].id;
    return -1;
}

static inline const peruse_comm_spec_t *nth_spec(int event, int n)
{
    static const peruse_comm_spec_t none;
    for (int i = 0; i < traced; i++)
        if (trace[i].event == event && n-- == 0) return &trace[i].spec;
    return &none;
}

/* Ends a scene: its events must be these, in this order. A `+` of the expectation stands for any number of them. */
static inline void scene(const char *name, const char *expected)
{
    const char *got = letters(1, 0), *want = expected;
    while (*got || *want) {
        if (*want == '+') {
            while (*got == '+') got++;
            want++;
        } else if (*got++ != *want++) {
            fprintf(stderr, "%s: events %s, expected %s\n", name, letters(1, 0), expected);
            failures++;
            break;
        }
    }
}

static inline void scene_over(void) { traced = 0; }

#endif
