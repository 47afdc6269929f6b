/* all_to_all_order.c: many small messages from everyone to everyone else, received with wildcards, each checked.
 *
 *   mpiexec -n 64 all_to_all_order [--messages TOTAL] [--window W] [--seconds S] [--quiet]
 *                                       defaults: 1,000,000 messages in all, 64 receives posted, one round
 *
 * Every rank sends the same number of messages to every other rank, taking the others in turn. A message says who sent
 * it and its number for this receiver; its tag is that number, too. Receives name neither source nor tag. They are
 * completed in the order they were posted in, which is the order they are matched in, so each sender's numbers must
 * come up one by one. With --seconds, rounds are repeated for that long: something to kill in the middle of. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct message {
    int source, number;
};

struct job {
    int rank, size, each, window, errors;
    long total;
    double seconds;
    int quiet;
    int *expected;            /* by source: the number that comes next */
    struct message *incoming; /* `window` of them */
    struct message *outgoing;
    MPI_Request *receive, *send;
};

static void complain(struct job *job, const struct message *got, const MPI_Status *status, const char *what)
{
    if (job->errors++ < 5)
        fprintf(stderr, "rank %d: %s: source %d tag %d, message says source %d number %d\n", job->rank, what,
                status->MPI_SOURCE, status->MPI_TAG, got->source, got->number);
}

static void check(struct job *job, const struct message *got, const MPI_Status *status)
{
    int bytes;
    MPI_Get_count(status, MPI_BYTE, &bytes);
    if (bytes != (int)sizeof *got) complain(job, got, status, "wrong length");
    if (got->source != status->MPI_SOURCE || got->number != status->MPI_TAG) complain(job, got, status, "wrong envelope");
    if (got->source < 0 || got->source >= job->size || got->source == job->rank)
        complain(job, got, status, "impossible source");
    else if (job->expected[got->source]++ != got->number)
        complain(job, got, status, "out of order");
}

static void post(struct job *job, long k)
{
    long slot = k % job->window;
    MPI_Irecv(&job->incoming[slot], sizeof(struct message), MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
              &job->receive[slot]);
}

static void send_next(struct job *job, long k)
{
    int others = job->size - 1, slot = (int)(k % job->window);
    int to = (int)((job->rank + 1 + k % others) % job->size);
    MPI_Wait(&job->send[slot], MPI_STATUS_IGNORE);
    job->outgoing[slot] = (struct message){job->rank, (int)(k / others)};
    MPI_Isend(&job->outgoing[slot], sizeof(struct message), MPI_BYTE, to, job->outgoing[slot].number, MPI_COMM_WORLD,
              &job->send[slot]);
}

static void round_of_messages(struct job *job)
{
    long messages = (long)job->each * (job->size - 1), posted = 0, received = 0;
    memset(job->expected, 0, sizeof(int) * (size_t)job->size);
    for (int i = 0; i < job->window; i++) job->send[i] = MPI_REQUEST_NULL;
    while (posted < messages && posted < job->window) post(job, posted++);
    for (long sent = 0; sent < messages || received < messages;) {
        MPI_Status status;
        int arrived = 1;
        if (sent < messages) send_next(job, sent++);
        if (received == messages) continue;
        MPI_Request *oldest = &job->receive[received % job->window];
        /* While there is something to send, nobody waits for a message that may never be sent unless he does. */
        if (sent < messages) MPI_Test(oldest, &arrived, &status);
        else MPI_Wait(oldest, &status);
        if (!arrived) continue;
        check(job, &job->incoming[received++ % job->window], &status);
        if (posted < messages) post(job, posted++);
    }
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
        else if (strcmp(argv[i], "--window") == 0) job->window = atoi(argv[++i]);
        else if (strcmp(argv[i], "--seconds") == 0) job->seconds = atof(argv[++i]);
        else fprintf(stderr, "all_to_all_order: %s?\n", argv[i]), MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (job->size < 2 || job->window < 1) {
        fprintf(stderr, "all_to_all_order: needs two ranks and a window of at least 1\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

int main(int argc, char **argv)
{
    struct job job = {.total = 1000000, .window = 64};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.size);
    read_options(&job, argc, argv);
    long pairs = (long)job.size * (job.size - 1), done = 0;
    job.each = (int)((job.total + pairs - 1) / pairs);
    job.expected = calloc((size_t)job.size, sizeof *job.expected);
    job.incoming = calloc((size_t)job.window, sizeof *job.incoming);
    job.outgoing = calloc((size_t)job.window, sizeof *job.outgoing);
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
        MPI_Bcast(&again, 1, MPI_INT, 0, MPI_COMM_WORLD);
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
