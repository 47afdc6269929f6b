/* Events of partitioned messages: each call and each partition has its event once, in order, with what it is about;
 * PERUSE has the request; the message by which the two sides find each other has none, and takes no sequence number.
 * RANKS: 2
 */
#include "mpi_t_event.h"
#include <peruse.h>

enum { PARTS = 4, ITEMS = 5, TAG = 7, ROUNDS = 3, MOST = 200 };
enum { START, READY, XFER_BEGIN, XFER_END, ARRIVED, TESTED, COMPLETE, TYPES };
static const char *names[] = {"PERUSAL_PART_START",   "PERUSAL_PART_READY",  "PERUSAL_PART_XFER_BEGIN",
                              "PERUSAL_PART_XFER_END", "PERUSAL_PART_ARRIVED", "PERUSAL_PART_TESTED",
                              "PERUSAL_PART_COMPLETE"};
static int numbers[] = {0, 1, 2, 3, 4, 5, 6}, rank;

static struct {
    int type, operation, peer, tag, partition, partitions, arrived;
    uint64_t id, bytes;
} events[MOST];
static int count;

static void read_of(MPI_T_event_instance instance, int index, const char *name, void *to)
{
    OK(MPI_T_event_read(instance, element_of(index, name), to));
}

static int indices[TYPES];

static void on_event(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    int type = *(int *)data, index = indices[type];
    (void)handle, (void)level;
    if (count == MOST - 1) return;
    events[count].type = type;
    events[count].partition = events[count].partitions = events[count].arrived = -1;
    read_of(instance, index, "id", &events[count].id);
    read_of(instance, index, "operation", &events[count].operation);
    read_of(instance, index, "peer", &events[count].peer);
    read_of(instance, index, "tag", &events[count].tag);
    read_of(instance, index, "bytes", &events[count].bytes);
    if (type == START || type == COMPLETE) {
        read_of(instance, index, "partitions", &events[count].partitions);
    } else {
        read_of(instance, index, "partition", &events[count].partition);
        read_of(instance, index, "arrived", &events[count].arrived);
    }
    /* Asked in vain for as long as it takes: it counts once. */
    if (type == TESTED && count && events[count - 1].type == TESTED && !events[count - 1].arrived) count--, events[count] = events[count + 1];
    count++;
}

/* How many events of a type there were of a partition (-1: of any). */
static int times(int type, int partition)
{
    int sum = 0;
    for (int i = 0; i < count; i++) sum += events[i].type == type && (partition < 0 || events[i].partition == partition);
    return sum;
}

static int place(int type, int partition)
{
    for (int i = 0; i < count; i++)
        if (events[i].type == type && (partition < 0 || events[i].partition == partition)) return i;
    return -1;
}

/* What PERUSE says of the request. */
enum { REQUEST_EVENTS = 6 };
static const int request_events[REQUEST_EVENTS] = {PERUSE_COMM_REQ_ACTIVATE, PERUSE_COMM_REQ_XFER_BEGIN,
                                                   PERUSE_COMM_REQ_XFER_CONTINUE, PERUSE_COMM_REQ_XFER_END,
                                                   PERUSE_COMM_REQ_COMPLETE, PERUSE_COMM_REQ_NOTIFY};
static const char letters[] = "ABcECN";
static char spelled[MOST];
static int spelt;
static MPI_Aint request_id;

static int on_request(peruse_event_h handle, MPI_Aint id, peruse_comm_spec_t *spec, void *param)
{
    (void)handle;
    if (spelt < MOST - 1) spelled[spelt++] = *(const char *)param;
    if (spelt > 1) SAME(id == request_id, 1);
    request_id = id;
    SAME(spec->peer, 1 - rank);
    SAME(spec->tag, TAG);
    SAME(spec->operation, rank ? PERUSE_RECV : PERUSE_SEND);
    SAME(spec->count, ITEMS);
    CHECK(spec->datatype == MPI_INT);
    return MPI_SUCCESS;
}

/* Sequence numbers of arrivals. */
static int arrivals, arrived_index;
static void on_arrival(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    int tag = -9;
    uint64_t number = 99;
    (void)handle, (void)level, (void)data;
    read_of(instance, arrived_index, "tag", &tag);
    read_of(instance, arrived_index, "sequence", &number);
    CHECK(tag >= 0);
    SAME((int)number, arrivals);
    arrivals++;
}

int main(int argc, char **argv)
{
    int data[PARTS * ITEMS], flag;
    MPI_T_event_registration handles[TYPES], arrival;
    peruse_event_h requests[REQUEST_EVENTS];
    MPI_Request request;
    MPI_Comm comm;
    initialise_tools();
    OK(MPI_Init(&argc, &argv));
    OK(PERUSE_Init());
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    arrived_index = type_of("PERUSE_COMM_MSG_ARRIVED");
    arrival = listen_to(arrived_index, &comm, 0, on_arrival, NULL);
    for (int i = 0; i < TYPES; i++) {
        indices[i] = type_of(names[i]);
        handles[i] = listen_to(indices[i], &comm, 0, on_event, &numbers[i]);
    }
    for (int i = 0; i < REQUEST_EVENTS; i++) {
        OK(PERUSE_Event_comm_register(request_events[i], comm, on_request, (void *)&letters[i], &requests[i]));
        OK(PERUSE_Event_activate(requests[i]));
    }
    OK(rank ? MPI_Precv_init(data, PARTS, ITEMS, MPI_INT, 0, TAG, comm, MPI_INFO_NULL, &request)
            : MPI_Psend_init(data, PARTS, ITEMS, MPI_INT, 1, TAG, comm, MPI_INFO_NULL, &request));
    for (int round = 0; round < ROUNDS; round++) {
        count = spelt = 0;
        /* Everybody has seen the message by which they meet. */
        OK(MPI_Barrier(comm));
        if (rank) OK(MPI_Start(&request));
        OK(MPI_Barrier(comm));
        if (!rank) {
            OK(MPI_Start(&request));
            for (int i = PARTS - 1; i >= 0; i--) OK(MPI_Pready(i, request));
        } else {
            for (flag = 0; !flag;) OK(MPI_Parrived(request, 2, &flag));
        }
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        spelled[spelt] = 0;
        for (int i = 0; i < count; i++) {
            SAME(events[i].id == events[0].id, 1);
            SAME(events[i].operation, rank);
            SAME(events[i].peer, 1 - rank);
            SAME(events[i].tag, TAG);
            int whole = events[i].type == START || events[i].type == COMPLETE;
            SAME((int)events[i].bytes, (whole ? PARTS : 1) * ITEMS * (int)sizeof(int));
            if (whole) SAME(events[i].partitions, PARTS);
        }
        CHECK(request_id == (MPI_Aint)events[0].id);
        SAME(place(START, -1), 0);
        SAME(place(COMPLETE, -1), count - 1);
        SAME(times(START, -1), 1);
        SAME(times(COMPLETE, -1), 1);
        for (int i = 0; i < PARTS; i++) {
            SAME(times(READY, i), rank ? 0 : 1);
            SAME(times(XFER_BEGIN, i), rank ? 0 : 1);
            SAME(times(XFER_END, i), rank ? 0 : 1);
            SAME(times(ARRIVED, i), rank ? 1 : 0);
            if (!rank) CHECK(place(READY, i) < place(XFER_BEGIN, i) && place(XFER_BEGIN, i) < place(XFER_END, i));
        }
        if (!rank) {
            /* In the order in which they became ready. */
            for (int i = 1; i < PARTS; i++) CHECK(place(READY, i) < place(READY, i - 1));
            SAME(times(TESTED, -1), 0);
        } else {
            CHECK(times(TESTED, 2) >= 1 && times(TESTED, -1) == times(TESTED, 2));
            int last = -1;
            for (int i = 0; i < count; i++)
                if (events[i].type == TESTED) {
                    CHECK(last != 1);
                    last = events[i].arrived;
                    SAME(last, place(ARRIVED, 2) < i);
                }
            SAME(last, 1);
        }
        if (strcmp(spelled, "ABcccECN") != 0) {
            fprintf(stderr, "rank %d: the events of the request were %s\n", rank, spelled);
            failures++;
        }
    }
    /* Of an inactive request all partitions have arrived. */
    count = 0;
    if (rank) {
        OK(MPI_Parrived(request, 1, &flag));
        SAME(flag, 1);
        SAME(count, 1);
        SAME(events[0].type, TESTED);
        SAME(events[0].arrived, 1);
    }
    for (int i = 0; i < REQUEST_EVENTS; i++) OK(PERUSE_Event_release(&requests[i]));

    /* Messages of the user's, and others of the library's between them. */
    SAME(arrivals, 0);
    for (int i = 0; i < 5; i++) {
        int word = i;
        MPI_Request other;
        OK(rank ? MPI_Precv_init(data, 1, 1, MPI_INT, 0, i, comm, MPI_INFO_NULL, &other)
                : MPI_Psend_init(data, 1, 1, MPI_INT, 1, i, comm, MPI_INFO_NULL, &other));
        OK(MPI_Start(&other));
        if (!rank) OK(MPI_Pready(0, other));
        OK(MPI_Wait(&other, MPI_STATUS_IGNORE));
        OK(MPI_Request_free(&other));
        OK(MPI_Sendrecv_replace(&word, 1, MPI_INT, 1 - rank, i % 2, 1 - rank, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE));
        OK(MPI_Bcast(&word, 1, MPI_INT, 0, comm));
    }
    SAME(arrivals, 5);
    OK(MPI_Request_free(&request));

    /* The end tells the bytes of the message, the begin those that there is room for. */
    count = 0;
    int sent = ITEMS * (int)sizeof(int), room = PARTS * sent;
    OK(rank ? MPI_Precv_init(data, PARTS, ITEMS, MPI_INT, 0, TAG, comm, MPI_INFO_NULL, &request)
            : MPI_Psend_init(data, 1, ITEMS, MPI_INT, 1, TAG, comm, MPI_INFO_NULL, &request));
    OK(MPI_Start(&request));
    if (!rank) OK(MPI_Pready(0, request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    SAME((int)events[place(START, -1)].bytes, rank ? room : sent);
    SAME((int)events[place(COMPLETE, -1)].bytes, sent);
    OK(MPI_Request_free(&request));

    /* Nobody: started and over. */
    count = 0;
    OK(MPI_Psend_init(data, PARTS, ITEMS, MPI_INT, MPI_PROC_NULL, TAG, comm, MPI_INFO_NULL, &request));
    OK(MPI_Start(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    SAME(count, 2);
    SAME(events[0].type, START);
    SAME(events[1].type, COMPLETE);
    OK(MPI_Request_free(&request));
    for (int i = 0; i < TYPES; i++) OK(MPI_T_event_handle_free(handles[i], NULL, NULL));
    OK(MPI_T_event_handle_free(arrival, NULL, NULL));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return verdict();
}
