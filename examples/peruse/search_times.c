/* search_times.c: what searching the two queues costs, as they grow (PERUSE 2.0 §9.1.3).
 *
 *   mpiexec -n 2 search_times [depth]          default: 1000
 *
 * For the posted queue, rank 0 posts `depth` receives with tags of their own and rank 1 sends to the last of them
 * first. For the unexpected queue, rank 1 sends `depth` messages and rank 0 then receives the last of them first.
 * Every message costs one search of the posted queue, every receive one of the unexpected queue. */
#include "check.h"
#include "tracks.h"

enum { SIGNAL = 1, QUEUE_EVENTS = 4 };

static const int queue_event[QUEUE_EVENTS] = {
    PERUSE_COMM_SEARCH_POSTED_Q_BEGIN,
    PERUSE_COMM_SEARCH_POSTED_Q_END,
    PERUSE_COMM_SEARCH_UNEX_QUEUE_BEGIN,
    PERUSE_COMM_SEARCH_UNEX_Q_END,
};

struct searches {
    int begun, ended;
    double total, longest; /* seconds */
};

struct tool {
    struct searches posted, unexpected;
    struct tracks tracks;
    peruse_event_h handle[QUEUE_EVENTS];
};

static int on_event(peruse_event_h handle, MPI_Aint id, peruse_comm_spec_t *spec, void *param)
{
    struct tool *tool = param;
    int event;
    (void)spec;
    PERUSE_Event_get(handle, &event);
    enum kind kind = kind_of(event);
    struct searches *searches = kind == POSTED_SEARCH ? &tool->posted : &tool->unexpected;
    struct track *track = track_of(&tool->tracks, kind, id);
    if (!ends_its_id(event)) {
        searches->begun++;
        track->at[0] = MPI_Wtime();
        return MPI_SUCCESS;
    }
    double took = MPI_Wtime() - track->at[0];
    searches->ended++;
    searches->total += took;
    if (took > searches->longest) searches->longest = took;
    track_drop(&tool->tracks, track);
    return MPI_SUCCESS;
}

static void print(const char *phase, const char *queue, int depth, const struct searches *s, size_t open)
{
    printf("search_times phase=%s queue=%s depth=%d begun=%d ended=%d open=%zu average_ns=%.0f longest_ns=%.0f\n", phase,
           queue, depth, s->begun, s->ended, open, s->ended ? s->total / s->ended * 1e9 : 0.0, s->longest * 1e9);
}

static void open_window(struct tool *tool, MPI_Comm comm)
{
    memset(tool, 0, sizeof *tool);
    for (int i = 0; i < QUEUE_EVENTS; i++) {
        CHECK(PERUSE_Event_comm_register(queue_event[i], comm, on_event, tool, &tool->handle[i]));
        CHECK(PERUSE_Event_activate(tool->handle[i]));
    }
}

static void close_window(struct tool *tool, const char *phase, int depth)
{
    for (int i = 0; i < QUEUE_EVENTS; i++) {
        CHECK(PERUSE_Event_deactivate(tool->handle[i]));
        CHECK(PERUSE_Event_release(&tool->handle[i]));
    }
    print(phase, "posted", depth, &tool->posted, tool->tracks.used);
    print(phase, "unexpected", depth, &tool->unexpected, tool->tracks.used);
    tracks_free(&tool->tracks);
}

static void signal_peer(int peer) { MPI_Send(NULL, 0, MPI_INT, peer, SIGNAL, MPI_COMM_WORLD); }

static void await_peer(int peer) { MPI_Recv(NULL, 0, MPI_INT, peer, SIGNAL, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }

static void receive(MPI_Comm comm, int depth, int *data, MPI_Request *request)
{
    struct tool tool;
    open_window(&tool, comm);
    for (int tag = 0; tag < depth; tag++) MPI_Irecv(&data[tag], 1, MPI_INT, 1, tag, comm, &request[tag]);
    signal_peer(1);
    MPI_Waitall(depth, request, MPI_STATUSES_IGNORE);
    close_window(&tool, "deep_posted", depth);

    open_window(&tool, comm);
    signal_peer(1);
    await_peer(1);
    for (int tag = depth - 1; tag >= 0; tag--) MPI_Recv(&data[tag], 1, MPI_INT, 1, tag, comm, MPI_STATUS_IGNORE);
    close_window(&tool, "deep_unexpected", depth);
}

static void send(MPI_Comm comm, int depth)
{
    await_peer(0);
    for (int tag = depth - 1; tag >= 0; tag--) MPI_Send(&tag, 1, MPI_INT, 0, tag, comm);
    await_peer(0);
    for (int tag = 0; tag < depth; tag++) MPI_Send(&tag, 1, MPI_INT, 0, tag, comm);
    signal_peer(0);
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Comm comm;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm); /* the signals stay on MPI_COMM_WORLD, which has no handles */
    CHECK(PERUSE_Init());
    int depth = argc > 1 ? atoi(argv[1]) : 1000;
    if (size < 2 || depth < 1) {
        if (rank == 0) fprintf(stderr, "search_times: needs two ranks and a depth of at least 1\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int *data = calloc((size_t)depth, sizeof *data);
    MPI_Request *request = calloc((size_t)depth, sizeof *request);
    if (rank == 0) receive(comm, depth, data, request);
    if (rank == 1) send(comm, depth);
    free(data);
    free(request);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
