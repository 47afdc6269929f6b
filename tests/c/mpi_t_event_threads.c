/* Under MPI_THREAD_MULTIPLE handles and functions come, change and go while other threads raise their events: no
 * function is called after its handle's free callback or with another function's data, and what stays hears everything.
 * RANKS: 2
 * FLAGS: -pthread
 */
#include "mpi_t_event.h"
#include <pthread.h>
#include <stdatomic.h>

enum { TALKERS = 2, TOOLS = 2, MESSAGES = 1500, LIVES = 150 };

static int rank;
static atomic_int talking = TALKERS, wrong;
static atomic_llong heard[2], dropped;

/* What a function gets is its own: each has a mark that says so, and whether it is alive. */
struct life {
    atomic_int alive, mark;
};

static void one(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    struct life *life = data;
    int peer = -7;
    (void)handle;
    if (atomic_load(&life->mark) != 1 || !atomic_load(&life->alive) || level != MPI_T_CB_REQUIRE_THREAD_SAFE) atomic_fetch_add(&wrong, 1);
    if (MPI_T_event_read(instance, 1, &peer) != MPI_SUCCESS) atomic_fetch_add(&wrong, 100);
}

static void two(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    struct life *life = data;
    (void)instance, (void)handle, (void)level;
    if (atomic_load(&life->mark) != 2 || !atomic_load(&life->alive)) atomic_fetch_add(&wrong, 10000);
}

static void on_free(MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    struct life *lives = data;
    (void)handle, (void)level;
    atomic_store(&lives[0].alive, 0);
    atomic_store(&lives[1].alive, 0);
}

static void count(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    (void)instance, (void)handle, (void)level;
    atomic_fetch_add((atomic_llong *)data, 1);
}

static void on_drop(MPI_Count count, MPI_T_event_registration handle, int source, MPI_T_cb_safety level, void *data)
{
    (void)handle, (void)source, (void)level, (void)data;
    atomic_fetch_add(&dropped, count);
}

static void *talk(void *data)
{
    int tag = *(int *)data, value = 0;
    for (int i = 0; i < MESSAGES; i++) {
        MPI_Request r[2];
        MPI_Irecv(&value, 1, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD, &r[0]);
        MPI_Isend(&i, 1, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD, &r[1]);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        if (value != i) atomic_fetch_add(&wrong, 1000000);
    }
    atomic_fetch_sub(&talking, 1);
    return NULL;
}

static void *come_and_go(void *data)
{
    int tool = *(int *)data;
    struct life(*lives)[4][2] = calloc(LIVES, sizeof *lives); /* never given back: a late call must find its mark */
    const char *names[] = {"PERUSE_COMM_REQ_XFER_BEGIN_all", "PERUSE_COMM_MSG_ARRIVED", "PERUSE_COMM_REQ_COMPLETE_all",
                           "pml_ob1_transfer_begin"};
    MPI_Comm world = MPI_COMM_WORLD;
    for (int i = 0; i < LIVES && atomic_load(&talking) > 0; i++) {
        MPI_T_event_registration handles[4];
        for (int h = 0; h < 4; h++) {
            for (int m = 0; m < 2; m++) {
                atomic_store(&lives[i][h][m].mark, m + 1);
                atomic_store(&lives[i][h][m].alive, 1);
            }
            handles[h] = handle_of(type_of(names[h]), &world, (i + h + tool) % 2 ? 3 : 0);
            OK(MPI_T_event_register_callback(handles[h], MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL, &lives[i][h][1], two));
        }
        /* Changed beneath the events, which may meet the one or the other, never a mixture. */
        for (int change = 0; change < 20; change++)
            for (int h = 0; h < 4; h++) {
                int m = change % 2;
                struct life *life = &lives[i][h][m];
                if (m == 0 && h == 3) continue; /* its first element is all it has */
                OK(MPI_T_event_register_callback(handles[h], MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL, life, m ? two : one));
                if (change % 7 == 0)
                    OK(MPI_T_event_register_callback(handles[h], MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, MPI_INFO_NULL,
                                                     change % 2 ? life : NULL, change % 2 ? (m ? two : one) : NULL));
            }
        for (int h = 0; h < 4; h++) OK(MPI_T_event_handle_free(handles[h], lives[i][h], on_free));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t talkers[TALKERS], tools[TOOLS];
    int provided, numbers[] = {0, 1, 2, 3};
    initialise_tools();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    SAME(provided, MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm world = MPI_COMM_WORLD;
    int complete = type_of("PERUSE_COMM_REQ_COMPLETE");
    MPI_T_event_registration whole = handle_of(complete, &world, 0), buffered = handle_of(complete, &world, 16);
    OK(MPI_T_event_set_dropped_handler(buffered, on_drop));
    OK(MPI_T_event_register_callback(whole, MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL, &heard[0], count));
    OK(MPI_T_event_register_callback(buffered, MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL, &heard[1], count));
    for (int i = 0; i < TOOLS; i++) pthread_create(&tools[i], NULL, come_and_go, &numbers[i]);
    for (int i = 0; i < TALKERS; i++) pthread_create(&talkers[i], NULL, talk, &numbers[i]);
    for (int i = 0; i < TALKERS; i++) pthread_join(talkers[i], NULL);
    for (int i = 0; i < TOOLS; i++) pthread_join(tools[i], NULL);
    OK(MPI_T_event_handle_free(whole, NULL, NULL));
    OK(MPI_T_event_handle_free(buffered, NULL, NULL));
    SAME(atomic_load(&wrong), 0);
    SAME(atomic_load(&heard[0]), 2 * TALKERS * MESSAGES);
    SAME(atomic_load(&heard[1]) + atomic_load(&dropped), 2 * TALKERS * MESSAGES);
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return verdict();
}
