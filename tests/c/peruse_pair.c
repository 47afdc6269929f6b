/* Between two ranks every request walks its way in the specified order, whatever the size, the mode and the copy
 * engine, and its spec is what its user gave; of a matched wildcard receive,
 * the real peer (PERUSE 2.0 sections 4.3 and 5.1.2).
 * RANKS: 2
 */
#include "peruse_trace.h"

enum { SIGNAL = 1, TAG = 100, MOST_INTS = 1 << 18 };
static int rank, *buf;

/* Which ranks have their buffer from MPI_Alloc_mem, a bit each. */
#ifndef SHARED
#define SHARED 0
#endif

static void tell(void) { OK(MPI_Send(NULL, 0, MPI_INT, 1 - rank, SIGNAL, MPI_COMM_WORLD)); }
static void hear(void) { OK(MPI_Recv(NULL, 0, MPI_INT, 1 - rank, SIGNAL, MPI_COMM_WORLD, MPI_STATUS_IGNORE)); }

/* One request's events: `expected`, in which `+` stands for any number of further pieces. */
static void request_is(const char *name, int ints, MPI_Aint id, const char *expected)
{
    char got[MOST + 1];
    int length = 0, pieces = 0;
    for (const char *from = letters(0, id); *from; from++) {
        if (*from == '+') pieces++;
        else got[length++] = *from;
    }
    got[length] = 0;
    if (strcmp(got, expected) != 0) {
        fprintf(stderr, "rank %d: %s of %d: request %s, expected %s\n", rank, name, ints, letters(0, id), expected);
        failures++;
    }
    /* Pieces come between the first and the last. */
    const char *plus = strchr(letters(0, id), '+'), *begin = strchr(letters(0, id), 'B'), *end = strchr(letters(0, id), 'E');
    if (pieces > 0) CHECK(begin < plus && plus + pieces == end);
}

static void specs_are(MPI_Aint id, int ints, int wildcard, int operation)
{
    int matched = 0;
    for (int i = 0; i < traced; i++) {
        const peruse_comm_spec_t *s = &trace[i].spec;
        if (trace[i].id != id) continue;
        matched |= trace[i].event == PERUSE_COMM_REQ_REMOVE_FROM_POSTED_Q || trace[i].event == PERUSE_COMM_REQ_MATCH_UNEX;
        CHECK(s->comm == MPI_COMM_WORLD && s->buf == buf && s->datatype == MPI_INT);
        SAME(s->count, ints);
        SAME(s->operation, operation);
        SAME(s->peer, wildcard && !matched ? MPI_ANY_SOURCE : 1 - rank);
        SAME(s->tag, wildcard && !matched ? MPI_ANY_TAG : TAG);
    }
    CHECK(operation == PERUSE_SEND || matched);
}

enum mode { STANDARD, SYNCHRONOUS, READY, BUFFERED, MODES };

static void send(int ints, enum mode mode)
{
    MPI_Request r;
    switch (mode) {
    case STANDARD: OK(MPI_Isend(buf, ints, MPI_INT, 1, TAG, MPI_COMM_WORLD, &r)); break;
    case SYNCHRONOUS: OK(MPI_Issend(buf, ints, MPI_INT, 1, TAG, MPI_COMM_WORLD, &r)); break;
    case READY: OK(MPI_Irsend(buf, ints, MPI_INT, 1, TAG, MPI_COMM_WORLD, &r)); break;
    default: OK(MPI_Ibsend(buf, ints, MPI_INT, 1, TAG, MPI_COMM_WORLD, &r));
    }
    tell(); /* behind the message, in the same channel */
    OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
}

static void messages(int ints, enum mode mode, int early, int wildcard)
{
    traced = 0;
    tell();
    hear();
    if (rank == 0) {
        if (!early) hear();
        send(ints, mode);
        hear(); /* received; a buffered send's copy has gone too */
        MPI_Aint id = nth_id(PERUSE_COMM_REQ_ACTIVATE, 0);
        request_is("send", ints, id, "ABECN");
        specs_are(id, ints, 0, PERUSE_SEND);
        SAME(nth_id(PERUSE_COMM_REQ_ACTIVATE, 1), -1);
        for (int i = 0; i < traced; i++) SAME(trace[i].id, id);
        return;
    }
    MPI_Request r;
    MPI_Status status;
    if (early) hear();
    OK(MPI_Irecv(buf, ints, MPI_INT, wildcard ? MPI_ANY_SOURCE : 0, wildcard ? MPI_ANY_TAG : TAG, MPI_COMM_WORLD, &r));
    if (!early) tell(), hear();
    OK(MPI_Wait(&r, &status));
    SAME(status.MPI_TAG, TAG);
    tell();
    MPI_Aint id = nth_id(PERUSE_COMM_REQ_ACTIVATE, 0), message = nth_id(PERUSE_COMM_MSG_ARRIVED, 0);
    request_is("receive", ints, id, early ? "AMBECN" : "AIRBECN");
    specs_are(id, ints, wildcard, PERUSE_RECV);
    SAME(strcmp(letters(0, message), early ? "air" : "am"), 0);
    SAME(nth_id(PERUSE_COMM_MSG_ARRIVED, 1), -1);
    SAME(nth_spec(PERUSE_COMM_MSG_ARRIVED, 0)->count, ints * (int)sizeof(int));
    SAME(nth_spec(PERUSE_COMM_MSG_ARRIVED, 0)->peer, 0);
    if (!early) CHECK(nth_spec(PERUSE_COMM_MSG_MATCH_POSTED_REQ, 0)->buf == buf);
}

int main(int argc, char **argv)
{
    static const int sizes[] = {0, 1, 10, 11, 100, 4000, 5000, 50000, MOST_INTS};
    static char room[2 * MOST_INTS * sizeof(int)];
    void *back;
    int bytes;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (SHARED >> rank & 1)
        OK(MPI_Alloc_mem(MOST_INTS * sizeof(int), MPI_INFO_NULL, &buf));
    else
        buf = malloc(MOST_INTS * sizeof(int));
    memset(buf, rank, MOST_INTS * sizeof(int));
    MPI_Buffer_attach(room, sizeof room);
    trace_open(MPI_COMM_WORLD, TAG);
    for (int size = 0; size < (int)(sizeof sizes / sizeof *sizes); size++)
        for (enum mode mode = STANDARD; mode < MODES; mode++)
            for (int early = 0; early < (mode == READY ? 1 : 2); early++)
                for (int wildcard = 0; wildcard < 2; wildcard++) messages(sizes[size], mode, early, wildcard);
    trace_close();
    MPI_Buffer_detach(&back, &bytes);
    if (SHARED >> rank & 1)
        OK(MPI_Free_mem(buf));
    else
        free(buf);
    MPI_Finalize();
    return verdict();
}
