/* Random messages among all ranks at once: every size, mode, layout and way to receive; each byte is checked.
 * All ranks draw the same schedule from the seed, so that each knows what must come, and in which order.
 * RANKS: 1 2 5
 */
#include "check.h"

#ifndef THREADS
#define THREADS 1
#endif
#ifndef ROUNDS
#define ROUNDS 40
#endif

enum { MESSAGES = 60, COMMS = 5, TAGS = 3, GUARD = 16, LARGEST = 150000 };
/* What each communicator is for: exact receives on three of different shape, wildcards, matched probes. */
enum use { SHARED, COPY, REVERSED, WILD, PROBED };
enum layout { PLAIN, STRIDED, LAYOUTS };
enum mode { STANDARD, SYNCHRONOUS, BUFFERED, PERSISTENT, MODES };

struct message {
    int source, dest; /* ranks in the world */
    int comm, tag, bytes, room;
    enum layout from, to;
    enum mode mode;
    unsigned seed;
};

struct worker {
    int thread, rank, size;
    unsigned long long random;
    MPI_Comm comm[COMMS];
    struct message plan[MESSAGES];
    unsigned char *buffer[MESSAGES];
    MPI_Request request[MESSAGES];
    int of[MESSAGES]; /* the message of a request */
    int open;
};

static unsigned draw(unsigned long long *random, unsigned below)
{
    unsigned long long z = *random += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return (unsigned)((z ^ (z >> 31)) >> 16) % below;
}

static unsigned char byte_of(unsigned seed, int i) { return (unsigned char)(seed + (unsigned)i * 7 + ((unsigned)i >> 8)); }

static int draw_bytes(unsigned long long *random)
{
    static const int edges[] = {0, 1, 8, 39, 40, 41, 64, 4096, 16384, 16385, 32768, 32769, 65536, 65537, LARGEST};
    switch (draw(random, 8)) {
    case 0: return edges[draw(random, sizeof edges / sizeof *edges)];
    case 1: return (int)draw(random, LARGEST);
    case 2: return (int)draw(random, 20000);
    case 3: return (int)draw(random, 1000);
    default: return (int)draw(random, 64);
    }
}

static void draw_plan(struct worker *w)
{
    for (int i = 0; i < MESSAGES; i++) {
        struct message *m = &w->plan[i];
        m->source = (int)draw(&w->random, (unsigned)w->size);
        m->dest = (int)draw(&w->random, (unsigned)w->size);
        m->comm = (int)draw(&w->random, COMMS);
        m->tag = (int)draw(&w->random, TAGS);
        m->from = draw(&w->random, LAYOUTS);
        m->to = draw(&w->random, LAYOUTS);
        m->mode = draw(&w->random, MODES);
        m->bytes = draw_bytes(&w->random) / 3 * 3;
        m->seed = draw(&w->random, 1 << 30);
        /* A rank that receives with a wildcard takes what comes: plain, and with room for the largest. */
        m->room = draw(&w->random, 3) == 0 ? m->bytes + 3 * (int)draw(&w->random, 50) : m->bytes;
        if (m->comm == WILD) m->room = LARGEST, m->to = PLAIN;
    }
}

static size_t span(enum layout layout, int bytes) { return (size_t)(layout == STRIDED ? bytes / 3 * 5 : bytes); }

static size_t place(enum layout layout, int i) { return (size_t)(layout == STRIDED ? i / 3 * 5 + i % 3 : i); }

static void fill(struct worker *w, int i)
{
    const struct message *m = &w->plan[i];
    w->buffer[i] = malloc(span(m->from, m->bytes) + 1);
    for (int j = 0; j < m->bytes; j++) w->buffer[i][place(m->from, j)] = byte_of(m->seed, j);
}

static void clear(struct worker *w, int i)
{
    const struct message *m = &w->plan[i];
    size_t size = span(m->to, m->room) + GUARD;
    w->buffer[i] = malloc(size);
    memset(w->buffer[i], 0xEE, size);
}

/* The buffer holds message `m`, and nothing else in it was touched. */
static void check_data(struct worker *w, int i, const struct message *m, MPI_Status *status)
{
    const struct message *room = &w->plan[i];
    size_t size = span(room->to, room->room) + GUARD, touched = 0;
    int bytes, wrong = 0, source;
    MPI_Get_count(status, MPI_BYTE, &bytes);
    source = m->comm == REVERSED ? w->size - 1 - m->source : m->source;
    SAME(bytes, m->bytes);
    SAME(status->MPI_SOURCE, source);
    for (int j = 0; j < m->bytes; j++) wrong += w->buffer[i][place(room->to, j)] != byte_of(m->seed, j);
    SAME(wrong, 0);
    for (size_t j = 0; j < size; j++) touched += w->buffer[i][j] != 0xEE;
    CHECK(touched <= (size_t)m->bytes);
}

/* How many elements of which type a layout of so many bytes is.
 * The type is the caller's to free if it is not MPI_BYTE. */
static int describe(enum layout layout, int bytes, MPI_Datatype *type)
{
    if (layout == PLAIN) {
        *type = MPI_BYTE;
        return bytes;
    }
    MPI_Type_vector(bytes / 3, 3, 5, MPI_BYTE, type);
    MPI_Type_commit(type);
    return 1;
}

static int peer_in(const struct worker *w, int comm, int rank) { return comm == REVERSED ? w->size - 1 - rank : rank; }

/* Threads that share a communicator keep to tags of their own. */
static int tag_of(const struct worker *w, const struct message *m)
{
    return m->comm == SHARED ? m->tag + TAGS * w->thread : m->tag;
}

static void begin_send(struct worker *w, int i)
{
    const struct message *m = &w->plan[i];
    int dest = peer_in(w, m->comm, m->dest), tag = tag_of(w, m);
    MPI_Comm comm = w->comm[m->comm];
    MPI_Request *request = &w->request[w->open];
    MPI_Datatype type;
    fill(w, i);
    int count = describe(m->from, m->bytes, &type);
    switch (m->mode) {
    case SYNCHRONOUS: OK(MPI_Issend(w->buffer[i], count, type, dest, tag, comm, request)); break;
    case BUFFERED: OK(MPI_Ibsend(w->buffer[i], count, type, dest, tag, comm, request)); break;
    case PERSISTENT:
        OK(MPI_Send_init(w->buffer[i], count, type, dest, tag, comm, request));
        OK(MPI_Start(request));
        break;
    default: OK(MPI_Isend(w->buffer[i], count, type, dest, tag, comm, request));
    }
    if (type != MPI_BYTE) MPI_Type_free(&type); /* the send keeps it */
    w->of[w->open++] = i;
}

static void begin_receive(struct worker *w, int i)
{
    const struct message *m = &w->plan[i];
    int source = m->comm == WILD ? MPI_ANY_SOURCE : peer_in(w, m->comm, m->source);
    int tag = m->comm == WILD ? MPI_ANY_TAG : tag_of(w, m);
    MPI_Datatype type;
    clear(w, i);
    int count = describe(m->to, m->room, &type);
    OK(MPI_Irecv(w->buffer[i], count, type, source, tag, w->comm[m->comm], &w->request[w->open]));
    if (type != MPI_BYTE) MPI_Type_free(&type);
    w->of[w->open++] = i;
}

static void probe_and_receive(struct worker *w, int i)
{
    const struct message *m = &w->plan[i];
    MPI_Message message;
    MPI_Status status;
    MPI_Datatype type;
    int bytes;
    OK(MPI_Mprobe(m->source, m->tag, w->comm[PROBED], &message, &status));
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    SAME(bytes, m->bytes);
    clear(w, i);
    int count = describe(m->to, m->room, &type);
    OK(MPI_Mrecv(w->buffer[i], count, type, &message, &status));
    if (type != MPI_BYTE) MPI_Type_free(&type);
    check_data(w, i, m, &status);
}

/* The next message for us from that source on the wildcard communicator that is not yet accounted for. */
static const struct message *next_wild(struct worker *w, int source, int *seen)
{
    for (; seen[source] < MESSAGES; seen[source]++) {
        const struct message *m = &w->plan[seen[source]];
        if (m->comm == WILD && m->source == source && m->dest == w->rank) return &w->plan[seen[source]++];
    }
    return NULL;
}

static void over(struct worker *w, int k, MPI_Status *statuses, MPI_Status *status)
{
    statuses[k] = *status;
    if (w->request[k] != MPI_REQUEST_NULL) MPI_Request_free(&w->request[k]);
}

/* Completes everything in one of four ways. */
static void complete(struct worker *w, unsigned long long *random, MPI_Status *statuses)
{
    int index[MESSAGES], done, left = w->open, k;
    MPI_Status some[MESSAGES];
    switch (draw(random, 4)) {
    case 0:
        OK(MPI_Waitall(w->open, w->request, statuses));
        for (k = 0; k < w->open; k++)
            if (w->request[k] != MPI_REQUEST_NULL) MPI_Request_free(&w->request[k]);
        return;
    case 1:
        for (; left > 0; left--) {
            OK(MPI_Waitany(w->open, w->request, &k, some));
            over(w, k, statuses, some);
        }
        return;
    case 2:
        while (left > 0) {
            OK(MPI_Testsome(w->open, w->request, &done, index, some));
            for (k = 0; k < done; k++) over(w, index[k], statuses, &some[k]);
            left -= done;
        }
        return;
    default:
        for (k = w->open - 1; k >= 0; k--) {
            OK(MPI_Wait(&w->request[k], some));
            over(w, k, statuses, some);
        }
    }
}

static void play(struct worker *w, unsigned long long *random)
{
    MPI_Status statuses[MESSAGES * 2];
    int send = 0, receive = 0, *seen = calloc((size_t)w->size, sizeof *seen);
    w->open = 0;
    /* A message to oneself is two operations with one buffer each:
     * only the receive's is kept, so these are left out. */
    while (send < MESSAGES || receive < MESSAGES) {
        int pick = draw(random, 2);
        if (send < MESSAGES && (pick || receive == MESSAGES)) {
            const struct message *m = &w->plan[send];
            if (m->source == w->rank && m->dest != w->rank) begin_send(w, send);
            send++;
        } else {
            const struct message *m = &w->plan[receive];
            if (m->dest == w->rank && m->source != w->rank && m->comm != PROBED) begin_receive(w, receive);
            receive++;
        }
    }
    for (int i = 0; i < MESSAGES; i++)
        if (w->plan[i].dest == w->rank && w->plan[i].source != w->rank && w->plan[i].comm == PROBED)
            probe_and_receive(w, i);
    complete(w, random, statuses);
    for (int k = 0; k < w->open; k++) {
        const struct message *m = &w->plan[w->of[k]];
        if (m->dest != w->rank) continue;
        if (m->comm == WILD) m = next_wild(w, statuses[k].MPI_SOURCE, seen);
        CHECK(m != NULL);
        if (m != NULL) check_data(w, w->of[k], m, &statuses[k]);
    }
    for (int i = 0; i < MESSAGES; i++) {
        free(w->buffer[i]);
        w->buffer[i] = NULL;
    }
    free(seen);
}

/* A message to oneself: both ends at once. */
static void to_oneself(struct worker *w)
{
    for (int i = 0; i < MESSAGES; i++) {
        struct message *m = &w->plan[i];
        if (m->source != w->rank || m->dest != w->rank) continue;
        unsigned char *from;
        MPI_Status status;
        m->mode = STANDARD;
        w->open = 0;
        begin_send(w, i);
        from = w->buffer[i];
        begin_receive(w, i);
        OK(MPI_Wait(&w->request[1], &status));
        OK(MPI_Wait(&w->request[0], MPI_STATUS_IGNORE));
        check_data(w, i, m, &status);
        free(from);
        free(w->buffer[i]);
        w->buffer[i] = NULL;
    }
}

static void *work(void *argument)
{
    struct worker *w = argument;
    unsigned long long own = (unsigned long long)w->rank * 1000 + (unsigned)w->thread;
    for (int round = 0; round < ROUNDS; round++) {
        draw_plan(w);
        play(w, &own);
        to_oneself(w);
        OK(MPI_Barrier(w->comm[COPY])); /* a wildcard of this round must not meet a message of the next */
    }
    return NULL;
}

static void make(struct worker *w, int thread)
{
    memset(w, 0, sizeof *w);
    w->thread = thread;
    w->random = 42 + (unsigned)thread;
    MPI_Comm_rank(MPI_COMM_WORLD, &w->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &w->size);
    w->comm[SHARED] = MPI_COMM_WORLD;
    for (int i = 1; i < COMMS; i++)
        if (i == REVERSED) OK(MPI_Comm_split(MPI_COMM_WORLD, 0, w->size - w->rank, &w->comm[i]));
        else OK(MPI_Comm_dup(MPI_COMM_WORLD, &w->comm[i]));
}

#ifndef OWN_MAIN
int main(int argc, char **argv)
{
    struct worker worker;
    int size = THREADS * MESSAGES * (LARGEST + MPI_BSEND_OVERHEAD);
    MPI_Init(&argc, &argv);
    void *buffer = malloc((size_t)size);
    OK(MPI_Buffer_attach(buffer, size));
    make(&worker, 0);
    work(&worker);
    for (int i = 1; i < COMMS; i++) OK(MPI_Comm_free(&worker.comm[i]));
    OK(MPI_Buffer_detach(&buffer, &size));
    free(buffer);
    MPI_Finalize();
    return verdict();
}
#endif
