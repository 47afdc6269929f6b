/* event_counts.c: every event, counted exactly and checked one by one.
 *
 *   mpiexec -n 2 event_counts [messages [early]]           defaults: 100 messages, 37 early
 *
 * Rank 1 sends `messages` messages to rank 0, of which `early` are known to lie in rank 0's unexpected queue before it
 * posts any receive, and the rest are sent when their receives are known to lie in the posted queue. This is repeated
 * for every size of message (empty, within one cache line, through the ring's bulk area, large), for receives with and
 * without wildcards, and for several kinds of sends and completions. Each case prints one line per rank: how often each
 * event came, and how many violations of the rules were seen. The rules, checked at every event:
 *   - the spec names the communicator, buffer, count, datatype, tag and operation of the request, and its peer:
 *     MPI_ANY_SOURCE if that was asked for, until the match, and the real one from then on;
 *   - the events of one id come in an order that section 4.3 allows, and an id is not begun again before it ended;
 *   - a message's id is none of a request in progress.
 * Messages on MPI_COMM_WORLD carry the handshakes; a communicator with handles and no traffic must stay silent. */
#include "check.h"
#include "tracks.h"

enum { SIGNAL = 1, FIRST_TAG = 1000, EVENTS = 16 };

enum style { NONBLOCKING, BLOCKING, PERSISTENT, MODES, STYLES };
static const char *const style_name[STYLES] = {"nonblocking", "blocking", "persistent", "modes"};

static const struct {
    const char *name;
    int ints;
} shape[] = {{"empty", 0}, {"tiny", 2}, {"inline", 10}, {"bulk", 1024}, {"large", 1 << 16}};
enum { SHAPES = sizeof shape / sizeof *shape };

struct run {
    MPI_Comm comm;
    int rank, messages, early;
    int wildcard;
    enum style style;
    int ints;
    size_t stride; /* ints from one message's buffer to the next */
    int *arena;
    MPI_Request *request;
    int counting;
    int count[EVENT_KINDS];
    int again[EVENT_KINDS]; /* what a second handle for each event counted */
    int violations;
    struct tracks tracks;
};

static struct run run;

static const char *name_of(int event)
{
    static const char prefix[] = "PERUSE_COMM_";
    char *name = NULL;
    if (PERUSE_Query_event_name(event, &name) != PERUSE_SUCCESS) return "none";
    return strncmp(name, prefix, sizeof prefix - 1) == 0 ? name + sizeof prefix - 1 : name;
}

static void violation(int event, MPI_Aint id, const char *what, long expected, long got)
{
    if (run.violations++ < 10)
        printf("violation rank=%d event=%s id=%ld %s expected=%ld got=%ld\n", run.rank, name_of(event), (long)id, what,
               expected, got);
}

static void expect(int event, MPI_Aint id, const char *what, long expected, long got)
{
    if (expected != got) violation(event, id, what, expected, got);
}

/* Which messages are early: spread over the whole range, and exactly run.early of them. */
static int is_early(int i)
{
    return (int)((long)(i + 1) * run.early / run.messages - (long)i * run.early / run.messages);
}

/* ---- what each event must look like ---- */

static int may_follow(int event, int last)
{
    switch (event) {
    case PERUSE_COMM_REQ_ACTIVATE:
    case PERUSE_COMM_MSG_ARRIVED:
    case PERUSE_COMM_SEARCH_POSTED_Q_BEGIN:
    case PERUSE_COMM_SEARCH_UNEX_QUEUE_BEGIN: return last == 0;
    case PERUSE_COMM_REQ_MATCH_UNEX:
    case PERUSE_COMM_REQ_INSERT_IN_POSTED_Q: return last == PERUSE_COMM_REQ_ACTIVATE;
    case PERUSE_COMM_REQ_REMOVE_FROM_POSTED_Q: return last == PERUSE_COMM_REQ_INSERT_IN_POSTED_Q;
    case PERUSE_COMM_REQ_XFER_BEGIN:
        if (run.rank == 1) return last == PERUSE_COMM_REQ_ACTIVATE;
        return last == PERUSE_COMM_REQ_MATCH_UNEX || last == PERUSE_COMM_REQ_REMOVE_FROM_POSTED_Q;
    case PERUSE_COMM_REQ_XFER_END: return last == PERUSE_COMM_REQ_XFER_BEGIN;
    case PERUSE_COMM_REQ_COMPLETE: return last == PERUSE_COMM_REQ_XFER_END;
    case PERUSE_COMM_REQ_NOTIFY: return last == PERUSE_COMM_REQ_COMPLETE;
    case PERUSE_COMM_MSG_INSERT_IN_UNEX_Q:
    case PERUSE_COMM_MSG_MATCH_POSTED_REQ: return last == PERUSE_COMM_MSG_ARRIVED;
    case PERUSE_COMM_MSG_REMOVE_FROM_UNEX_Q: return last == PERUSE_COMM_MSG_INSERT_IN_UNEX_Q;
    case PERUSE_COMM_SEARCH_POSTED_Q_END: return last == PERUSE_COMM_SEARCH_POSTED_Q_BEGIN;
    case PERUSE_COMM_SEARCH_UNEX_Q_END: return last == PERUSE_COMM_SEARCH_UNEX_QUEUE_BEGIN;
    default: return 0;
    }
}

static int is_before_match(int event)
{
    return event == PERUSE_COMM_REQ_ACTIVATE || event == PERUSE_COMM_REQ_INSERT_IN_POSTED_Q ||
           event == PERUSE_COMM_SEARCH_UNEX_QUEUE_BEGIN;
}

static void check_request_spec(int event, MPI_Aint id, const peruse_comm_spec_t *spec)
{
    long offset = (int *)spec->buf - run.arena;
    long slot = offset / (long)run.stride;
    expect(event, id, "buffer_of_a_message", 0, offset % (long)run.stride);
    expect(event, id, "buffer_in_range", 1, slot >= 0 && slot < run.messages);
    expect(event, id, "count", run.ints, spec->count);
    expect(event, id, "datatype", (long)MPI_INT, (long)spec->datatype);
    expect(event, id, "operation", run.rank == 1 ? PERUSE_SEND : PERUSE_RECV, spec->operation);
    int wild = run.wildcard && run.rank == 0;
    if (wild && is_before_match(event)) {
        expect(event, id, "peer", MPI_ANY_SOURCE, spec->peer);
        expect(event, id, "tag", MPI_ANY_TAG, spec->tag);
        return;
    }
    expect(event, id, "peer", 1 - run.rank, spec->peer);
    if (!wild) expect(event, id, "tag", FIRST_TAG + slot, spec->tag);
    if (wild && spec->tag != MPI_ANY_TAG)
        expect(event, id, "tag_in_range", 1, spec->tag >= FIRST_TAG && spec->tag < FIRST_TAG + run.messages);
}

static void check_message_spec(int event, MPI_Aint id, const peruse_comm_spec_t *spec)
{
    expect(event, id, "peer", 1, spec->peer);
    expect(event, id, "tag_in_range", 1, spec->tag >= FIRST_TAG && spec->tag < FIRST_TAG + run.messages);
    expect(event, id, "operation", PERUSE_RECV, spec->operation);
}

static int on_event(peruse_event_h handle, MPI_Aint id, peruse_comm_spec_t *spec, void *param)
{
    int event;
    (void)param;
    PERUSE_Event_get(handle, &event);
    run.count[event]++;
    expect(event, id, "communicator", (long)run.comm, (long)spec->comm);
    enum kind kind = kind_of(event);
    struct track *track = track_of(&run.tracks, kind, id);
    if (!may_follow(event, track->last)) violation(event, id, "after", event, track->last);
    if (kind == REQUEST) {
        check_request_spec(event, id, spec);
        if (track->last == 0) track->buf = spec->buf;
        expect(event, id, "same_buffer", (long)track->buf, (long)spec->buf);
    }
    if (kind == MESSAGE) {
        check_message_spec(event, id, spec);
        expect(event, id, "distinct_from_requests", 0, track_find(&run.tracks, REQUEST, id) != NULL);
    }
    track->last = event;
    if (ends_its_id(event)) track_drop(&run.tracks, track);
    return MPI_SUCCESS;
}

static int on_event_again(peruse_event_h handle, MPI_Aint id, peruse_comm_spec_t *spec, void *param)
{
    int event, *again = param;
    (void)id;
    (void)spec;
    PERUSE_Event_get(handle, &event);
    again[event]++;
    return MPI_SUCCESS;
}

/* ---- the messages ---- */

static void signal_peer(void) { MPI_Send(NULL, 0, MPI_INT, 1 - run.rank, SIGNAL, MPI_COMM_WORLD); }

static void await_peer(void)
{
    MPI_Recv(NULL, 0, MPI_INT, 1 - run.rank, SIGNAL, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static int *buffer(int i) { return run.arena + (size_t)i * run.stride; }

static void complete(int count, MPI_Request *request)
{
    int index, done, *indices;
    switch (run.style) {
    case NONBLOCKING:
    case BLOCKING: MPI_Waitall(count, request, MPI_STATUSES_IGNORE); return;
    case MODES:
        do MPI_Waitany(count, request, &index, MPI_STATUS_IGNORE);
        while (index != MPI_UNDEFINED);
        return;
    default:
        indices = malloc(sizeof *indices * (size_t)count + 1);
        for (int left = count; left > 0; left -= done > 0 ? done : 0)
            MPI_Testsome(count, request, &done, indices, MPI_STATUSES_IGNORE);
        for (int i = 0; i < count; i++) MPI_Request_free(&request[i]);
        free(indices);
    }
}

/* Large messages wait for their receiver: the early ones are never sent by a call that blocks. */
static int begin_send(int i, int early, MPI_Request *request)
{
    int *buf = buffer(i), tag = FIRST_TAG + i;
    if (run.style == PERSISTENT) {
        MPI_Send_init(buf, run.ints, MPI_INT, 0, tag, run.comm, request);
        MPI_Start(request);
    } else if (run.style == BLOCKING && run.ints <= 1024) {
        MPI_Send(buf, run.ints, MPI_INT, 0, tag, run.comm);
        return 0;
    } else if (run.style == MODES) {
        if (early) MPI_Issend(buf, run.ints, MPI_INT, 0, tag, run.comm, request);
        else MPI_Irsend(buf, run.ints, MPI_INT, 0, tag, run.comm, request);
    } else {
        MPI_Isend(buf, run.ints, MPI_INT, 0, tag, run.comm, request);
    }
    return 1;
}

static void send_all(void)
{
    int open = 0;
    for (int i = 0; i < run.messages; i++)
        for (int j = 0; j < run.ints; j++) buffer(i)[j] = i ^ j;
    for (int i = 0; i < run.messages; i++)
        if (is_early(i)) open += begin_send(i, 1, &run.request[open]);
    signal_peer();
    await_peer();
    for (int i = 0; i < run.messages; i++)
        if (!is_early(i)) open += begin_send(i, 0, &run.request[open]);
    complete(open, run.request);
}

/* The i-th receive finds its message in the unexpected queue. With wildcards the k-th receive gets the k-th message
 * that was sent, and the early ones were sent first. */
static int is_early_receive(int i) { return run.wildcard ? i < run.early : is_early(i); }

static int begin_receive(int i, MPI_Request *request)
{
    int source = run.wildcard ? MPI_ANY_SOURCE : 1, tag = run.wildcard ? MPI_ANY_TAG : FIRST_TAG + i;
    if (run.style == PERSISTENT) {
        MPI_Recv_init(buffer(i), run.ints, MPI_INT, source, tag, run.comm, request);
        MPI_Start(request);
    } else if (run.style == BLOCKING && is_early_receive(i)) {
        MPI_Status status;
        MPI_Recv(buffer(i), run.ints, MPI_INT, source, tag, run.comm, &status);
        expect(0, 0, "status_source", 1, status.MPI_SOURCE);
        return 0;
    } else {
        MPI_Irecv(buffer(i), run.ints, MPI_INT, source, tag, run.comm, request);
    }
    return 1;
}

static void check_data(void)
{
    int k = 0;
    for (int early = 1; early >= 0; early--) {
        for (int i = 0; i < run.messages; i++) {
            if (is_early(i) != early) continue;
            int *got = buffer(run.wildcard ? k++ : i), wrong = 0;
            for (int j = 0; j < run.ints; j++) wrong += got[j] != (i ^ j);
            expect(0, 0, "data", 0, wrong);
        }
    }
}

static void receive_all(void)
{
    int open = 0;
    memset(run.arena, 0xff, sizeof(int) * run.stride * (size_t)run.messages);
    await_peer(); /* the early messages lie before this signal in the same ring */
    for (int i = 0; i < run.messages; i++) open += begin_receive(i, &run.request[open]);
    signal_peer();
    complete(open, run.request);
    check_data();
}

/* ---- one case ---- */

static void print_case(int which)
{
    int doubled = 1;
    printf("event_counts case=%s-%s-%s role=%s messages=%d early=%d", shape[which].name,
           run.wildcard ? "wildcard" : "exact", style_name[run.style], run.rank == 0 ? "receiver" : "sender",
           run.messages, run.early);
    for (int event = 1; event <= EVENTS; event++) {
        printf(" %s=%d", name_of(event), run.count[event]);
        doubled &= run.count[event] == run.again[event];
    }
    printf(" open=%zu doubled=%s violations=%d\n", run.tracks.used, doubled ? "yes" : "no", run.violations);
    fflush(stdout);
}

static void run_case(int which, int wildcard, enum style style)
{
    peruse_event_h handle[EVENTS], again[EVENTS];
    run.wildcard = wildcard;
    run.style = style;
    run.ints = shape[which].ints;
    run.stride = (size_t)(run.ints > 16 ? run.ints : 16);
    run.violations = 0;
    memset(run.count, 0, sizeof run.count);
    memset(run.again, 0, sizeof run.again);
    for (int i = 0; i < EVENTS; i++) {
        CHECK(PERUSE_Event_comm_register(i + 1, run.comm, on_event, NULL, &handle[i]));
        CHECK(PERUSE_Event_comm_register(i + 1, run.comm, on_event_again, run.again, &again[i]));
        CHECK(PERUSE_Event_activate(handle[i]));
        CHECK(PERUSE_Event_activate(again[i]));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (run.rank == 0) receive_all();
    if (run.rank == 1) send_all();
    for (int i = 0; i < EVENTS; i++) {
        CHECK(PERUSE_Event_deactivate(handle[i]));
        CHECK(PERUSE_Event_release(&handle[i]));
        CHECK(PERUSE_Event_release(&again[i])); /* one that is active may be released, too */
    }
    if (run.rank < 2) print_case(which);
    tracks_free(&run.tracks);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- a few things besides the counts ---- */

static int on_plain_event(peruse_event_h handle, MPI_Aint id, peruse_comm_spec_t *spec, void *param)
{
    int *count = param, event;
    (void)id;
    PERUSE_Event_get(handle, &event);
    count[event]++;
    count[0] += spec->comm == run.comm; /* events that named the first communicator */
    return MPI_SUCCESS;
}

static void print_counts(const char *what, const int *count)
{
    printf("event_counts case=%s role=%s", what, run.rank == 0 ? "receiver" : "sender");
    for (int event = 1; event <= EVENTS; event++) printf(" %s=%d", name_of(event), count[event]);
    printf(" named_original=%d\n", count[0]);
    fflush(stdout);
}

/* A cancelled receive leaves the posted queue, completes and is notified; no byte moves. */
static void cancelled_receive(void)
{
    int count[EVENT_KINDS] = {0}, value, flag;
    peruse_event_h handle[EVENTS];
    MPI_Request request;
    MPI_Status status;
    if (run.rank != 0) return;
    for (int i = 0; i < EVENTS; i++) {
        CHECK(PERUSE_Event_comm_register(i + 1, run.comm, on_plain_event, count, &handle[i]));
        CHECK(PERUSE_Event_activate(handle[i]));
    }
    MPI_Irecv(&value, 1, MPI_INT, 1, FIRST_TAG, run.comm, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    if (!flag) printf("violation rank=0 a receive that nothing matches was not cancelled\n");
    for (int i = 0; i < EVENTS; i++) CHECK(PERUSE_Event_release(&handle[i]));
    print_counts("cancelled", count);
}

/* A handle that propagates receives the duplicate's events, with the duplicate in the spec; other handles do not. */
static void propagation(void)
{
    int received[EVENT_KINDS] = {0}, missed[EVENT_KINDS] = {0}, ten = 10, value = 0;
    peruse_event_h with, without;
    MPI_Comm copy;
    CHECK(PERUSE_Event_comm_register(PERUSE_COMM_REQ_ACTIVATE, run.comm, on_plain_event, received, &with));
    CHECK(PERUSE_Event_comm_register(PERUSE_COMM_REQ_ACTIVATE, run.comm, on_plain_event, missed, &without));
    CHECK(PERUSE_Event_propagate(with, PERUSE_TRUE));
    CHECK(PERUSE_Event_activate(with));
    CHECK(PERUSE_Event_activate(without));
    MPI_Comm_dup(run.comm, &copy);
    for (int i = 0; i < ten && run.rank == 1; i++) MPI_Send(&i, 1, MPI_INT, 0, 1, copy);
    for (int i = 0; i < ten && run.rank == 0; i++) MPI_Recv(&value, 1, MPI_INT, 1, 1, copy, MPI_STATUS_IGNORE);
    CHECK(PERUSE_Event_release(&with));
    CHECK(PERUSE_Event_release(&without));
    if (run.rank < 2) {
        print_counts("propagated", received);
        print_counts("not_propagated", missed);
    }
    MPI_Comm_free(&copy);
}

int main(int argc, char **argv)
{
    int size, silent[EVENT_KINDS] = {0};
    MPI_Comm bystander;
    peruse_event_h handle[EVENTS];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &run.comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &bystander);
    CHECK(PERUSE_Init());
    run.messages = argc > 1 ? atoi(argv[1]) : 100;
    run.early = argc > 2 ? atoi(argv[2]) : 37;
    if (size < 2 || run.messages < 1 || run.early < 0 || run.early > run.messages) {
        if (run.rank == 0) fprintf(stderr, "event_counts: needs two ranks, and no more early messages than messages\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    run.arena = malloc(sizeof(int) * (size_t)shape[SHAPES - 1].ints * (size_t)run.messages);
    run.request = malloc(sizeof *run.request * (size_t)run.messages);
    for (int i = 0; i < EVENTS; i++) {
        CHECK(PERUSE_Event_comm_register(i + 1, bystander, on_plain_event, silent, &handle[i]));
        CHECK(PERUSE_Event_activate(handle[i]));
    }
    for (int which = 0; which < SHAPES; which++)
        for (int wildcard = 0; wildcard < 2; wildcard++)
            for (int style = 0; style < STYLES; style++) run_case(which, wildcard, (enum style)style);
    cancelled_receive();
    propagation();
    if (run.rank < 2) print_counts("bystander", silent);
    for (int i = 0; i < EVENTS; i++) CHECK(PERUSE_Event_release(&handle[i]));
    free(run.arena);
    free(run.request);
    MPI_Comm_free(&bystander);
    MPI_Comm_free(&run.comm);
    MPI_Finalize();
    return 0;
}
