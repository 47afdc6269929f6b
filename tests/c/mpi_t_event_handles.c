/* Registration handles: made, given functions for levels, asked about, freed; and every misuse, none of which is fatal
 * though errors of MPI calls are.
 */
#include "mpi_t_event.h"

static int seen, freed;
static MPI_T_cb_safety last_level;
static void *last_data;

static void on_event(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    (void)instance, (void)handle;
    seen++;
    last_level = level;
    last_data = data;
}

static void on_free(MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    (void)level;
    freed++;
    last_data = data;
    /* The handle is there until this returns, but cannot be freed again. */
    SAME(MPI_T_event_handle_free(handle, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
}

static void message_to_oneself(MPI_Comm comm)
{
    int out = 7, in = 0;
    MPI_Request request;
    OK(MPI_Irecv(&in, 1, MPI_INT, 0, 5, comm, &request));
    OK(MPI_Send(&out, 1, MPI_INT, 0, 5, comm));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    SAME(in, 7);
}

static void invalid_handles_and_arguments(void)
{
    MPI_T_event_registration handle = handle_of(0, NULL, 0), nobody[] = {NULL, (MPI_T_event_registration)0x1, NULL};
    MPI_Info info, no_info = (MPI_Info)0x7fffff;
    int number = 0;
    nobody[2] = (MPI_T_event_registration)&number;
    for (int i = 0; i < 3; i++) {
        SAME(MPI_T_event_handle_set_info(nobody[i], MPI_INFO_NULL), MPI_T_ERR_INVALID_HANDLE);
        SAME(MPI_T_event_handle_get_info(nobody[i], &info), MPI_T_ERR_INVALID_HANDLE);
        SAME(MPI_T_event_register_callback(nobody[i], MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, on_event),
             MPI_T_ERR_INVALID_HANDLE);
        SAME(MPI_T_event_callback_set_info(nobody[i], MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL), MPI_T_ERR_INVALID_HANDLE);
        SAME(MPI_T_event_callback_get_info(nobody[i], MPI_T_CB_REQUIRE_NONE, &info), MPI_T_ERR_INVALID_HANDLE);
        SAME(MPI_T_event_set_dropped_handler(nobody[i], NULL), MPI_T_ERR_INVALID_HANDLE);
        SAME(MPI_T_event_handle_free(nobody[i], NULL, on_free), MPI_T_ERR_INVALID_HANDLE);
    }
    SAME(freed, 0);
    MPI_T_event_registration other;
    MPI_Comm no_comm = MPI_COMM_NULL, stale = (MPI_Comm)0x123456;
    int bound = type_of("PERUSE_COMM_MSG_ARRIVED");
    SAME(bind_of(bound), MPI_T_BIND_MPI_COMM);
    SAME(MPI_T_event_handle_alloc(-1, NULL, MPI_INFO_NULL, &other), MPI_T_ERR_INVALID_INDEX);
    SAME(MPI_T_event_handle_alloc(types(), NULL, MPI_INFO_NULL, &other), MPI_T_ERR_INVALID_INDEX);
    SAME(MPI_T_event_handle_alloc(0, NULL, MPI_INFO_NULL, NULL), MPI_T_ERR_INVALID);
    SAME(MPI_T_event_handle_alloc(0, NULL, no_info, &other), MPI_T_ERR_INVALID);
    SAME(MPI_T_event_handle_alloc(bound, NULL, MPI_INFO_NULL, &other), MPI_T_ERR_INVALID);
    SAME(MPI_T_event_handle_alloc(bound, &no_comm, MPI_INFO_NULL, &other), MPI_T_ERR_INVALID_HANDLE);
    SAME(MPI_T_event_handle_alloc(bound, &stale, MPI_INFO_NULL, &other), MPI_T_ERR_INVALID_HANDLE);
    SAME(MPI_T_event_handle_set_info(handle, no_info), MPI_T_ERR_INVALID);
    SAME(MPI_T_event_handle_get_info(handle, NULL), MPI_T_ERR_INVALID);
    for (int level = -1; level < 70; level++)
        if (level != 0 && level != 3 && level != 15 && level != 63) {
            SAME(MPI_T_event_register_callback(handle, level, MPI_INFO_NULL, NULL, on_event), MPI_T_ERR_INVALID);
            SAME(MPI_T_event_callback_get_info(handle, level, &info), MPI_T_ERR_INVALID);
            SAME(MPI_T_event_callback_set_info(handle, level, MPI_INFO_NULL), MPI_T_ERR_INVALID);
        }
    SAME(MPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_NONE, no_info, NULL, on_event), MPI_T_ERR_INVALID);
    /* No function has been registered for the level yet. */
    SAME(MPI_T_event_callback_get_info(handle, MPI_T_CB_REQUIRE_NONE, &info), MPI_T_ERR_INVALID);
    OK(MPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, on_event));
    OK(MPI_T_event_callback_set_info(handle, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL));
    SAME(MPI_T_event_callback_set_info(handle, MPI_T_CB_REQUIRE_NONE, no_info), MPI_T_ERR_INVALID);
    SAME(MPI_T_event_callback_get_info(handle, MPI_T_CB_REQUIRE_NONE, NULL), MPI_T_ERR_INVALID);
    OK(MPI_T_event_callback_get_info(handle, MPI_T_CB_REQUIRE_NONE, &info));
    OK(MPI_Info_get_nkeys(info, &number));
    SAME(number, 0);
    OK(MPI_Info_free(&info));
    OK(MPI_T_event_handle_free(handle, &number, on_free));
    SAME(freed, 1);
    CHECK(last_data == &number);
    SAME(MPI_T_event_handle_free(handle, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
    SAME(MPI_T_event_set_dropped_handler(handle, NULL), MPI_T_ERR_INVALID_HANDLE);
    freed = 0;
}

static void the_buffer_hint_is_kept_and_shown(void)
{
    const char *wanted[] = {"17", "0", "1", "nonsense"}, *shown[] = {"17", "0", "1", "0"};
    for (int i = 0; i < 4; i++) {
        MPI_T_event_registration handle;
        MPI_Info info, used;
        char value[32];
        int flag = 0, len = sizeof value;
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "perusal_event_buffer", wanted[i]));
        OK(MPI_Info_set(info, "somebody_elses_hint", "x"));
        OK(MPI_T_event_handle_alloc(0, NULL, info, &handle));
        OK(MPI_T_event_handle_get_info(handle, &used));
        OK(MPI_Info_get_string(used, "perusal_event_buffer", &len, value, &flag));
        CHECK(flag && strcmp(value, shown[i]) == 0);
        /* What is set later is what is in force (mpi_t_event_resize.c has the rest). */
        OK(MPI_Info_set(info, "perusal_event_buffer", "99"));
        OK(MPI_T_event_handle_set_info(handle, info));
        OK(MPI_Info_free(&used));
        OK(MPI_T_event_handle_get_info(handle, &used));
        len = sizeof value;
        OK(MPI_Info_get_string(used, "perusal_event_buffer", &len, value, &flag));
        CHECK(flag && strcmp(value, "99") == 0);
        OK(MPI_Info_free(&used));
        OK(MPI_Info_free(&info));
        OK(MPI_T_event_handle_free(handle, NULL, NULL));
    }
}

static void the_function_for_the_lowest_level_that_holds_is_called(void)
{
    int index = type_of("PERUSE_COMM_MSG_ARRIVED"), none, restricted, safe;
    MPI_Comm comm = MPI_COMM_SELF;
    MPI_T_event_registration handle = handle_of(index, &comm, 0);
    seen = 0;
    message_to_oneself(comm);
    SAME(seen, 0);
    /* Where events happen, MPI must not be called: a function that asks for more freedom is not called. */
    OK(MPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, &none, on_event));
    message_to_oneself(comm);
    SAME(seen, 0);
    OK(MPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL, &safe, on_event));
    message_to_oneself(comm);
    SAME(seen, 1);
    CHECK(last_data == &safe);
    SAME(last_level, MPI_T_CB_REQUIRE_MPI_RESTRICTED);
    OK(MPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL, &restricted, on_event));
    message_to_oneself(comm);
    SAME(seen, 2);
    CHECK(last_data == &restricted);
    /* Registered again it is another; registered as NULL it is none. */
    OK(MPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL, &none, on_event));
    message_to_oneself(comm);
    CHECK(last_data == &none);
    OK(MPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL, NULL, NULL));
    message_to_oneself(comm);
    SAME(seen, 4);
    CHECK(last_data == &safe);
    OK(MPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL, NULL, NULL));
    message_to_oneself(comm);
    SAME(seen, 4);
    OK(MPI_T_event_handle_free(handle, NULL, on_free));
    SAME(freed, 1);
    freed = 0;
}

static void handles_run_out_and_come_back(void)
{
    enum { MOST = 1 << 20 };
    static MPI_T_event_registration handles[MOST];
    int made = 0;
    while (made < MOST && MPI_T_event_handle_alloc(0, NULL, MPI_INFO_NULL, &handles[made]) == MPI_SUCCESS) made++;
    SAME(MPI_T_event_handle_alloc(0, NULL, MPI_INFO_NULL, &handles[made]), MPI_T_ERR_OUT_OF_HANDLES);
    CHECK(made > 10000);
    OK(MPI_T_event_handle_free(handles[--made], NULL, NULL));
    OK(MPI_T_event_handle_alloc(0, NULL, MPI_INFO_NULL, &handles[made++]));
    while (made > 0) OK(MPI_T_event_handle_free(handles[--made], NULL, NULL));
}

static void handles_outlive_their_communicator(void)
{
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    int bound = type_of("PERUSE_COMM_MSG_ARRIVED"), all = type_of("PERUSE_COMM_MSG_ARRIVED_all");
    MPI_T_event_registration one = listen_to(bound, &comm, 0, on_event, NULL), every = listen_to(all, NULL, 0, on_event, NULL);
    MPI_T_event_registration never = handle_of(bound, &comm, 0);
    seen = 0;
    message_to_oneself(comm);
    SAME(seen, 2);
    message_to_oneself(MPI_COMM_SELF);
    SAME(seen, 3);
    OK(MPI_Comm_free(&comm));
    message_to_oneself(MPI_COMM_SELF);
    SAME(seen, 4);
    OK(MPI_T_event_register_callback(one, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, on_event));
    OK(MPI_T_event_register_callback(never, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, on_event));
    OK(MPI_T_event_handle_free(one, NULL, on_free));
    OK(MPI_T_event_handle_free(never, NULL, on_free));
    OK(MPI_T_event_handle_free(every, NULL, on_free));
    SAME(freed, 3);
    freed = 0;
}

int main(int argc, char **argv)
{
    initialise_tools();
    OK(MPI_Init(&argc, &argv));
    invalid_handles_and_arguments();
    the_buffer_hint_is_kept_and_shown();
    the_function_for_the_lowest_level_that_holds_is_called();
    handles_outlive_their_communicator();
    handles_run_out_and_come_back();
    MPI_T_event_registration late = listen_to(0, NULL, 0, on_event, NULL);
    OK(MPI_Finalize());
    /* After MPI_Finalize a handle is still one. */
    MPI_Info info;
    OK(MPI_T_event_handle_get_info(late, &info));
    OK(MPI_Info_free(&info));
    OK(MPI_T_event_handle_free(late, NULL, on_free));
    SAME(freed, 1);
    OK(MPI_T_finalize());
    return verdict();
}
