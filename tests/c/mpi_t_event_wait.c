/* A rank that sleeps inside MPI does not sit on events: what waits in buffers, its own going to sleep among it, is
 * delivered first, to functions that keep to what that place asks. The message that ends the wait is sent only after
 * the events have been delivered, so a rank that would keep them would wait too long.
 * RANKS: 2
 * FLAGS: -pthread
 */
#include "mpi_t_event.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { PATIENCE_MS = 30000 };
static int rank, shared;
static char path[64];
/* How many events of each kind were delivered, and at which level last. */
static struct delivered {
    atomic_int count;
    int level, code_of_mpi;
} posted, asleep, freely;
static atomic_int drops, freed;
static atomic_int wanted;

/* The one whose events are awaited takes the file away: that is what the other rank looks at. */
static void on_event(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    struct delivered *delivered = data;
    int flag;
    (void)instance, (void)handle;
    delivered->level = level;
    delivered->code_of_mpi = MPI_Op_commutative(MPI_SUM, &flag);
    atomic_fetch_add(&delivered->count, 1);
    if (atomic_load(&posted.count) >= atomic_load(&wanted) && atomic_load(&asleep.count) > 0) unlink(path);
}

static void on_drop(MPI_Count count, MPI_T_event_registration handle, int source, MPI_T_cb_safety level, void *data)
{
    (void)handle, (void)source, (void)level, (void)data;
    atomic_fetch_add(&drops, (int)count);
}

static void on_free(MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    (void)handle, (void)level, (void)data;
    atomic_fetch_add(&freed, 1);
}

static MPI_T_event_registration hear(const char *name, int entries, int level, struct delivered *delivered)
{
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_T_event_registration handle = handle_of(type_of(name), &world, entries);
    OK(MPI_T_event_set_dropped_handler(handle, on_drop));
    OK(MPI_T_event_register_callback(handle, level, MPI_INFO_NULL, delivered, on_event));
    return handle;
}

static void *receive(void *data)
{
    int value = 0, tag = *(int *)data;
    OK(MPI_Recv(&value, 1, MPI_INT, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    SAME(value, 7);
    return NULL;
}

/* Waits without MPI until the other rank has got its events. */
static void answer(int count)
{
    int value = 7, waited = 0;
    MPI_Recv(path, sizeof path, MPI_CHAR, 0, 100, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    while (access(path, F_OK) == 0 && waited++ < PATIENCE_MS) usleep(1000);
    CHECK(waited < PATIENCE_MS);
    for (int tag = 0; tag < count; tag++) OK(MPI_Send(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD));
}

/* `count` threads wait for a message each, the posting of which is an event that waits in a buffer. */
static void wait_for_messages(int count, int level)
{
    pthread_t threads[4];
    int tags[4], asks_all = shared ? MPI_T_CB_REQUIRE_THREAD_SAFE : MPI_T_CB_REQUIRE_MPI_RESTRICTED;
    if (rank == 1) {
        answer(count);
        return;
    }
    strcpy(path, "mpi_t_event_wait.XXXXXX");
    close(mkstemp(path));
    atomic_store(&posted.count, 0);
    atomic_store(&asleep.count, 0);
    atomic_store(&freely.count, 0);
    atomic_store(&drops, 0);
    atomic_store(&freed, 0);
    atomic_store(&wanted, count);
    OK(MPI_Send(path, sizeof path, MPI_CHAR, 1, 100, MPI_COMM_WORLD));
    /* Delivered before each sleep, so room for one is enough;
     * but of several threads one may go to sleep while another still tells. */
    MPI_T_event_registration insert = hear("PERUSE_COMM_REQ_INSERT_IN_POSTED_Q", 16, level, &posted),
                             sleep = hear("PERUSAL_BELL_SLEEP", shared ? 16 : 1, level, &asleep),
                             activate = hear("PERUSE_COMM_REQ_ACTIVATE", 16, MPI_T_CB_REQUIRE_NONE, &freely);
    for (int i = 0; i < count; i++) tags[i] = i;
    for (int i = 1; i < count; i++) pthread_create(&threads[i], NULL, receive, &tags[i]);
    receive(&tags[0]);
    /* No other function of MPI has begun on this thread, and the message came after the events had been delivered. */
    CHECK(atomic_load(&posted.count) > 0 && atomic_load(&asleep.count) > 0);
    for (int i = 1; i < count; i++) pthread_join(threads[i], NULL);
    SAME(atomic_load(&posted.count), count);
    SAME(posted.level, asks_all);
    CHECK(posted.code_of_mpi != MPI_SUCCESS); /* refused, and no deadlock */
    SAME(atomic_load(&drops), 0);
    if (!shared) {
        /* What may call MPI is called where it can. */
        SAME(atomic_load(&freely.count), 0);
        OK(MPI_Comm_test_inter(MPI_COMM_SELF, tags));
        SAME(atomic_load(&freely.count), count);
        SAME(freely.level, MPI_T_CB_REQUIRE_NONE);
        OK(freely.code_of_mpi);
    }
    OK(MPI_T_event_handle_free(insert, NULL, on_free));
    OK(MPI_T_event_handle_free(sleep, NULL, on_free));
    OK(MPI_T_event_handle_free(activate, NULL, on_free));
    SAME(atomic_load(&freed), 3);
}

int main(int argc, char **argv)
{
    int provided;
    shared = argc > 1;
    initialise_tools();
    OK(MPI_Init_thread(&argc, &argv, shared ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    errors_return();
    for (int i = 0; i < 3; i++) {
        wait_for_messages(1, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE);
        if (!shared) wait_for_messages(1, MPI_T_CB_REQUIRE_MPI_RESTRICTED);
        if (shared) wait_for_messages(3, MPI_T_CB_REQUIRE_THREAD_SAFE);
    }
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return verdict();
}
