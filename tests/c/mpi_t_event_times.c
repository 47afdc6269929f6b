/* An event has one time, whoever asks and however late: when it was observed, before the first callback. And what else
 * a callback may do with objects that MPI_T gives it.
 */
#include "mpi_t_event.h"
#include <time.h>

static MPI_Count began[3], times[3];
static int calls[3];

static void on_message(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    int which = *(int *)data, source;
    (void)handle, (void)level;
    if (calls[which]++) return;
    OK(MPI_T_event_get_source(instance, &source));
    OK(MPI_T_source_get_timestamp(source, &began[which]));
    nanosleep(&(struct timespec) {.tv_nsec = 5000000}, NULL);
    OK(MPI_T_event_get_timestamp(instance, &times[which]));
    MPI_Info info;
    OK(MPI_T_source_get_info(source, NULL, NULL, NULL, NULL, NULL, NULL, NULL, &info));
    OK(MPI_Info_set(info, "key", "value"));
    OK(MPI_Info_free(&info));
}

int main(void)
{
    static int numbers[] = {0, 1, 2};
    MPI_T_event_registration handles[3];
    int provided, x = 0, y;
    MPI_Count ticks;
    MPI_Comm self;
    OK(MPI_Init(NULL, NULL));
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &self));
    OK(MPI_T_source_get_info(0, NULL, NULL, NULL, NULL, NULL, &ticks, NULL, NULL));
    int index = type_of("PERUSE_COMM_MSG_ARRIVED");
    /* The handle, where its address must go. */
    if (bind_of(index) == MPI_T_BIND_MPI_COMM)
        SAME(MPI_T_event_handle_alloc(index, MPI_COMM_WORLD, MPI_INFO_NULL, &handles[0]), MPI_T_ERR_INVALID_HANDLE);
    for (int i = 0; i < 3; i++) {
        OK(MPI_T_event_handle_alloc(index, &self, MPI_INFO_NULL, &handles[i]));
        OK(MPI_T_event_register_callback(handles[i], MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, MPI_INFO_NULL, &numbers[i], on_message));
    }
    OK(MPI_Sendrecv(&x, 1, MPI_INT, 0, 0, &y, 1, MPI_INT, 0, 0, self, MPI_STATUS_IGNORE));
    MPI_Count first = began[0];
    for (int i = 0; i < 3; i++) {
        SAME(calls[i], 1);
        SAME(times[i], times[0]);
        if (began[i] < first) first = began[i];
    }
    SAME(times[0] <= first, 1);
    for (int i = 0; i < 3; i++) OK(MPI_T_event_handle_free(handles[i], NULL, NULL));
    OK(MPI_T_finalize());
    OK(MPI_Finalize());
    return verdict();
}
