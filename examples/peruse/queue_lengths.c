/* queue_lengths.c: how long both queues get, peer by peer (PERUSE 2.0 §9.1.4).
 *
 *   mpiexec -n N queue_lengths [step]          default step: 10, N at least 2
 *
 * Rank r > 0 sends `step * r` messages before rank 0 posts any receive, and as many again after rank 0 has posted
 * receives for them; so both queues of peer r grow to exactly `step * r`, one entry at a time, and their average length
 * after an insertion is (step * r + 1) / 2. */
#include "check.h"
#include <peruse.h>
#include <stdlib.h>

enum { DATA = 3, SIGNAL = 4, HANDLES = 4 };

static const char *const name[HANDLES] = {
    "PERUSE_COMM_REQ_INSERT_IN_POSTED_Q",
    "PERUSE_COMM_REQ_REMOVE_FROM_POSTED_Q",
    "PERUSE_COMM_MSG_INSERT_IN_UNEX_Q",
    "PERUSE_COMM_MSG_REMOVE_FROM_UNEX_Q",
};

struct queue {
    int inserted, length, longest;
    double sum; /* of the lengths after each insertion */
};

struct peer {
    struct queue posted, unexpected;
};

static void insert(struct queue *queue)
{
    queue->inserted++;
    queue->length++;
    queue->sum += queue->length;
    if (queue->length > queue->longest) queue->longest = queue->length;
}

static int on_event(peruse_event_h handle, MPI_Aint id, peruse_comm_spec_t *spec, void *param)
{
    struct peer *peer = (struct peer *)param + spec->peer;
    int event;
    (void)id;
    PERUSE_Event_get(handle, &event);
    switch (event) {
    case PERUSE_COMM_REQ_INSERT_IN_POSTED_Q: insert(&peer->posted); return MPI_SUCCESS;
    case PERUSE_COMM_REQ_REMOVE_FROM_POSTED_Q: peer->posted.length--; return MPI_SUCCESS;
    case PERUSE_COMM_MSG_INSERT_IN_UNEX_Q: insert(&peer->unexpected); return MPI_SUCCESS;
    case PERUSE_COMM_MSG_REMOVE_FROM_UNEX_Q: peer->unexpected.length--; return MPI_SUCCESS;
    default: return MPI_ERR_INTERN;
    }
}

static void print(int rank, const char *which, const struct queue *queue)
{
    printf("queue_lengths peer=%d queue=%s inserted=%d left=%d longest=%d average=%.2f\n", rank, which, queue->inserted,
           queue->length, queue->longest, queue->inserted ? queue->sum / queue->inserted : 0.0);
}

static void signal_peer(int peer) { MPI_Send(NULL, 0, MPI_INT, peer, SIGNAL, MPI_COMM_WORLD); }

static void await_peer(int peer) { MPI_Recv(NULL, 0, MPI_INT, peer, SIGNAL, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }

static void receive(MPI_Comm comm, int size, int step)
{
    int total = 0, count = 0, value;
    for (int rank = 1; rank < size; rank++) total += step * rank;
    int *data = calloc((size_t)total, sizeof *data);
    MPI_Request *request = calloc((size_t)total, sizeof *request);

    for (int rank = 1; rank < size; rank++) await_peer(rank);
    for (int rank = size - 1; rank > 0; rank--)
        for (int i = 0; i < step * rank; i++) MPI_Recv(&value, 1, MPI_INT, rank, DATA, comm, MPI_STATUS_IGNORE);
    for (int rank = 1; rank < size; rank++)
        for (int i = 0; i < step * rank; i++, count++)
            MPI_Irecv(&data[count], 1, MPI_INT, rank, DATA, comm, &request[count]);
    for (int rank = 1; rank < size; rank++) signal_peer(rank);
    MPI_Waitall(total, request, MPI_STATUSES_IGNORE);
    free(data);
    free(request);
}

static void send(MPI_Comm comm, int rank, int step)
{
    for (int i = 0; i < step * rank; i++) MPI_Send(&i, 1, MPI_INT, 0, DATA, comm);
    signal_peer(0);
    await_peer(0);
    for (int i = 0; i < step * rank; i++) MPI_Send(&i, 1, MPI_INT, 0, DATA, comm);
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Comm comm;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    CHECK(PERUSE_Init());
    int step = argc > 1 ? atoi(argv[1]) : 10;

    peruse_event_h handle[HANDLES];
    struct peer *peers = calloc((size_t)size, sizeof *peers);
    for (int i = 0; i < HANDLES; i++) {
        int event;
        CHECK(PERUSE_Query_event(name[i], &event));
        CHECK(PERUSE_Event_comm_register(event, comm, on_event, peers, &handle[i]));
        CHECK(PERUSE_Event_activate(handle[i]));
    }
    MPI_Barrier(comm);
    if (rank == 0) receive(comm, size, step);
    if (rank > 0) send(comm, rank, step);
    for (int i = 0; i < HANDLES; i++) {
        CHECK(PERUSE_Event_deactivate(handle[i]));
        CHECK(PERUSE_Event_release(&handle[i]));
    }
    for (int i = 1; rank == 0 && i < size; i++) {
        print(i, "unexpected", &peers[i].unexpected);
        print(i, "posted", &peers[i].posted);
    }
    free(peers);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
