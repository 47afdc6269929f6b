/* A tool that asks for the time in a callback before anything else asks for times finds that its event came before.
 */
#include "mpi_t_event.h"

static int calls;

static void on_message(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    MPI_Count now = -1, when = -1;
    (void)handle, (void)level, (void)data;
    OK(MPI_T_source_get_timestamp(1, &now));
    OK(MPI_T_event_get_timestamp(instance, &when));
    CHECK(when >= 0 && when <= now);
    calls++;
}

int main(int argc, char **argv)
{
    int out = 1, in;
    OK(MPI_Init(&argc, &argv));
    initialise_tools();
    MPI_T_event_registration handle = listen_to(type_of("PERUSE_COMM_MSG_ARRIVED_all"), NULL, 0, on_message, NULL);
    OK(MPI_Sendrecv(&out, 1, MPI_INT, 0, 0, &in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    SAME(calls, 1);
    OK(MPI_T_event_handle_free(handle, NULL, NULL));
    OK(MPI_T_finalize());
    OK(MPI_Finalize());
    return verdict();
}
