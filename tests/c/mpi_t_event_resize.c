/* A buffer gets another size by MPI_T_event_handle_set_info: what waits stays and is delivered in order, drops stay
 * exact down to one entry, none is at once, and what cannot be had changes nothing; from outside, from within
 * callbacks, and while threads raise events.
 * FLAGS: -pthread
 */
#include "mpi_t_event.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>

static int tags[256], seen, freed;
static long long dropped;
static MPI_Request sends[64], receives[64];
static int next, value, into[64], tag_of_elements;
static MPI_Info five;

static void on_event(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    MPI_Info *resize_to = data;
    (void)level;
    OK(MPI_T_event_read(instance, tag_of_elements, &tags[seen++ % 256]));
    if (resize_to) OK(MPI_T_event_handle_set_info(handle, *resize_to));
}

static void on_drop(MPI_Count count, MPI_T_event_registration handle, int source, MPI_T_cb_safety level, void *data)
{
    (void)handle, (void)source, (void)level, (void)data;
    dropped += count;
}

static void on_free(MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    (void)level, (void)data;
    OK(MPI_T_event_handle_set_info(handle, five)); /* too late for a buffer, and no error */
    freed++;
}

static int set(MPI_T_event_registration handle, const char *size)
{
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, size ? "perusal_event_buffer" : "somebody_elses_hint", size ? size : "x"));
    int code = MPI_T_event_handle_set_info(handle, info);
    OK(MPI_Info_free(&info));
    return code;
}

static void shows(MPI_T_event_registration handle, const char *size)
{
    MPI_Info info;
    char text[32];
    int flag = 0, len = sizeof text;
    OK(MPI_T_event_handle_get_info(handle, &info));
    OK(MPI_Info_get_string(info, "perusal_event_buffer", &len, text, &flag));
    CHECK(flag && strcmp(text, size) == 0);
    OK(MPI_Info_free(&info));
}

static void look_after(void)
{
    int flag;
    OK(MPI_Comm_test_inter(MPI_COMM_SELF, &flag));
}

/* Messages whose arrivals are all within one MPI function; their tags count up. */
static void burst(int count)
{
    int first = next;
    for (int i = 0; i < count; i++, next++) {
        OK(MPI_Irecv(&into[next], 1, MPI_INT, 0, next, MPI_COMM_SELF, &receives[next]));
        OK(MPI_Send_init(&value, 1, MPI_INT, 0, next, MPI_COMM_SELF, &sends[next]));
    }
    OK(MPI_Startall(count, &sends[first]));
}

static void bursts_end(void)
{
    OK(MPI_Waitall(next, receives, MPI_STATUSES_IGNORE));
    OK(MPI_Waitall(next, sends, MPI_STATUSES_IGNORE));
    while (next > 0) OK(MPI_Request_free(&sends[--next]));
    seen = freed = 0;
    dropped = 0;
}

static void delivered_are(int count, const int *expected)
{
    SAME(seen, count);
    for (int i = 0; i < count && i < seen; i++) SAME(tags[i], expected[i]);
}

static MPI_T_event_registration hear(int entries, void *data)
{
    MPI_Comm self = MPI_COMM_SELF;
    MPI_T_event_registration handle = handle_of(type_of("PERUSE_COMM_MSG_ARRIVED"), &self, entries);
    OK(MPI_T_event_set_dropped_handler(handle, on_drop));
    OK(MPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, MPI_INFO_NULL, data, on_event));
    return handle;
}

static void what_waits_stays_whatever_size_comes_next(void)
{
    MPI_T_event_registration handle = hear(3, NULL);
    burst(5); /* 0 1 2 wait; 3 and 4 are dropped */
    OK(set(handle, "1"));
    shows(handle, "1");
    SAME(seen, 0);
    /* No MPI function has begun since: nothing has been delivered, and the smaller buffer has room for one more. */
    OK(MPI_Startall(0, sends));
    SAME(seen, 3);
    SAME(dropped, 2);
    burst(3); /* 5; 6 and 7 are dropped */
    OK(set(handle, "4"));
    shows(handle, "4");
    look_after();
    int first[] = {0, 1, 2, 5};
    delivered_are(4, first);
    SAME(dropped, 4);
    burst(6); /* 8 9 10 11; two are dropped */
    OK(set(handle, "0"));
    shows(handle, "0");
    int second[] = {0, 1, 2, 5, 8, 9, 10, 11};
    delivered_are(8, second); /* before anything is delivered at once */
    SAME(dropped, 6);
    burst(2);
    int third[] = {0, 1, 2, 5, 8, 9, 10, 11, 14, 15};
    delivered_are(10, third);
    OK(set(handle, "2"));
    burst(3);
    SAME(seen, 10);
    OK(MPI_T_event_handle_free(handle, NULL, on_free));
    int fourth[] = {0, 1, 2, 5, 8, 9, 10, 11, 14, 15, 16, 17};
    delivered_are(12, fourth);
    SAME(dropped, 7);
    SAME(freed, 1);
    bursts_end();
}

static void sizes_one_after_the_other_lose_nothing_before_anything_is_delivered(void)
{
    MPI_T_event_registration handle = hear(2, NULL);
    /* Each size has its share; nothing is delivered meanwhile,
     * for only functions of MPI_T and one of MPI are called. */
    for (int i = 0; i < 12; i++) {
        OK(MPI_Irecv(&into[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &receives[i]));
        OK(MPI_Send_init(&value, 1, MPI_INT, 0, i, MPI_COMM_SELF, &sends[i]));
    }
    next = 12;
    for (int i = 0; i < 12; i += 4) {
        OK(MPI_Startall(4, &sends[i]));
        OK(set(handle, i % 8 ? "3" : "1"));
    }
    look_after();
    /* Two of 0 to 3; one of 4 to 7; three of 8 to 11. What MPI_Startall found waiting, it delivered before it began. */
    int expected[] = {0, 1, 4, 8, 9, 10};
    delivered_are(6, expected);
    SAME(dropped, 6);
    OK(MPI_T_event_handle_free(handle, NULL, on_free));
    SAME(freed, 1);
    bursts_end();
}

static void a_size_that_is_none_or_cannot_be_had_changes_nothing(void)
{
    struct rlimit limit, tight;
    MPI_T_event_registration handle = hear(3, NULL);
    OK(set(handle, NULL));
    OK(set(handle, "nonsense"));
    OK(MPI_T_event_handle_set_info(handle, MPI_INFO_NULL));
    shows(handle, "3");
    OK(set(handle, "999999999"));
    shows(handle, "1048576");
    OK(set(handle, "2"));
    getrlimit(RLIMIT_AS, &limit);
    tight = limit;
    tight.rlim_cur = 1 << 20;
    setrlimit(RLIMIT_AS, &tight);
    MPI_T_event_registration other;
    MPI_Info info = buffer_of(1 << 20);
    SAME(MPI_T_event_handle_set_info(handle, info), MPI_T_ERR_MEMORY);
    SAME(MPI_T_event_handle_alloc(type_of("PERUSE_COMM_MSG_ARRIVED_all"), NULL, info, &other), MPI_T_ERR_MEMORY);
    setrlimit(RLIMIT_AS, &limit);
    OK(MPI_Info_free(&info));
    shows(handle, "2");
    burst(3);
    look_after();
    SAME(seen, 2);
    SAME(dropped, 1);
    OK(MPI_T_event_handle_free(handle, NULL, NULL));
    SAME(set(handle, "3"), MPI_T_ERR_INVALID_HANDLE);
    bursts_end();
}

/* A callback changes its own handle, from a buffer and at once. */
static void a_callback_may_resize_its_own_handle(void)
{
    for (int from = 0; from < 5; from += 4)
        for (int to = 0; to < 4; to++) {
            MPI_Info info = buffer_of(to);
            MPI_T_event_registration handle = hear(from, &info);
            int raised = 0;
            for (int round = 0; round < 3; round++, raised += 3) {
                burst(3);
                look_after();
            }
            SAME(seen + dropped, raised);
            CHECK(seen >= 3);
            OK(MPI_T_event_handle_free(handle, NULL, on_free));
            SAME(freed, 1);
            OK(MPI_Info_free(&info));
            bursts_end();
        }
}

/* Threads raise events, and one changes the size all the time. */
enum { TALKERS = 2, MESSAGES = 4000 };
static atomic_llong heard[2], lost;
static atomic_int talking = TALKERS;

static void count(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    (void)instance, (void)handle, (void)level;
    atomic_fetch_add((atomic_llong *)data, 1);
}

static void count_drops(MPI_Count count, MPI_T_event_registration handle, int source, MPI_T_cb_safety level, void *data)
{
    (void)handle, (void)source, (void)level, (void)data;
    atomic_fetch_add(&lost, count);
}

static void *talk(void *data)
{
    for (int i = 0; i < MESSAGES; i++) {
        int in;
        MPI_Sendrecv(&i, 1, MPI_INT, 0, *(int *)data, &in, 1, MPI_INT, 0, *(int *)data, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    }
    atomic_fetch_sub(&talking, 1);
    return NULL;
}

static void accounts_hold_while_threads_raise_events(void)
{
    pthread_t talkers[TALKERS];
    int numbers[] = {1, 2};
    const char *sizes[] = {"1", "2", "0", "64", "1", "0", "3"};
    MPI_Comm self = MPI_COMM_SELF;
    int type = type_of("PERUSE_COMM_REQ_COMPLETE");
    MPI_T_event_registration whole = handle_of(type, &self, 0), changing = handle_of(type, &self, 1);
    OK(MPI_T_event_set_dropped_handler(changing, count_drops));
    OK(MPI_T_event_register_callback(whole, MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL, &heard[0], count));
    OK(MPI_T_event_register_callback(changing, MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL, &heard[1], count));
    for (int i = 0; i < TALKERS; i++) pthread_create(&talkers[i], NULL, talk, &numbers[i]);
    for (int i = 0; atomic_load(&talking) > 0; i++) OK(set(changing, sizes[i % 7]));
    for (int i = 0; i < TALKERS; i++) pthread_join(talkers[i], NULL);
    OK(MPI_T_event_handle_free(whole, NULL, NULL));
    OK(MPI_T_event_handle_free(changing, NULL, NULL));
    SAME(atomic_load(&heard[0]), 2 * TALKERS * MESSAGES);
    SAME(atomic_load(&heard[1]) + atomic_load(&lost), 2 * TALKERS * MESSAGES);
}

int main(int argc, char **argv)
{
    int provided;
    initialise_tools();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    SAME(provided, MPI_THREAD_MULTIPLE);
    five = buffer_of(5);
    tag_of_elements = element_of(type_of("PERUSE_COMM_MSG_ARRIVED"), "tag");
    what_waits_stays_whatever_size_comes_next();
    sizes_one_after_the_other_lose_nothing_before_anything_is_delivered();
    a_size_that_is_none_or_cannot_be_had_changes_nothing();
    a_callback_may_resize_its_own_handle();
    accounts_hold_while_threads_raise_events();
    OK(MPI_Info_free(&five));
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return verdict();
}
