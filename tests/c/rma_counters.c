/* What performance variables count of windows, and how a window reaches memory:
 * by loads and stores, system calls or messages.
 * RANKS: 2
 */
#include "mpi_t_counter.h"
#include <unistd.h>

static MPI_T_pvar_handle of_class(const char *name, int class)
{
    int index, count;
    MPI_T_pvar_handle handle;
    OK(MPI_T_pvar_get_index(name, class, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
    OK(MPI_T_pvar_start(session, handle));
    return handle;
}

static int reach_of(MPI_Win win)
{
    int index, count, value = -1;
    MPI_T_pvar_handle handle;
    OK(MPI_T_pvar_get_index("window_reach", MPI_T_PVAR_CLASS_STATE, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, &win, &handle, &count));
    OK(MPI_T_pvar_read(session, handle, &value));
    OK(MPI_T_pvar_handle_free(session, &handle));
    return value;
}

static const char *name_of(int reach)
{
    static char name[64];
    int length = sizeof name, value, index;
    MPI_T_enum names;
    OK(MPI_T_pvar_get_index("window_reach", MPI_T_PVAR_CLASS_STATE, &index));
    OK(MPI_T_pvar_get_info(index, NULL, NULL, NULL, NULL, NULL, &names, NULL, NULL, NULL, NULL, NULL, NULL));
    OK(MPI_T_enum_get_item(names, reach, &value, name, &length));
    return name;
}

/* In rank 0's memory, which both map: rank 1 waits for a lock. */
static volatile long *waiting;

static void on_wait(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    (void)instance, (void)handle, (void)level, (void)data;
    *waiting = 1;
}

int main(int argc, char **argv)
{
    static long own[16], values[16];
    int provided, rank, index, count, unit;
    MPI_Aint size;
    void *shared;
    MPI_T_event_registration event;
    long *base;
    MPI_Win win, private;
    MPI_T_pvar_handle handle;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    OK(MPI_T_pvar_session_create(&session));
    OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_create(own, sizeof own, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &private));

    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(values, 2, MPI_LONG, 1 - rank, 0, 2, MPI_LONG, win));
    MPI_T_pvar_handle puts = counter("puts"), gets = counter("gets"), accumulates = counter("accumulates");
    MPI_T_pvar_handle bytes = of_class("bytes_put", MPI_T_PVAR_CLASS_AGGREGATE);
    MPI_T_pvar_handle got = of_class("bytes_got", MPI_T_PVAR_CLASS_AGGREGATE);
    MPI_T_pvar_handle combined = of_class("bytes_accumulated", MPI_T_PVAR_CLASS_AGGREGATE);
    MPI_T_pvar_handle waits = counter("window_lock_waits"), calls = counter("window_synchronizations");
    MPI_T_pvar_handle waited = of_class("time_waiting_for_locks", MPI_T_PVAR_CLASS_TIMER);
    SAME(read_of(puts), 0);
    OK(MPI_Put(values, 2, MPI_LONG, 1 - rank, 0, 2, MPI_LONG, win));
    OK(MPI_Put(values, 1, MPI_LONG, 1 - rank, 0, 1, MPI_LONG, win));
    OK(MPI_Get(values, 4, MPI_LONG, 1 - rank, 0, 4, MPI_LONG, win));
    OK(MPI_Accumulate(values, 1, MPI_LONG, 1 - rank, 0, 1, MPI_LONG, MPI_SUM, win));
    SAME(read_of(puts), 2);
    SAME(read_of(gets), 1);
    SAME(read_of(accumulates), 1);
    SAME(read_of(bytes), 24);
    SAME(read_of(got), 32);
    SAME(read_of(combined), 8);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    SAME(read_of(calls), 1);

    /* Rank 1 waits for a lock that rank 0 holds. */
    base[7] = 0;
    OK(MPI_Win_shared_query(win, 0, &size, &unit, &shared));
    waiting = (long *)shared + 7;
    OK(MPI_T_event_get_index("PERUSAL_WIN_LOCK_WAIT_BEGIN", &index));
    OK(MPI_T_event_handle_alloc(index, &win, MPI_INFO_NULL, &event));
    OK(MPI_T_event_register_callback(event, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, MPI_INFO_NULL, NULL, on_wait));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        while (!*waiting) usleep(1000);
        usleep(20000);
    }
    if (rank == 1) OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    OK(MPI_Win_unlock(0, win));
    OK(MPI_T_event_handle_free(event, NULL, NULL));
    SAME(read_of(waits), rank);
    double seconds = -1;
    OK(MPI_T_pvar_read(session, waited, &seconds));
    if (rank == 1) CHECK(seconds > 0.01 && seconds < 60);
    if (rank == 0) CHECK(seconds == 0);

    /* Accumulates of several values take locks, and find them taken, sooner or later. */
    MPI_T_pvar_handle taken = counter("accumulate_lock_waits");
    MPI_T_pvar_handle longest = of_class("time_waiting_for_accumulate_locks", MPI_T_PVAR_CLASS_TIMER);
    OK(MPI_Win_lock_all(0, win));
    for (unsigned long all = 0; all == 0;) {
        for (int i = 0; i < 1000; i++) OK(MPI_Accumulate(values, 8, MPI_LONG, 0, 0, 8, MPI_LONG, MPI_SUM, win));
        unsigned long now = (unsigned long)read_of(taken);
        OK(MPI_Allreduce(&now, &all, 1, MPI_UNSIGNED_LONG, MPI_SUM, MPI_COMM_WORLD));
        OK(MPI_T_pvar_read(session, longest, &seconds));
        CHECK(now == 0 ? seconds == 0 : seconds > 0);
    }
    OK(MPI_Win_unlock_all(win));

    /* A stopped handle counts nothing more. */
    OK(MPI_T_pvar_stop(session, puts));
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Put(values, 1, MPI_LONG, 1 - rank, 0, 1, MPI_LONG, win));
    OK(MPI_Win_unlock_all(win));
    SAME(read_of(puts), 2);

    SAME(strcmp(name_of(reach_of(win)), "loads_and_stores"), 0);
    const char *how = name_of(reach_of(private));
    CHECK(!strcmp(how, "process_vm") || !strcmp(how, "messages"));
    const char *engine = getenv("PERUSAL_COPY_ENGINE");
    if (engine && !strcmp(engine, "chunks")) SAME(strcmp(how, "messages"), 0);
    MPI_Win gone = win;
    OK(MPI_T_pvar_get_index("window_reach", MPI_T_PVAR_CLASS_STATE, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, &win, &handle, &count));
    OK(MPI_Win_free(&win));
    SAME(MPI_T_pvar_read(session, handle, &index), MPI_T_ERR_INVALID_HANDLE);
    OK(MPI_T_pvar_handle_free(session, &handle));
    OK(MPI_T_pvar_get_index("window_reach", MPI_T_PVAR_CLASS_STATE, &index));
    SAME(MPI_T_pvar_handle_alloc(session, index, &gone, &handle, &count), MPI_T_ERR_INVALID_HANDLE);
    OK(MPI_Win_free(&private));
    OK(MPI_T_pvar_session_free(&session));
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return failures != 0;
}
