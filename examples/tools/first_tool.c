/* first_tool: says of every rank how many messages came before their receives, how long they lay there,
 * and whose message lay longest.
 *
 *   mpicc -shared -fPIC examples/tools/first_tool.c -o libfirst_tool.so
 *   mpiexec -n 2 -x LD_PRELOAD=$PWD/libfirst_tool.so ./program
 *
 * docs/first-tool.md explains it line by line. */
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

/* A message that lies in the unexpected queue: its id, and since when.
 * Those that find their place taken are not timed. */
enum { PLACES = 4096 };
static struct {
    uint64_t id;
    MPI_Count since;
} waiting[PLACES];

static long long messages;
static MPI_Count total, longest;
static int slowest = -1;
/* With MPI_THREAD_MULTIPLE several threads may be called at once. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* One event type that we listen to, and where the elements stand that we read. */
struct watch {
    const char *name;
    int id, peer;
    MPI_T_event_registration handle;
};
static struct watch arrival = {.name = "PERUSE_COMM_MSG_INSERT_IN_UNEX_Q_all"};
static struct watch departure = {.name = "PERUSE_COMM_MSG_REMOVE_FROM_UNEX_Q_all"};

static void on_arrival(MPI_T_event_instance event, MPI_T_event_registration handle, MPI_T_cb_safety safety, void *data)
{
    const struct watch *watch = data;
    uint64_t id;
    MPI_Count now;
    (void)handle, (void)safety;
    MPI_T_event_read(event, watch->id, &id);
    MPI_T_event_get_timestamp(event, &now);
    pthread_mutex_lock(&lock);
    messages++;
    if (waiting[id % PLACES].id == 0) {
        waiting[id % PLACES].id = id;
        waiting[id % PLACES].since = now;
    }
    pthread_mutex_unlock(&lock);
}

static void on_departure(MPI_T_event_instance event, MPI_T_event_registration handle, MPI_T_cb_safety safety, void *data)
{
    const struct watch *watch = data;
    uint64_t id;
    int peer;
    MPI_Count now;
    (void)handle, (void)safety;
    MPI_T_event_read(event, watch->id, &id);
    MPI_T_event_read(event, watch->peer, &peer);
    MPI_T_event_get_timestamp(event, &now);
    pthread_mutex_lock(&lock);
    if (waiting[id % PLACES].id == id) {
        MPI_Count lay = now - waiting[id % PLACES].since;
        waiting[id % PLACES].id = 0;
        total += lay;
        if (lay > longest) {
            longest = lay;
            slowest = peer;
        }
    }
    pthread_mutex_unlock(&lock);
}

/* The place of an element, by the name that the type's enumeration gives it. */
static int element(MPI_T_enum names, const char *wanted)
{
    int num = 0;
    MPI_T_enum_get_info(names, &num, NULL, NULL);
    for (int i = 0; i < num; i++) {
        char name[64];
        int value, length = sizeof name;
        MPI_T_enum_get_item(names, i, &value, name, &length);
        const char *a = name, *b = wanted;
        while (*a && *a == *b) a++, b++;
        if (*a == *b) return value;
    }
    return -1;
}

static int listen_to(struct watch *watch, MPI_T_event_cb_function *callback)
{
    int index;
    MPI_T_enum names;
    if (MPI_T_event_get_index(watch->name, &index) != MPI_SUCCESS) return 0;
    MPI_T_event_get_info(index, NULL, NULL, NULL, NULL, NULL, NULL, &names, NULL, NULL, NULL, NULL);
    watch->id = element(names, "id");
    watch->peer = element(names, "peer");
    if (watch->id < 0 || watch->peer < 0) return 0;
    if (MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &watch->handle) != MPI_SUCCESS) return 0;
    return MPI_T_event_register_callback(watch->handle, MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL, watch, callback) == MPI_SUCCESS;
}

/* Runs when the library is loaded: before main, long before MPI_Init. */
__attribute__((constructor)) static void begin(void)
{
    int provided;
    if (MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS) return;
    if (!listen_to(&arrival, on_arrival) || !listen_to(&departure, on_departure))
        fprintf(stderr, "first_tool: this MPI does not have the events %s and %s\n", arrival.name, departure.name);
}

/* The program's MPI_Finalize comes here first. */
int MPI_Finalize(void)
{
    int rank;
    MPI_Count ticks = 1;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_T_source_get_info(0, NULL, NULL, NULL, NULL, NULL, &ticks, NULL, NULL);
    MPI_T_event_handle_free(arrival.handle, NULL, NULL);
    MPI_T_event_handle_free(departure.handle, NULL, NULL);
    MPI_T_finalize();
    printf("first_tool rank=%d early=%lld total_us=%.1f longest_us=%.1f from=%d\n", rank, messages, 1e6 * total / ticks,
           1e6 * longest / ticks, slowest);
    fflush(stdout);
    return PMPI_Finalize();
}
