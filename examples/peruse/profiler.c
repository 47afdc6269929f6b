/* profiler.c: a message profiler for any MPI program, without recompiling it (PERUSE 2.0 §9.2).
 *
 * It wraps MPI_Init, MPI_Init_thread, the functions that make and free communicators, and MPI_Finalize through PMPI,
 * listens to the twelve events of requests and messages on every communicator, and prints one table when the program
 * finishes. Use it as a shared library put in front of the program, or link the static one before the MPI library:
 *
 *   mpicc -shared -fPIC profiler.c -o libperuse_profile.so
 *   mpiexec -n 4 -x LD_PRELOAD=$PWD/libperuse_profile.so ./program
 *
 *   mpicc -c profiler.c && ar rcs libperuse_profile.a profiler.o
 *   mpicc program.c libperuse_profile.a
 *
 * PERUSE_PROFILE=lines in the environment prints one line per rank and metric, for scripts, instead of the table. */
#include "tracks.h"
#include <mpi.h>

enum metric {
    ACTIVATE_TO_MATCH,      /* a receive, from its start until a message is found for it */
    ACTIVATE_TO_XFER_BEGIN, /* a request, from its start until its first byte moves */
    XFER_BEGIN_TO_END,      /* moving the bytes */
    COMPLETE_TO_NOTIFY,     /* done, but the program has not asked yet */
    ACTIVATE_TO_NOTIFY,     /* the whole life of a request */
    IN_UNEX_Q,              /* a message in the unexpected queue */
    POSTED_Q_LEN,           /* entries */
    UNEX_Q_LEN,             /* entries */
    METRICS
};

static const char *const metric_name[METRICS] = {
    "activate_to_match",  "activate_to_xfer_begin", "xfer_begin_to_end",   "complete_to_notify",
    "activate_to_notify", "in_unexpected_queue",    "posted_queue_length", "unexpected_queue_length",
};

static const char *const event_name[] = {
    "PERUSE_COMM_REQ_ACTIVATE",           "PERUSE_COMM_REQ_MATCH_UNEX",
    "PERUSE_COMM_REQ_INSERT_IN_POSTED_Q", "PERUSE_COMM_REQ_REMOVE_FROM_POSTED_Q",
    "PERUSE_COMM_REQ_XFER_BEGIN",         "PERUSE_COMM_REQ_XFER_END",
    "PERUSE_COMM_REQ_COMPLETE",           "PERUSE_COMM_REQ_NOTIFY",
    "PERUSE_COMM_MSG_ARRIVED",            "PERUSE_COMM_MSG_INSERT_IN_UNEX_Q",
    "PERUSE_COMM_MSG_REMOVE_FROM_UNEX_Q", "PERUSE_COMM_MSG_MATCH_POSTED_REQ",
};
enum { LISTENED = sizeof event_name / sizeof *event_name };

/* All doubles, so that one gather brings them together. Times are in seconds, lengths in entries. */
struct measure {
    double count, sum, longest, now;
};

struct listener {
    MPI_Comm comm;
    peruse_event_h handle[LISTENED];
    int handles;
    struct listener *next;
};

static struct measure measure[METRICS];
static double records_lost;
static struct tracks tracks;
static struct listener *listeners;
static int listening;

static void add(enum metric metric, double value)
{
    struct measure *m = &measure[metric];
    m->count++;
    m->sum += value;
    if (value > m->longest) m->longest = value;
}

static void insert(enum metric queue)
{
    measure[queue].now++;
    add(queue, measure[queue].now);
}

/* What entered the queue before the window opened was never counted.
 * So a length is that of what entered since, and never negative. */
static void take_out(enum metric queue, struct track *track, int inserted)
{
    if (track->at[inserted] > 0) measure[queue].now--;
}

/* The time since `event`, if that was seen: the window may have opened in the middle of a request's life. */
static void add_since(enum metric metric, const struct track *track, int event, double now)
{
    if (track->at[event] > 0) add(metric, now - track->at[event]);
}

static void record(int event, struct track *track, double now)
{
    switch (event) {
    case PERUSE_COMM_REQ_MATCH_UNEX:
        add_since(ACTIVATE_TO_MATCH, track, PERUSE_COMM_REQ_ACTIVATE, now);
        break;
    case PERUSE_COMM_REQ_INSERT_IN_POSTED_Q:
        insert(POSTED_Q_LEN);
        break;
    case PERUSE_COMM_REQ_REMOVE_FROM_POSTED_Q:
        take_out(POSTED_Q_LEN, track, PERUSE_COMM_REQ_INSERT_IN_POSTED_Q);
        add_since(ACTIVATE_TO_MATCH, track, PERUSE_COMM_REQ_ACTIVATE, now);
        break;
    case PERUSE_COMM_REQ_XFER_BEGIN:
        add_since(ACTIVATE_TO_XFER_BEGIN, track, PERUSE_COMM_REQ_ACTIVATE, now);
        break;
    case PERUSE_COMM_REQ_XFER_END:
        add_since(XFER_BEGIN_TO_END, track, PERUSE_COMM_REQ_XFER_BEGIN, now);
        break;
    case PERUSE_COMM_REQ_NOTIFY:
        add_since(COMPLETE_TO_NOTIFY, track, PERUSE_COMM_REQ_COMPLETE, now);
        add_since(ACTIVATE_TO_NOTIFY, track, PERUSE_COMM_REQ_ACTIVATE, now);
        break;
    case PERUSE_COMM_MSG_INSERT_IN_UNEX_Q:
        insert(UNEX_Q_LEN);
        break;
    case PERUSE_COMM_MSG_REMOVE_FROM_UNEX_Q:
        take_out(UNEX_Q_LEN, track, PERUSE_COMM_MSG_INSERT_IN_UNEX_Q);
        add_since(IN_UNEX_Q, track, PERUSE_COMM_MSG_INSERT_IN_UNEX_Q, now);
        break;
    }
}

static int on_event(peruse_event_h handle, MPI_Aint id, peruse_comm_spec_t *spec, void *param)
{
    int event;
    double now = PMPI_Wtime();
    (void)param;
    if (spec->peer == MPI_PROC_NULL) return MPI_SUCCESS; /* there is no peer, and no byte moves */
    PERUSE_Event_get(handle, &event);
    /* Several threads of the program may be in MPI. A lock that cannot be had loses the record, not the job. */
    if (PERUSE_Lock() != PERUSE_SUCCESS) {
        records_lost++;
        return MPI_SUCCESS;
    }
    struct track *track = track_of(&tracks, kind_of(event), id);
    /* A request that the program freed had no end: its id begins anew. */
    if (event == PERUSE_COMM_REQ_ACTIVATE) memset(track->at, 0, sizeof track->at);
    track->at[event] = now;
    record(event, track, now);
    if (ends_its_id(event)) track_drop(&tracks, track);
    PERUSE_Unlock();
    return MPI_SUCCESS;
}

/* ---- one listener per communicator ---- */

static void listen_to(MPI_Comm comm)
{
    if (!listening || comm == MPI_COMM_NULL) return;
    struct listener *listener = calloc(1, sizeof *listener);
    if (listener == NULL) return;
    listener->comm = comm;
    for (int i = 0; i < LISTENED; i++) {
        int event;
        peruse_event_h *handle = &listener->handle[listener->handles];
        if (PERUSE_Query_event(event_name[i], &event) != PERUSE_SUCCESS) continue;
        if (PERUSE_Event_comm_register(event, comm, on_event, NULL, handle) != PERUSE_SUCCESS) continue;
        PERUSE_Event_activate(*handle);
        listener->handles++;
    }
    listener->next = listeners;
    listeners = listener;
}

static void stop(struct listener *listener)
{
    for (int i = 0; i < listener->handles; i++) {
        PERUSE_Event_deactivate(listener->handle[i]);
        PERUSE_Event_release(&listener->handle[i]);
    }
    free(listener);
}

static void stop_listening_to(MPI_Comm comm)
{
    for (struct listener **link = &listeners; *link != NULL; link = &(*link)->next) {
        if ((*link)->comm != comm) continue;
        struct listener *gone = *link;
        *link = gone->next;
        stop(gone);
        return;
    }
}

/* ---- the report ---- */

struct report {
    struct measure measure[METRICS];
    double records_lost;
};

static double average(const struct measure *m) { return m->count > 0 ? m->sum / m->count : 0; }

static int is_time(int metric) { return metric < POSTED_Q_LEN; }

static void print_lines(const struct report *report, int size)
{
    for (int rank = 0; rank < size; rank++) {
        for (int i = 0; i < METRICS; i++) {
            const struct measure *m = &report[rank].measure[i];
            double scale = is_time(i) ? 1e6 : 1;
            printf("profile rank=%d metric=%s count=%.0f average=%.3f longest=%.3f now=%.0f\n", rank, metric_name[i],
                   m->count, average(m) * scale, m->longest * scale, m->now);
        }
        printf("profile rank=%d metric=records_lost count=%.0f\n", rank, report[rank].records_lost);
    }
}

static void print_cell(const struct measure *m, int metric)
{
    if (m->count == 0) {
        printf(" |%19s", "-  ");
        return;
    }
    printf(" |%9.1f %9.*f", average(m) * (is_time(metric) ? 1e6 : 1), is_time(metric) ? 1 : 0,
           m->longest * (is_time(metric) ? 1e6 : 1));
}

static void print_table(const struct report *report, int size)
{
    static const char *const head[METRICS] = {
        "activate->match",  "activate->xfer", "xfer begin->end", "complete->notify",
        "activate->notify", "in unexp queue", "posted length",   "unexp length",
    };
    printf("\nMessages as PERUSE saw them: average and longest, in microseconds; lengths in entries\n");
    for (int from = 0; from < METRICS; from += 4) {
        printf("\n%6s", "rank");
        for (int i = from; i < from + 4; i++) printf(" |%19s", head[i]);
        printf("\n");
        for (int rank = 0; rank < size; rank++) {
            printf("%6d", rank);
            for (int i = from; i < from + 4; i++) print_cell(&report[rank].measure[i], i);
            printf("\n");
        }
    }
}

/* All ranks wait for the slow one, and it waits for none: its receives find their messages in the unexpected queue. */
static void print_verdict(const struct report *report, int size)
{
    int slow = 0, waiting = 0;
    double others = 0;
    for (int rank = 0; rank < size; rank++) {
        const struct measure *m = &report[rank].measure[ACTIVATE_TO_MATCH];
        waiting += m->count > 0;
        others += m->sum;
        if (m->sum < report[slow].measure[ACTIVATE_TO_MATCH].sum) slow = rank;
    }
    double own = report[slow].measure[ACTIVATE_TO_MATCH].sum;
    if (size < 2 || waiting < size) return;
    printf("\nReceives of rank %d wait least: %.1f ms in all, those of the others %.1f ms each. ", slow, own * 1e3,
           (others - own) / (size - 1) * 1e3);
    if (own * 4 * (size - 1) < others - own) printf("It is the rank that the others wait for.");
    printf("\n");
}

static void print_report(void)
{
    int rank, size;
    struct report mine, *all = NULL;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    memcpy(mine.measure, measure, sizeof measure);
    mine.records_lost = records_lost;
    int doubles = (int)(sizeof mine / sizeof(double));
    if (rank == 0) all = malloc(sizeof *all * (size_t)size);
    PMPI_Gather(&mine, doubles, MPI_DOUBLE, all, doubles, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (all == NULL) return;
    const char *form = getenv("PERUSE_PROFILE");
    if (form != NULL && strcmp(form, "lines") == 0) {
        print_lines(all, size);
    } else {
        print_table(all, size);
        print_verdict(all, size);
    }
    fflush(stdout);
    free(all);
}

/* ---- what the program calls ---- */

static void start(void)
{
    if (PERUSE_Init() != PERUSE_SUCCESS) {
        fprintf(stderr, "profiler: this MPI library has no PERUSE\n");
        return;
    }
    listening = 1;
    listen_to(MPI_COMM_WORLD);
    listen_to(MPI_COMM_SELF);
}

int MPI_Init(int *argc, char ***argv)
{
    int result = PMPI_Init(argc, argv);
    if (result == MPI_SUCCESS) start();
    return result;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int result = PMPI_Init_thread(argc, argv, required, provided);
    if (result == MPI_SUCCESS) start();
    return result;
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *newcomm)
{
    int result = PMPI_Comm_dup(comm, newcomm);
    if (result == MPI_SUCCESS) listen_to(*newcomm);
    return result;
}

int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm)
{
    int result = PMPI_Comm_create(comm, group, newcomm);
    if (result == MPI_SUCCESS) listen_to(*newcomm);
    return result;
}

int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm)
{
    int result = PMPI_Comm_create_group(comm, group, tag, newcomm);
    if (result == MPI_SUCCESS) listen_to(*newcomm);
    return result;
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *newcomm)
{
    int result = PMPI_Comm_split(comm, color, key, newcomm);
    if (result == MPI_SUCCESS) listen_to(*newcomm);
    return result;
}

int MPI_Comm_free(MPI_Comm *comm)
{
    MPI_Comm gone = *comm;
    stop_listening_to(gone); /* before the communicator goes: its handles are errors afterwards */
    return PMPI_Comm_free(comm);
}

int MPI_Finalize(void)
{
    while (listeners != NULL) {
        struct listener *gone = listeners;
        listeners = gone->next;
        stop(gone);
    }
    if (listening) print_report();
    listening = 0;
    tracks_free(&tracks);
    return PMPI_Finalize();
}
