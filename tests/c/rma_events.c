/* Events of windows: tables 4 and 5 of the paper on MPI_T events, each where the paper puts it, and what they say.
 * RANKS: 2 3
 */
#include "mpi_t_event.h"

enum { MOST = 64, WORDS = 64, RUNS = 4 };

typedef struct {
    const char *name;
    int times, target;
    uint64_t remote, size;
} event_t;

/* In the paper's order. */
static event_t events[] = {
    {"osc_rdma_lock_acquired", 0, 0, 0, 0},        {"osc_rdma_lock_released", 0, 0, 0, 0},
    {"osc_rdma_put_started", 0, 0, 0, 0},          {"osc_rdma_put_complete", 0, 0, 0, 0},
    {"osc_rdma_get_started", 0, 0, 0, 0},          {"osc_rdma_get_complete", 0, 0, 0, 0},
    {"osc_rdma_flush_started", 0, 0, 0, 0},        {"osc_rdma_flush_complete", 0, 0, 0, 0},
    {"osc_rdma_pscw_expose_start", 0, 0, 0, 0},    {"osc_rdma_pscw_expose_complete", 0, 0, 0, 0},
    {"osc_rdma_pscw_access_start", 0, 0, 0, 0},    {"osc_rdma_pscw_access_complete", 0, 0, 0, 0},
    {"osc_rdma_rdma_fence", 0, 0, 0, 0},
};
enum { ACQUIRED, RELEASED, PUT, PUT_OVER, GET, GET_OVER, FLUSH, FLUSH_OVER, EXPOSE, EXPOSED, ACCESS, ACCESSED, FENCE, TYPES };
/* The types in the order in which they happened. */
static int order[MOST], happened;

static void on_event(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    event_t *of = data;
    int which = (int)(of - events);
    (void)handle, (void)level;
    of->times++;
    if (happened < MOST) order[happened++] = which;
    if (which != EXPOSE && which != EXPOSED && which != FENCE) OK(MPI_T_event_read(instance, 0, &of->target));
    if (which >= PUT && which <= GET_OVER) {
        OK(MPI_T_event_read(instance, 1, &of->remote));
        OK(MPI_T_event_read(instance, 2, &of->size));
    }
}

static int net_operation;
static uint32_t net_target;
static uint64_t net_size, net_local, net_remote;
static int net_times;

static void on_network(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    (void)handle, (void)level, (void)data;
    net_times++;
    OK(MPI_T_event_read(instance, 0, &net_operation));
    OK(MPI_T_event_read(instance, 1, &net_target));
    OK(MPI_T_event_read(instance, 2, &net_size));
    OK(MPI_T_event_read(instance, 3, &net_local));
    OK(MPI_T_event_read(instance, 4, &net_remote));
}

/* What happened since the last time, and nothing else. */
static void expect(const char *where, const int *wanted, int count)
{
    int same = happened == count;
    for (int i = 0; same && i < count; i++) same = order[i] == wanted[i];
    if (!same) {
        fprintf(stderr, "%s:", where);
        for (int i = 0; i < happened; i++) fprintf(stderr, " %s", events[order[i]].name);
        fprintf(stderr, "\n");
        failures++;
    }
    happened = 0;
}
#define EXPECT(where, ...) expect(where, (int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / sizeof(int))

int main(int argc, char **argv)
{
    MPI_T_event_registration handles[TYPES], network;
    MPI_Win win, other;
    long *base, *unused, values[WORDS] = {0}, result;
    uint64_t bases[8], mine;
    int rank, size;
    MPI_Group world, left, right;
    MPI_Datatype strided;
    initialise_tools();
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_Win_allocate(WORDS * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &unused, &other));
    mine = (uintptr_t)base;
    OK(MPI_Allgather(&mine, 8, MPI_BYTE, bases, 8, MPI_BYTE, MPI_COMM_WORLD));
    OK(MPI_Type_vector(RUNS, 2, 4, MPI_LONG, &strided));
    OK(MPI_Type_commit(&strided));
    int next = (rank + 1) % size, before = (rank + size - 1) % size;

    for (int i = 0; i < TYPES; i++) {
        int type = type_of(events[i].name);
        SAME(bind_of(type), MPI_T_BIND_MPI_WIN);
        handles[i] = listen_to(type, &win, 0, on_event, &events[i]);
    }
    int net = type_of("btl_ugni_event_netop_rdma");
    SAME(bind_of(net), MPI_T_BIND_NO_OBJECT);
    network = listen_to(net, NULL, 0, on_network, NULL);

    /* Fences: an epoch begins at each but the last. */
    OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    EXPECT("fence", FENCE);
    OK(MPI_Put(values, 3, MPI_LONG, next, 5, 3, MPI_LONG, win));
    EXPECT("put", PUT, PUT_OVER);
    SAME(events[PUT].target, next);
    SAME(events[PUT].size, 3 * sizeof(long));
    SAME(events[PUT].remote, bases[next] + 5 * sizeof(long));
    SAME(events[PUT_OVER].remote, events[PUT].remote);
    SAME(net_times, 1);
    SAME(net_operation, 0);
    SAME(net_target, (uint32_t)next);
    SAME(net_size, 3 * sizeof(long));
    SAME(net_local, (uint64_t)(uintptr_t)values);
    SAME(net_remote, events[PUT].remote);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    EXPECT("last fence");

    /* Locks; a get of a strided type is one operation a region. */
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win));
    EXPECT("lock", ACQUIRED);
    SAME(events[ACQUIRED].target, next);
    OK(MPI_Get(values, 2 * RUNS, MPI_LONG, next, 1, 1, strided, win));
    EXPECT("strided get", GET, GET, GET, GET, GET_OVER, GET_OVER, GET_OVER, GET_OVER);
    SAME(events[GET_OVER].size, 2 * sizeof(long));
    SAME(events[GET_OVER].remote, bases[next] + (1 + 4 * (RUNS - 1)) * sizeof(long));
    SAME(net_times, 1 + RUNS);
    SAME(net_operation, 1);
    SAME(net_local, (uint64_t)(uintptr_t)(values + 2 * (RUNS - 1)));
    OK(MPI_Win_flush(next, win));
    EXPECT("flush", FLUSH, FLUSH_OVER);
    SAME(events[FLUSH].target, next);
    OK(MPI_Win_flush_all(win));
    EXPECT("flush_all", FLUSH, FLUSH_OVER);
    SAME(events[FLUSH_OVER].target, -1);
    OK(MPI_Win_unlock(next, win));
    EXPECT("unlock", RELEASED);
    SAME(events[RELEASED].target, next);

    /* What accumulates is no put and no get, but an operation on the network. */
    OK(MPI_Win_lock_all(0, win));
    EXPECT("lock_all", ACQUIRED);
    SAME(events[ACQUIRED].target, -1);
    OK(MPI_Accumulate(values, 2, MPI_LONG, next, 0, 2, MPI_LONG, MPI_SUM, win));
    SAME(net_operation, 2);
    OK(MPI_Get_accumulate(values, 2, MPI_LONG, values + 8, 2, MPI_LONG, next, 0, 2, MPI_LONG, MPI_SUM, win));
    SAME(net_operation, 3);
    OK(MPI_Fetch_and_op(values, &result, MPI_LONG, next, 0, MPI_SUM, win));
    SAME(net_operation, 4);
    OK(MPI_Compare_and_swap(values, values, &result, MPI_LONG, next, 0, win));
    SAME(net_operation, 5);
    SAME(net_size, sizeof(long));
    SAME(net_times, 1 + RUNS + 4);
    OK(MPI_Win_unlock_all(win));
    EXPECT("unlock_all", RELEASED);
    SAME(events[RELEASED].target, -1);

    /* Post, start, complete, wait: this rank exposes itself to the one before it, and accesses the next. */
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 1, &before, &left));
    OK(MPI_Group_incl(world, 1, &next, &right));
    OK(MPI_Win_post(left, 0, win));
    EXPECT("post", EXPOSE);
    OK(MPI_Win_start(right, 0, win));
    EXPECT("start", ACCESS);
    SAME(events[ACCESS].target, next);
    OK(MPI_Put(values, 1, MPI_LONG, next, 0, 1, MPI_LONG, win));
    EXPECT("put", PUT, PUT_OVER);
    OK(MPI_Win_complete(win));
    EXPECT("complete", ACCESSED);
    SAME(events[ACCESSED].target, next);
    OK(MPI_Win_wait(win));
    EXPECT("wait", EXPOSED);

    /* Another window's events are not this one's; nothing comes from a call that is an error. */
    OK(MPI_Win_fence(0, other));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    CHECK(MPI_Put(values, 1, MPI_LONG, next, 0, 1, MPI_LONG, win) != MPI_SUCCESS);
    CHECK(MPI_Win_unlock(next, win) != MPI_SUCCESS);
    EXPECT("neither");

    /* Handles end; without them the events are over. */
    for (int i = 0; i < TYPES; i++) OK(MPI_T_event_handle_free(handles[i], NULL, NULL));
    OK(MPI_T_event_handle_free(network, NULL, NULL));
    OK(MPI_Win_fence(0, win));
    EXPECT("nobody listens");
    MPI_Win gone = win;
    OK(MPI_Type_free(&strided));
    OK(MPI_Group_free(&left));
    OK(MPI_Group_free(&right));
    OK(MPI_Group_free(&world));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, other));
    OK(MPI_Win_free(&win));
    OK(MPI_Win_free(&other));
    MPI_T_event_registration handle;
    SAME(MPI_T_event_handle_alloc(type_of(events[0].name), &gone, MPI_INFO_NULL, &handle), MPI_T_ERR_INVALID_HANDLE);
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return failures != 0;
}
