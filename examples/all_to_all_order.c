/* all_to_all_order.c: many small messages from every rank to every other rank, received with wildcards, each checked.
 *
 *   mpiexec -n 64 all_to_all_order [--messages TOTAL] [--bytes B] [--window W] [--seconds S] [--quiet]
 *                        defaults: 1,000,000 messages in all, of 8 bytes, 64 receives posted, one round
 *
 * Every rank sends the same number of messages to every other rank, taking the others in turn. A message says who sent
 * it and its number for this receiver; its tag is that number, too. Receives name neither source nor tag. They are
 * completed in the order they were posted in, which is the order they are matched in, so each sender's numbers must
 * come up one by one. A message of more than eight bytes ends with its number, too. With
 * --seconds, rounds are repeated for that long, so that a test can kill a rank in the middle of one. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct message {
    int source, number;
    char rest[];
};

struct job {
    int rank, size, each, window, bytes, errors;
    long total;
    double seconds;
    int quiet;
    int *expected;            /* by source: the number that comes next */
    char *incoming; /* `window` messages */
    char *outgoing;
    MPI_Request *receive, *send;
};

static struct message *slot(const struct job *job, char *messages, long k)
{
    return (struct message *)(messages + (size_t)(k % job->window) * (size_t)job->bytes);
}

/* The last four bytes of a message: its number, if it is longer than its beginning. */
static char *end_of(const struct job *job, struct message *message) { return (char *)message + job->bytes - sizeof(int); }

static void complain(struct job *job, const struct message *got, const MPI_Status *status, const char *what)
{
    if (job->errors++ < 5)
        fprintf(stderr, "rank %d: %s: source %d tag %d, message says source %d number %d\n", job->rank, what,
                status->MPI_SOURCE, status->MPI_TAG, got->source, got->number);
}

static void check(struct job *job, struct message *got, const MPI_Status *status)
{
    int bytes;
    MPI_Get_count(status, MPI_BYTE, &bytes);
    if (bytes != job->bytes) complain(job, got, status, "wrong length");
    if (memcmp(end_of(job, got), &got->number, sizeof got->number) != 0) complain(job, got, status, "wrong end");
    if (got->source != status->MPI_SOURCE || got->number != status->MPI_TAG) complain(job, got, status, "wrong envelope");
    if (got->source < 0 || got->source >= job->size || got->source == job->rank)
        complain(job, got, status, "impossible source");
    else if (job->expected[got->source]++ != got->number)
        complain(job, got, status, "out of order");
}

static void post(struct job *job, long k)
{
    MPI_Irecv(slot(job, job->incoming, k), job->bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
              &job->receive[k % job->window]);
}

static MPI_Request *send_slot(struct job *job, long k) { return &job->send[k % job->window]; }

static void send_next(struct job *job, long k)
{
    int others = job->size - 1;
    int to = (int)((job->rank + 1 + k % others) % job->size);
    struct message *message = slot(job, job->outgoing, k);
    message->source = job->rank;
    message->number = (int)(k / others);
    memcpy(end_of(job, message), &message->number, sizeof message->number);
    MPI_Isend(message, job->bytes, MPI_BYTE, to, message->number, MPI_COMM_WORLD, send_slot(job, k));
}

/* How far a round has come, in messages. */
struct progress {
    long posted, sent, received;
};

static void take(struct job *job, struct progress *p, long messages, const MPI_Status *status)
{
    check(job, slot(job, job->incoming, p->received++), status);
    if (p->posted < messages) post(job, p->posted++);
}

/* Sends or receives a message or both, if that can be done at once. */
static int try_both(struct job *job, struct progress *p, long messages)
{
    int free = 0, arrived = 0;
    MPI_Status status;
    if (p->sent < messages) MPI_Test(send_slot(job, p->sent), &free, MPI_STATUS_IGNORE);
    if (free) send_next(job, p->sent++);
    if (p->received < messages) MPI_Test(&job->receive[p->received % job->window], &arrived, &status);
    if (arrived) take(job, p, messages, &status);
    return free || arrived;
}

/* Waits for room to send or for the oldest receive. Waiting for room alone could last for ever: a peer that waits for
 * room too receives nothing, and so makes none. */
static void wait_for_either(struct job *job, struct progress *p, long messages)
{
    MPI_Request none = MPI_REQUEST_NULL;
    MPI_Request *send = p->sent < messages ? send_slot(job, p->sent) : &none;
    MPI_Request *receive = p->received < messages ? &job->receive[p->received % job->window] : &none;
    MPI_Request both[2] = {*send, *receive};
    MPI_Status status;
    int which;
    MPI_Waitany(2, both, &which, &status);
    *send = both[0];
    *receive = both[1];
    if (which == 1) take(job, p, messages, &status);
}

static void round_of_messages(struct job *job)
{
    long messages = (long)job->each * (job->size - 1);
    struct progress p = {0};
    memset(job->expected, 0, sizeof(int) * (size_t)job->size);
    for (int i = 0; i < job->window; i++) job->send[i] = MPI_REQUEST_NULL;
    while (p.posted < messages && p.posted < job->window) post(job, p.posted++);
    while (p.sent < messages || p.received < messages)
        if (!try_both(job, &p, messages)) wait_for_either(job, &p, messages);
    MPI_Waitall(job->window, job->send, MPI_STATUSES_IGNORE);
    for (int source = 0; source < job->size; source++)
        if (source != job->rank && job->expected[source] != job->each) job->errors++;
}

static void read_options(struct job *job, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quiet") == 0) job->quiet = 1;
        else if (i + 1 == argc) fprintf(stderr, "all_to_all_order: %s?\n", argv[i]), MPI_Abort(MPI_COMM_WORLD, 2);
        else if (strcmp(argv[i], "--messages") == 0) job->total = atol(argv[++i]);
        else if (strcmp(argv[i], "--bytes") == 0) job->bytes = atoi(argv[++i]);
        else if (strcmp(argv[i], "--window") == 0) job->window = atoi(argv[++i]);
        else if (strcmp(argv[i], "--seconds") == 0) job->seconds = atof(argv[++i]);
        else fprintf(stderr, "all_to_all_order: %s?\n", argv[i]), MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (job->size < 2 || job->window < 1 || job->bytes < (int)sizeof(struct message) || job->bytes % 4 != 0) {
        fprintf(stderr, "all_to_all_order: needs two ranks, a window, and at least 8 bytes, a multiple of 4\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

int main(int argc, char **argv)
{
    struct job job = {.total = 1000000, .window = 64, .bytes = 8};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.size);
    read_options(&job, argc, argv);
    long pairs = (long)job.size * (job.size - 1), done = 0;
    job.each = (int)((job.total + pairs - 1) / pairs);
    job.expected = calloc((size_t)job.size, sizeof *job.expected);
    job.incoming = calloc((size_t)job.window, (size_t)job.bytes);
    job.outgoing = calloc((size_t)job.window, (size_t)job.bytes);
    job.receive = calloc((size_t)job.window, sizeof *job.receive);
    job.send = calloc((size_t)job.window, sizeof *job.send);

    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime(), took;
    int again;
    do {
        round_of_messages(&job);
        done += (long)job.each * pairs;
        took = MPI_Wtime() - began;
        again = took < job.seconds;
        /* Returns when all have received what is theirs of this round: a wildcard would match messages of the next. */
        MPI_Allreduce(MPI_IN_PLACE, &again, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    } while (again);

    int errors = 0;
    MPI_Reduce(&job.errors, &errors, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (job.rank == 0 && !job.quiet)
        printf("all_to_all_order ranks=%d messages=%ld seconds=%.3f rate=%.0f errors=%d\n", job.size, done, took,
               (double)done / took, errors);
    free(job.expected);
    free(job.incoming);
    free(job.outgoing);
    free(job.receive);
    free(job.send);
    MPI_Finalize();
    return job.errors != 0;
}
