/* Event accounting: for every type, at every size of the buffer, and where the size changes all the time, over a random
 * workload: events seen + drops reported = events raised, exactly. What was raised a handle without a buffer counts,
 * which hears everything at once and drops nothing. Large messages go in chunks here: where the kernel copies them in
 * one go, as on machines on which that measured faster, nothing is ever continued.
 * RANKS: 2 3
 * ENV: PERUSAL_COPY_ENGINE=chunks
 */
#include "mpi_t_event.h"

enum { SIZES = 7, RESIZED = SIZES - 1, MOST = 256, KINDS = 13, STEPS = 50, TAG = 5, LAST = 6 };
static const int sizes[SIZES] = {0, 1, 2, 3, 17, 400, 1};

struct account {
    long long seen, dropped, freed;
    MPI_T_event_registration handle;
};
static struct account accounts[SIZES][MOST];
static int rank, ranks;
static MPI_Comm comms[3];
/* A window of each of the first two. */
static MPI_Win wins[2];
/* And a file. */
static MPI_File files[2];
static unsigned seed;

static int random_below(int n)
{
    seed = seed * 1664525u + 1013904223u;
    return (int)((seed >> 8) % (unsigned)n);
}

static void on_event(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    struct account *account = data;
    (void)instance, (void)level;
    CHECK(handle == account->handle && account->freed == 0);
    account->seen++;
}

static void on_drop(MPI_Count count, MPI_T_event_registration handle, int source, MPI_T_cb_safety level, void *data)
{
    struct account *account = data;
    (void)level;
    CHECK(handle == account->handle && count > 0 && source == 0 && account->freed == 0);
    account->dropped += count;
}

static void on_free(MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    struct account *account = data;
    (void)level;
    CHECK(handle == account->handle);
    account->freed++;
}

static char out[1 << 20];
static const int lengths[] = {0, 8, 100, 5000, 700000};

/* Begins to send; the first goes in pieces. */
static void send_to(int dest, int count, MPI_Comm comm, MPI_Request *requests)
{
    for (int i = 0; i < count; i++)
        OK(MPI_Isend(out, lengths[i ? random_below(5) : 4], MPI_CHAR, dest, TAG, comm, &requests[i]));
}

/* Every kind of operation and synchronisation of a window. */
static void at_window(MPI_Win win, int count, int right, int left)
{
    static long in[64];
    MPI_Group world, one, other;
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < count; i++) {
        int some = random_below(7) + 1;
        OK(MPI_Put(out, some, MPI_LONG, right, 8, some, MPI_LONG, win));
        OK(MPI_Get(in, 8, MPI_LONG, right, 16, 8, MPI_LONG, win));
        OK(MPI_Accumulate(out, 2, MPI_LONG, right, 24, 2, MPI_LONG, MPI_SUM, win));
    }
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    /* Where another rank holds the lock this one waits. */
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    OK(MPI_Fetch_and_op(out, in, MPI_LONG, 0, 0, MPI_SUM, win));
    OK(MPI_Win_flush(0, win));
    OK(MPI_Win_sync(win));
    OK(MPI_Win_unlock(0, win));
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 1, &left, &one));
    OK(MPI_Group_incl(world, 1, &right, &other));
    OK(MPI_Win_post(one, 0, win));
    OK(MPI_Win_start(other, 0, win));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&one));
    OK(MPI_Group_free(&other));
}

/* Every kind of access of a file: alone, in the background, at the shared pointer, under locks and together. */
static void at_file(MPI_File file, int count)
{
    static char in[4096];
    MPI_Request request;
    for (int i = 0; i < count; i++) {
        OK(MPI_File_write_at(file, 4096 * rank, out, random_below(4096), MPI_CHAR, MPI_STATUS_IGNORE));
        OK(MPI_File_iread_at(file, 4096 * rank, in, 100, MPI_CHAR, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_File_write_shared(file, out, 10, MPI_CHAR, MPI_STATUS_IGNORE));
    }
    OK(MPI_File_set_atomicity(file, 1));
    OK(MPI_File_write_at(file, 0, out, 4096, MPI_CHAR, MPI_STATUS_IGNORE));
    OK(MPI_File_set_atomicity(file, 0));
    OK(MPI_File_write_at_all(file, 4096 * rank, out, 4096, MPI_CHAR, MPI_STATUS_IGNORE));
    OK(MPI_File_read_ordered(file, in, 10, MPI_CHAR, MPI_STATUS_IGNORE));
}

static void open_file(MPI_Comm comm, const char *name, MPI_File *file)
{
    OK(MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, file));
}

/* One step that all ranks take together: the numbers are drawn alike everywhere. */
static void step(int kind, MPI_Comm comm)
{
    static char in[16][1 << 20];
    MPI_Comm self = comms[2];
    int count = random_below(12) + 1, right, left;
    MPI_Request requests[32];
    right = (rank + 1) % ranks;
    left = (rank + ranks - 1) % ranks;
    switch (kind) {
    case 0: /* posted before they come, however fast the others are */
        for (int i = 0; i < count; i++) {
            int source = random_below(2) ? left : MPI_ANY_SOURCE;
            OK(MPI_Irecv(in[i], sizeof in[i], MPI_CHAR, source, TAG, comm, &requests[count + i]));
        }
        OK(MPI_Barrier(comm));
        send_to(right, count, comm, requests);
        OK(MPI_Waitall(2 * count, requests, MPI_STATUSES_IGNORE));
        break;
    case 1: /* and after: a rank that has the last one has met the others */
        send_to(right, count, comm, requests);
        OK(MPI_Sendrecv(out, 4, MPI_CHAR, right, LAST, in[0], 4, MPI_CHAR, left, LAST, comm, MPI_STATUS_IGNORE));
        for (int i = 0; i < count; i++) OK(MPI_Recv(in[0], sizeof in[0], MPI_CHAR, left, TAG, comm, MPI_STATUS_IGNORE));
        OK(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
        break;
    case 2: OK(MPI_Barrier(comm)); break;
    case 3: OK(MPI_Bcast(out, lengths[random_below(5)], MPI_CHAR, random_below(ranks), comm)); break;
    case 4: { /* cancelled */
        OK(MPI_Irecv(in[0], 1, MPI_CHAR, left, 99, comm, &requests[0]));
        OK(MPI_Cancel(&requests[0]));
        OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
        break;
    }
    case 5: /* to oneself */
        for (int i = 0; i < count; i++) {
            OK(MPI_Irecv(in[0], 8, MPI_CHAR, 0, 1, self, &requests[0]));
            OK(MPI_Send(out, 8, MPI_CHAR, 0, 1, self));
            OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
        }
        break;
    case 6: { /* communicators come and go */
        MPI_Comm made;
        OK(MPI_Comm_dup(comm, &made));
        OK(MPI_Comm_set_name(made, "made"));
        OK(MPI_Sendrecv(out, 4, MPI_CHAR, right, 2, in[0], 4, MPI_CHAR, left, 2, made, MPI_STATUS_IGNORE));
        OK(MPI_Comm_free(&made));
        break;
    }
    case 8: at_window(wins[comm == comms[1]], count, right, left); break;
    case 9: { /* windows come and go */
        MPI_Win made;
        void *base;
        OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, comm, &base, &made));
        OK(MPI_Win_set_name(made, "made"));
        OK(MPI_Win_free(&made));
        break;
    }
    case 10: at_file(files[comm == comms[1]], count); break;
    case 11: { /* files come and go */
        MPI_File made;
        open_file(comm, "mpi_t_event_accounting.made", &made);
        OK(MPI_File_close(&made));
        break;
    }
    case 12: { /* partitions */
        MPI_Request pair[2];
        int arrived;
        OK(MPI_Precv_init(in[0], 2, 2 * count, MPI_CHAR, left, TAG, comm, MPI_INFO_NULL, &pair[0]));
        OK(MPI_Psend_init(out, 4, count, MPI_CHAR, right, TAG, comm, MPI_INFO_NULL, &pair[1]));
        OK(MPI_Startall(2, pair));
        OK(MPI_Pready_range(0, 3, pair[1]));
        OK(MPI_Parrived(pair[0], 1, &arrived));
        OK(MPI_Waitall(2, pair, MPI_STATUSES_IGNORE));
        OK(MPI_Request_free(&pair[0]));
        OK(MPI_Request_free(&pair[1]));
        break;
    }
    case 7: CLASS(MPI_Send(out, 1, MPI_CHAR, ranks + 5, 0, comm), MPI_ERR_RANK); break;
    }
}

/* Handles of every size for the types of one binding. Between the first registration and the last nothing happens, so
 * that all sizes hear the same. */
static void listen_to_types_that_are(int bind)
{
    int num = types();
    CHECK(num <= MOST);
    for (int s = 0; s < SIZES; s++)
        for (int t = 0; t < num; t++)
            if (bind_of(t) == bind) {
                void *object = bind == MPI_T_BIND_MPI_WIN    ? (void *)&wins[t % 2]
                               : bind == MPI_T_BIND_MPI_FILE ? (void *)&files[t % 2]
                                                             : (void *)&comms[t % 2];
                accounts[s][t].handle = handle_of(t, object, sizes[s]);
                OK(MPI_T_event_set_dropped_handler(accounts[s][t].handle, on_drop));
            }
    for (int s = 0; s < SIZES; s++)
        for (int t = 0; t < num; t++)
            if (bind_of(t) == bind)
                OK(MPI_T_event_register_callback(accounts[s][t].handle, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, MPI_INFO_NULL,
                                                 &accounts[s][t], on_event));
}

/* Gives the handles of the last column another size. */
static void resize(void)
{
    MPI_Info info = buffer_of(random_below(2) ? random_below(4) : random_below(40));
    for (int t = 0; t < types(); t++)
        if (accounts[RESIZED][t].handle) OK(MPI_T_event_handle_set_info(accounts[RESIZED][t].handle, info));
    OK(MPI_Info_free(&info));
}

/* Whether a rank sleeps, is woken, finds a ring full or waits for a lock depends on how fast the others are; all the
 * rest happens, but for spawns, which dynamic_events.c shows. */
static int is_a_matter_of_time(const char *name)
{
    if (!strncmp(name, "PERUSAL_WIN_LOCK_WAIT_", 22) || !strncmp(name, "PERUSAL_FILE_LOCK_WAIT_", 23)) return 1;
    if (strstr(name, "SPAWN")) return 1;
    return !strcmp(name, "PERUSAL_BELL_SLEEP") || !strcmp(name, "PERUSAL_BELL_WAKE") || !strcmp(name, "PERUSAL_RING_FULL");
}

static void account_for_every_type(void)
{
    long long raised = 0, dropped = 0;
    int num = types();
    for (int t = 0; t < num; t++) {
        char name[128];
        int length = sizeof name;
        OK(MPI_T_event_get_info(t, name, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
        SAME(accounts[0][t].dropped, 0);
        raised += accounts[0][t].seen;
        if (accounts[0][t].seen == 0 && !is_a_matter_of_time(name)) {
            fprintf(stderr, "%s was not raised\n", name);
            failures++;
        }
        for (int s = 0; s < SIZES; s++) {
            struct account *account = &accounts[s][t];
            SAME(account->freed, 1);
            dropped += account->dropped;
            if (account->seen + account->dropped != accounts[0][t].seen) {
                fprintf(stderr, "%s, buffer of %d: %lld seen and %lld dropped, %lld raised\n", name, sizes[s], account->seen,
                        account->dropped, accounts[0][t].seen);
                failures++;
            }
        }
    }
    fprintf(stderr, "rank %d: %lld events raised, %lld drops reported\n", rank, raised, dropped);
    CHECK(raised > 1000 && dropped > 1000);
}

int main(int argc, char **argv)
{
    initialise_tools();
    listen_to_types_that_are(MPI_T_BIND_NO_OBJECT);
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    comms[0] = MPI_COMM_WORLD;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]));
    comms[2] = MPI_COMM_SELF;
    for (int c = 0; c < 3; c++) OK(MPI_Comm_set_errhandler(comms[c], MPI_ERRORS_RETURN));
    seed = argc > 1 ? (unsigned)atoi(argv[1]) : (unsigned)(MPI_Wtime() * 1e6);
    OK(MPI_Bcast(&seed, 1, MPI_UNSIGNED, 0, MPI_COMM_WORLD));
    if (rank == 0) fprintf(stderr, "seed %u\n", seed);
    for (int c = 0; c < 2; c++) {
        void *base;
        OK(MPI_Win_allocate(1024, sizeof(long), MPI_INFO_NULL, comms[c], &base, &wins[c]));
        open_file(comms[c], c ? "mpi_t_event_accounting.1" : "mpi_t_event_accounting.0", &files[c]);
    }
    listen_to_types_that_are(MPI_T_BIND_MPI_COMM);
    listen_to_types_that_are(MPI_T_BIND_MPI_WIN);
    listen_to_types_that_are(MPI_T_BIND_MPI_FILE);
    /* Each kind of step at least once on each communicator, the rest at random. */
    for (int c = 0; c < 2; c++)
        for (int kind = 0; kind < KINDS; kind++) step(kind, comms[c]);
    for (int i = 0; i < STEPS; i++) {
        int kind = random_below(KINDS);
        step(kind, comms[random_below(2)]);
        resize();
    }
    for (int c = 0; c < 2; c++) {
        OK(MPI_Win_free(&wins[c]));
        OK(MPI_File_close(&files[c]));
    }
    OK(MPI_Comm_free(&comms[1]));
    OK(MPI_Finalize());
    for (int t = 0; t < types(); t++)
        for (int s = 0; s < SIZES; s++) OK(MPI_T_event_handle_free(accounts[s][t].handle, &accounts[s][t], on_free));
    account_for_every_type();
    OK(MPI_T_finalize());
    return verdict();
}
