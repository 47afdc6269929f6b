/* What events cost a tool to hear is counted: each that a handle got, and each that found no room in its buffer.
 * RANKS: 1
 */
#include "mpi_t_counter.h"

static int calls;

static void hear(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data) {
    (void)instance; (void)registration; (void)safety; (void)data;
    calls++;
}

int main(int argc, char **argv) {
    int provided, index, c = 0;
    MPI_T_event_registration registration;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_Init(&argc, &argv));
    OK(MPI_T_pvar_session_create(&session));
    MPI_T_pvar_handle delivered = counter("events_told"), dropped = counter("events_dropped");
    MPI_Sendrecv(&c, 1, MPI_INT, 0, 1, &c, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    SAME(read_of(delivered), 0);
    OK(MPI_T_event_get_index("PERUSE_COMM_MSG_ARRIVED_all", &index));
    OK(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &registration));
    OK(MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, MPI_INFO_NULL, NULL, hear));
    for (int i = 0; i < 7; i++)
        MPI_Sendrecv(&c, 1, MPI_INT, 0, 1, &c, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    SAME(calls, 7);
    SAME(read_of(delivered), 7);
    SAME(read_of(dropped), 0);
    OK(MPI_T_event_handle_free(registration, NULL, NULL));
    MPI_Sendrecv(&c, 1, MPI_INT, 0, 1, &c, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    SAME(read_of(delivered), 7);

    /* A buffer for one event, and four at once. */
    MPI_Info info;
    MPI_Request requests[8];
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "perusal_event_buffer", "1"));
    OK(MPI_T_event_get_index("PERUSE_COMM_REQ_COMPLETE_all", &index));
    OK(MPI_T_event_handle_alloc(index, NULL, info, &registration));
    OK(MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, hear));
    calls = 0;
    for (int i = 0; i < 4; i++) MPI_Irecv(&c, 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[i]);
    MPI_Request start[4];
    for (int i = 0; i < 4; i++) MPI_Send_init(&c, 1, MPI_INT, 0, i, MPI_COMM_SELF, &start[i]);
    MPI_Startall(4, start);
    MPI_Waitall(4, start, MPI_STATUSES_IGNORE);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    OK(MPI_T_event_handle_free(registration, NULL, NULL));
    for (int i = 0; i < 4; i++) MPI_Request_free(&start[i]);
    OK(MPI_Info_free(&info));
    MPI_Barrier(MPI_COMM_SELF);
    SAME(calls + read_of(dropped), 8);
    CHECK(read_of(dropped) > 0);
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return verdict();
}
