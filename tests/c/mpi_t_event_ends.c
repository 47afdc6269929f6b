/* How handles end: freed by their own callback, at once and from a buffer; with what waits delivered before the free
 * callback, drops reported before later events; two tools with the same types;
 * and functions for a safe place that call MPI themselves.
 */
#include "mpi_t_event.h"

static int seen, freed, dropped, order[64], orders;
static MPI_T_cb_safety free_level, drop_level, event_level;
enum { SEEN = 1, DROPPED, FREED };

static void note(int what)
{
    if (orders < 64) order[orders++] = what;
}

static void begin(void)
{
    seen = freed = dropped = orders = 0;
    free_level = drop_level = event_level = -1;
}

static void on_event(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    (void)instance, (void)handle, (void)data;
    CHECK(freed == 0);
    seen++;
    event_level = level;
    note(SEEN);
}

static void on_free(MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    CHECK(data == &freed);
    /* The handle is there until this returns. */
    OK(MPI_T_event_handle_set_info(handle, MPI_INFO_NULL));
    freed++;
    free_level = level;
    note(FREED);
}

static void on_drop(MPI_Count count, MPI_T_event_registration handle, int source, MPI_T_cb_safety level, void *data)
{
    (void)handle, (void)source, (void)data;
    CHECK(freed == 0);
    dropped += (int)count;
    drop_level = level;
    note(DROPPED);
}

static void free_oneself(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    int tag = -1;
    on_event(instance, handle, level, data);
    if (seen == 1) {
        OK(MPI_T_event_handle_free(handle, &freed, on_free));
        SAME(freed, 0); /* not before this has returned */
        SAME(MPI_T_event_handle_free(handle, &freed, on_free), MPI_T_ERR_INVALID_HANDLE);
        OK(MPI_T_event_read(instance, element_of(type_of("PERUSE_COMM_MSG_ARRIVED"), "tag"), &tag));
        SAME(tag, 5);
    }
}

static void messages(int count)
{
    for (int i = 0; i < count; i++) {
        int out = 7, in = 0;
        MPI_Request request;
        OK(MPI_Irecv(&in, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &request));
        OK(MPI_Send(&out, 1, MPI_INT, 0, 5, MPI_COMM_SELF));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
}

static void look_after(void)
{
    int flag;
    OK(MPI_Comm_test_inter(MPI_COMM_SELF, &flag));
}

static int arrived(void) { return type_of("PERUSE_COMM_MSG_ARRIVED"); }

static void a_handle_frees_itself(int entries)
{
    MPI_Comm self = MPI_COMM_SELF;
    begin();
    listen_to(arrived(), &self, entries, free_oneself, NULL);
    messages(1);
    look_after();
    SAME(seen, 1);
    SAME(freed, 1);
    SAME(free_level, entries ? MPI_T_CB_REQUIRE_NONE : MPI_T_CB_REQUIRE_MPI_RESTRICTED);
    messages(2);
    look_after();
    SAME(seen, 1);
}

static MPI_Request pending[64];
static int sends, receives, into[64], out = 3;

/* Messages that all come within one MPI function: what they raise waits until the next one begins. */
static void burst(int count)
{
    for (int i = 0; i < count; i++) OK(MPI_Send_init(&out, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &pending[sends + i]));
    for (int i = 0; i < count; i++, receives++)
        OK(MPI_Irecv(&into[receives], 1, MPI_INT, 0, 5, MPI_COMM_SELF, &pending[32 + receives]));
    look_after();
    OK(MPI_Startall(count, &pending[sends]));
    sends += count;
}

static void bursts_end(void)
{
    OK(MPI_Waitall(receives, &pending[32], MPI_STATUSES_IGNORE));
    OK(MPI_Waitall(sends, pending, MPI_STATUSES_IGNORE));
    while (sends > 0) OK(MPI_Request_free(&pending[--sends]));
    receives = 0;
}

static void what_waits_is_delivered_before_the_end(void)
{
    MPI_Comm self = MPI_COMM_SELF;
    begin();
    MPI_T_event_registration handle = handle_of(arrived(), &self, 3);
    OK(MPI_T_event_set_dropped_handler(handle, on_drop));
    OK(MPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, on_event));
    burst(5);
    SAME(seen, 0); /* five have been raised, three wait */
    OK(MPI_T_event_handle_free(handle, &freed, on_free));
    SAME(seen, 3);
    SAME(dropped, 2);
    SAME(freed, 1);
    SAME(event_level, MPI_T_CB_REQUIRE_NONE);
    SAME(drop_level, MPI_T_CB_REQUIRE_NONE);
    SAME(free_level, MPI_T_CB_REQUIRE_NONE);
    int expected[] = {DROPPED, SEEN, SEEN, SEEN, FREED};
    SAME(orders, 5);
    SAME(memcmp(order, expected, sizeof expected), 0);
    bursts_end();
}

static void drops_are_reported_before_later_events_and_to_the_handler_of_their_time(void)
{
    MPI_Comm self = MPI_COMM_SELF;
    begin();
    MPI_T_event_registration handle = handle_of(arrived(), &self, 1);
    OK(MPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, on_event));
    burst(4); /* nobody asks for drops: they are not recorded */
    OK(MPI_T_event_set_dropped_handler(handle, on_drop));
    look_after();
    SAME(seen, 1);
    SAME(dropped, 0);
    burst(4);
    OK(MPI_T_event_set_dropped_handler(handle, NULL));
    SAME(dropped, 3); /* the handler that leaves gets what is its own */
    look_after();
    SAME(seen, 2);
    burst(4);
    OK(MPI_T_event_set_dropped_handler(handle, on_drop));
    burst(2);
    look_after();
    OK(MPI_T_event_handle_free(handle, &freed, on_free));
    SAME(dropped, 4);
    SAME(freed, 1);
    bursts_end();
}

static void events_without_a_function_for_their_level_are_dropped_and_reported_from_a_safe_place(void)
{
    MPI_Comm self = MPI_COMM_SELF;
    begin();
    MPI_T_event_registration handle = handle_of(arrived(), &self, 0);
    OK(MPI_T_event_set_dropped_handler(handle, on_drop));
    OK(MPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, on_event));
    messages(3);
    look_after();
    SAME(seen, 0);
    SAME(dropped, 3);
    SAME(drop_level, MPI_T_CB_REQUIRE_NONE);
    OK(MPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL, NULL, on_event));
    messages(2);
    SAME(seen, 2);
    SAME(event_level, MPI_T_CB_REQUIRE_MPI_RESTRICTED);
    OK(MPI_T_event_handle_free(handle, &freed, on_free));
    SAME(dropped, 3);
    SAME(freed, 1);
}

static int nested;

static void send_a_message(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    int tag = -1, element = *(int *)data;
    (void)handle;
    SAME(level, MPI_T_CB_REQUIRE_NONE);
    seen++;
    if (nested++ < 3) messages(1);
    OK(MPI_T_event_read(instance, element, &tag));
    SAME(tag, 5);
}

static void a_function_at_a_safe_place_may_call_mpi(void)
{
    MPI_Comm self = MPI_COMM_SELF;
    int tag = element_of(arrived(), "tag");
    begin();
    nested = 0;
    MPI_T_event_registration handle = listen_to(arrived(), &self, 8, send_a_message, &tag);
    messages(1);
    for (int i = 0; i < 8; i++) look_after();
    SAME(seen, 4); /* the message and the three that it led to */
    OK(MPI_T_event_handle_free(handle, &freed, on_free));
    SAME(freed, 1);
}

static int mpi_in_callback = -1;

static void call_mpi(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    int flag;
    on_event(instance, handle, level, data);
    mpi_in_callback = MPI_Op_commutative(MPI_SUM, &flag);
}

static void where_events_happen_mpi_refuses_to_be_called(void)
{
    MPI_Comm self = MPI_COMM_SELF;
    begin();
    MPI_T_event_registration handle = listen_to(arrived(), &self, 0, call_mpi, NULL);
    messages(1);
    SAME(seen, 1);
    CHECK(mpi_in_callback != MPI_SUCCESS && mpi_in_callback != -1);
    OK(MPI_T_event_handle_free(handle, NULL, NULL));
}

/* Two tools with overlapping sets of types: neither knows of the other, each hears everything of its own. */
static void count(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    (void)instance, (void)handle, (void)level;
    ++*(int *)data;
}

static void two_tools_hear_the_same(void)
{
    enum { EACH = 24, FIRST = 17, LATER = 9 };
    static int counts[2][EACH];
    MPI_T_event_registration handles[2][EACH];
    MPI_Comm self = MPI_COMM_SELF;
    initialise_tools(); /* the second tool */
    memset(counts, 0, sizeof counts);
    for (int tool = 0; tool < 2; tool++)
        for (int i = 0; i < EACH; i++)
            handles[tool][i] = listen_to(tool ? i + LATER : i, &self, tool && i % 2 ? 100 : 0, count, &counts[tool][i]);
    messages(5);
    OK(MPI_Barrier(MPI_COMM_SELF));
    look_after();
    int together = 0;
    for (int i = 0; i < EACH - LATER; i++) {
        SAME(counts[1][i], counts[0][i + LATER]);
        together += counts[1][i];
    }
    CHECK(together > 0);
    /* The first tool goes; the second goes on. */
    int before = counts[0][type_of("PERUSE_COMM_MSG_ARRIVED_all")];
    for (int i = 0; i < EACH; i++) OK(MPI_T_event_handle_free(handles[0][i], NULL, NULL));
    OK(MPI_T_finalize());
    messages(5);
    look_after();
    SAME(counts[0][type_of("PERUSE_COMM_MSG_ARRIVED_all")], before);
    CHECK(counts[1][type_of("PERUSE_COMM_MSG_MATCH_POSTED_REQ_all") - LATER] == 10);
    for (int i = 0; i < EACH; i++) OK(MPI_T_event_handle_free(handles[1][i], NULL, NULL));
}

int main(int argc, char **argv)
{
    initialise_tools();
    OK(MPI_Init(&argc, &argv));
    errors_return();
    a_handle_frees_itself(0);
    a_handle_frees_itself(4);
    what_waits_is_delivered_before_the_end();
    drops_are_reported_before_later_events_and_to_the_handler_of_their_time();
    events_without_a_function_for_their_level_are_dropped_and_reported_from_a_safe_place();
    a_function_at_a_safe_place_may_call_mpi();
    where_events_happen_mpi_refuses_to_be_called();
    two_tools_hear_the_same();
    /* A handle that is left at the last MPI_T_finalize is freed, and no function is called any more. */
    begin();
    MPI_Comm self = MPI_COMM_SELF;
    listen_to(arrived(), &self, 0, on_event, NULL);
    listen_to(arrived(), &self, 9, on_event, NULL);
    burst(1);
    SAME(seen, 1);
    OK(MPI_T_finalize());
    SAME(seen, 2); /* what waited was delivered */
    bursts_end();
    messages(1);
    SAME(seen, 2);
    OK(MPI_Finalize());
    return verdict();
}
