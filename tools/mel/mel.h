/* mel.h: the event logger after Hermanns et al., "The MPI_T Events Interface" (2020), section 5.2.
 *
 * A tool like any other: it uses MPI, PMPI and MPI_T as the standard gives them, and nothing of perusal's own.
 *
 *   wrap.c     wrappers of MPI functions: start, end, and all that make or free a communicator, window or file
 *   start.c    from the environment to registered handles, and back
 *   types.c    what MPI_T says of each event type
 *   log.c      one line for each event, without knowing what it means
 *   queues.c   statistics of the two queues and of the searches in them
 *   totals.c   the same over all ranks
 *   times.c    when each entry of a queue was inserted
 *   output.c   collects and writes lines
 *   list.c     prints all event types for a reader
 */
#ifndef MEL_H
#define MEL_H

#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEL_INTERNAL __attribute__((visibility("hidden")))

enum { MEL_ELEMENTS = 32, MEL_NAME = 256 };

/* One event type, as MPI_T_event_get_info describes it. */
typedef struct {
    int index;
    char name[MEL_NAME];
    char *description;
    int verbosity, bind;
    int elements; /* at most MEL_ELEMENTS are kept */
    MPI_Datatype datatypes[MEL_ELEMENTS];
    char *names[MEL_ELEMENTS];
} mel_type;

/* types.c. All types, read once; NULL and 0 when MPI_T has none. */
MEL_INTERNAL const mel_type *mel_types(int *count);
MEL_INTERNAL const mel_type *mel_type_named(const char *name);
/* The element of that name, or -1. */
MEL_INTERNAL int mel_element(const mel_type *type, const char *name);
/* Bytes of one element, or 0 for a datatype that no event may have. */
MEL_INTERNAL size_t mel_element_size(MPI_Datatype datatype);
MEL_INTERNAL const char *mel_datatype_name(MPI_Datatype datatype);
/* The value of an element as text; returns what snprintf returns. */
MEL_INTERNAL int mel_element_text(char *text, size_t room, MPI_Datatype datatype, const void *value);
/* An integer element, widened; 0 if it cannot be read. */
MEL_INTERNAL int64_t mel_element_integer(MPI_T_event_instance event, const mel_type *type, int element);
/* When an event happened, in seconds since its source's zero. */
MEL_INTERNAL double mel_event_time(MPI_T_event_instance event);
/* Seconds of source 0 now: what mel_event_time is later compared with. */
MEL_INTERNAL double mel_now(void);

/* start.c */
MEL_INTERNAL void mel_begin(void);
/* MPI can be used: the rank is known, and the predefined communicators can be listened to. */
MEL_INTERNAL void mel_ready(void);
/* MPI is about to end: everything has been delivered. `job`: the collective parts may be used. */
MEL_INTERNAL void mel_end(bool job);
MEL_INTERNAL void mel_comm_made(MPI_Comm comm);
MEL_INTERNAL void mel_comm_gone(MPI_Comm comm);
MEL_INTERNAL void mel_win_made(MPI_Win win);
MEL_INTERNAL void mel_win_gone(MPI_Win win);
MEL_INTERNAL void mel_file_opened(MPI_File file);
MEL_INTERNAL void mel_file_gone(MPI_File file);
MEL_INTERNAL int mel_rank(void);
MEL_INTERNAL int mel_size(void);
MEL_INTERNAL double mel_zero(void);

/* log.c */
MEL_INTERNAL void mel_log_event(MPI_T_event_instance event, MPI_T_event_registration handle, MPI_T_cb_safety safety,
                                void *type);
MEL_INTERNAL void mel_empty_event(MPI_T_event_instance event, MPI_T_event_registration handle, MPI_T_cb_safety safety,
                                  void *type);
MEL_INTERNAL void mel_log_dropped(MPI_Count count, MPI_T_event_registration handle, int source, MPI_T_cb_safety safety,
                                  void *type);

/* queues.c. The callbacks that a statistic needs; `each` is called for every one of them. */
typedef void mel_want(const mel_type *type, MPI_T_event_cb_function *callback, void *user);
MEL_INTERNAL bool mel_queues_wanted(void);
MEL_INTERNAL void mel_queues_each(mel_want *each);
MEL_INTERNAL void mel_queues_dropped(MPI_Count count, MPI_T_event_registration handle, int source,
                                     MPI_T_cb_safety safety, void *user);
MEL_INTERNAL void mel_queues_report(void);

/* One statistic of one rank, in the order in which it is printed and sent; seconds. */
typedef struct {
    double number, length, total, populated, shortest, longest, dropped;
} mel_sums;
enum { MEL_STATISTICS = 4 };
typedef struct {
    const char *title;  /* "Posted queue statistics" */
    bool is_queue;      /* else a search */
} mel_title;
MEL_INTERNAL extern const mel_title mel_titles[MEL_STATISTICS];
MEL_INTERNAL void mel_queues_sums(mel_sums sums[MEL_STATISTICS]);

/* totals.c: collective over MPI_COMM_WORLD. */
MEL_INTERNAL void mel_totals_report(void);

/* times.c: a map from a request's or message's id to the time it went into a queue. The caller has the lock. */
typedef struct {
    int64_t *keys;
    double *times;
    unsigned char *used;
    size_t room, held;
} mel_times;
/* false: no memory. */
MEL_INTERNAL bool mel_times_put(mel_times *times, int64_t key, double time);
/* false: there is none. */
MEL_INTERNAL bool mel_times_take(mel_times *times, int64_t key, double *time);

/* output.c */
__attribute__((format(printf, 1, 2))) MEL_INTERNAL void mel_say(const char *format, ...);
MEL_INTERNAL void mel_write(const char *text, size_t bytes);
MEL_INTERNAL void mel_output_ready(void);
MEL_INTERNAL void mel_flush(void);

/* list.c */
MEL_INTERNAL void mel_list(void);

#endif
