/* unexpected_time.c: how long messages wait in the unexpected queue (PERUSE 2.0 §9.1.2).
 *
 *   mpiexec -n 2 unexpected_time [messages [early [delay_ms]]]      defaults: 100 messages, 40 early, 20 ms
 *
 * Rank 1 sends `early` messages and then says that it has; rank 0 lets them lie for the delay, and only then posts its
 * receives. The others are sent when rank 0 has said that its receives are posted. So the number of messages that pass
 * through the unexpected queue is known, and each of them was there for at least the delay. */
#include "check.h"
#include "tracks.h"
#include <time.h>

enum { INTS = 160, DATA = 7, SIGNAL = 8 };

struct wait {
    int inserted, removed;
    double total, longest, shortest; /* seconds */
    struct tracks tracks;
};

static int on_event(peruse_event_h handle, MPI_Aint id, peruse_comm_spec_t *spec, void *param)
{
    struct wait *wait = param;
    int event;
    PERUSE_Event_get(handle, &event);
    if (spec->tag != DATA) return MPI_SUCCESS; /* the signals between the two ranks are not what is measured */
    struct track *track = track_of(&wait->tracks, MESSAGE, id);
    if (event == PERUSE_COMM_MSG_INSERT_IN_UNEX_Q) {
        track->at[event] = MPI_Wtime();
        wait->inserted++;
        return MPI_SUCCESS;
    }
    double waited = MPI_Wtime() - track->at[PERUSE_COMM_MSG_INSERT_IN_UNEX_Q];
    wait->total += waited;
    if (waited > wait->longest) wait->longest = waited;
    if (wait->removed == 0 || waited < wait->shortest) wait->shortest = waited;
    wait->removed++;
    track_drop(&wait->tracks, track);
    return MPI_SUCCESS;
}

static void pause_for(int milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

static void receive(int messages, int delay_ms)
{
    struct wait wait = {0};
    peruse_event_h inserted, removed;
    MPI_Comm world = MPI_COMM_WORLD;
    CHECK(PERUSE_Event_comm_register(PERUSE_COMM_MSG_INSERT_IN_UNEX_Q, world, on_event, &wait, &inserted));
    CHECK(PERUSE_Event_comm_register(PERUSE_COMM_MSG_REMOVE_FROM_UNEX_Q, world, on_event, &wait, &removed));
    CHECK(PERUSE_Event_activate(inserted));
    CHECK(PERUSE_Event_activate(removed));

    int (*data)[INTS] = malloc(sizeof(int[INTS]) * (size_t)messages);
    MPI_Request *request = malloc(sizeof *request * (size_t)messages);
    MPI_Recv(NULL, 0, MPI_INT, 1, SIGNAL, world, MPI_STATUS_IGNORE);
    pause_for(delay_ms);
    for (int i = 0; i < messages; i++) MPI_Irecv(data[i], INTS, MPI_INT, 1, DATA, world, &request[i]);
    MPI_Send(NULL, 0, MPI_INT, 1, SIGNAL, world);
    MPI_Waitall(messages, request, MPI_STATUSES_IGNORE);

    CHECK(PERUSE_Event_deactivate(inserted));
    CHECK(PERUSE_Event_deactivate(removed));
    int wrong = 0;
    for (int i = 0; i < messages; i++) wrong += data[i][0] != i || data[i][INTS - 1] != ~i;
    printf("unexpected_time messages=%d inserted=%d removed=%d left=%zu wrong_data=%d average_us=%.1f shortest_us=%.1f "
           "longest_us=%.1f\n",
           messages, wait.inserted, wait.removed, wait.tracks.used, wrong,
           wait.removed ? wait.total / wait.removed * 1e6 : 0.0, wait.shortest * 1e6, wait.longest * 1e6);
    CHECK(PERUSE_Event_release(&inserted));
    CHECK(PERUSE_Event_release(&removed));
    tracks_free(&wait.tracks);
    free(data);
    free(request);
}

static void send(int messages, int early)
{
    int data[INTS] = {0};
    for (int i = 0; i < messages; i++) {
        if (i == early) {
            MPI_Send(NULL, 0, MPI_INT, 0, SIGNAL, MPI_COMM_WORLD);
            MPI_Recv(NULL, 0, MPI_INT, 0, SIGNAL, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        data[0] = i;
        data[INTS - 1] = ~i;
        MPI_Send(data, INTS, MPI_INT, 0, DATA, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(PERUSE_Init());
    int messages = argc > 1 ? atoi(argv[1]) : 100;
    int early = argc > 2 ? atoi(argv[2]) : 40;
    int delay_ms = argc > 3 ? atoi(argv[3]) : 20;
    if (size < 2 || early < 0 || early >= messages) {
        if (rank == 0) fprintf(stderr, "unexpected_time: needs two ranks, and fewer early messages than messages\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (rank == 0) receive(messages, delay_ms);
    if (rank == 1) send(messages, early);
    MPI_Finalize();
    return 0;
}
