/* MPI_Abort in a callback ends the job, also where errors return.
 * EXIT: 7
 * STDERR: rank 0: MPI_Abort called with code 7
 */
#include "mpi_t_event.h"

static void on_message(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    (void)instance, (void)handle, (void)level, (void)data;
    MPI_Abort(MPI_COMM_WORLD, 7);
}

int main(void)
{
    MPI_T_event_registration handle;
    MPI_Comm self = MPI_COMM_SELF;
    int provided, x = 0, y;
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_event_handle_alloc(type_of("PERUSE_COMM_MSG_ARRIVED"), &self, MPI_INFO_NULL, &handle));
    OK(MPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, MPI_INFO_NULL, NULL, on_message));
    OK(MPI_Sendrecv(&x, 1, MPI_INT, 0, 0, &y, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    fprintf(stderr, "it went on\n");
    return 3;
}
