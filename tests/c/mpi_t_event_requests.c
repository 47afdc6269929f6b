/* The events of requests under the names of Open MPI: each request is activated once and complete once, with the same
 * number; a receive that is cancelled is reported as such, and completes too.
 * RANKS: 2
 */
#include "mpi_t_event.h"

enum { MESSAGES = 10, ROOM = 64 };

struct seen {
    uint64_t ids[ROOM];
    int count, place;
};

static void record(MPI_T_event_instance event, MPI_T_event_registration handle, MPI_T_cb_safety safety, void *data)
{
    struct seen *seen = data;
    (void)handle, (void)safety;
    if (seen->count < ROOM) OK(MPI_T_event_read(event, seen->place, &seen->ids[seen->count]));
    seen->count++;
}

static MPI_T_event_registration watch(const char *name, struct seen *seen)
{
    MPI_Comm world = MPI_COMM_WORLD;
    int index = type_of(name);
    seen->place = element_of(index, "request");
    return listen_to(index, &world, 0, record, seen);
}

int main(int argc, char **argv)
{
    struct seen active = {.count = 0}, complete = {.count = 0}, cancelled = {.count = 0};
    int rank, value = 7;
    MPI_Request request[2];
    initialise_tools();
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    MPI_T_event_registration handles[] = {watch("pml_ob1_request_activate", &active),
                                          watch("pml_ob1_request_complete", &complete),
                                          watch("pml_ob1_receive_cancel", &cancelled)};
    for (int i = 0; i < MESSAGES; i++) {
        int got = 0;
        OK(MPI_Irecv(&got, 1, MPI_INT, 1 - rank, i, MPI_COMM_WORLD, &request[0]));
        OK(MPI_Isend(&value, 1, MPI_INT, 1 - rank, i, MPI_COMM_WORLD, &request[1]));
        OK(MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
        SAME(got, 7);
    }
    SAME(active.count, 2 * MESSAGES);
    SAME(complete.count, 2 * MESSAGES);
    SAME(cancelled.count, 0);
    OK(MPI_Irecv(&value, 1, MPI_INT, 1 - rank, MESSAGES, MPI_COMM_WORLD, &request[0]));
    OK(MPI_Cancel(&request[0]));
    OK(MPI_Wait(&request[0], MPI_STATUS_IGNORE));
    SAME(active.count, 2 * MESSAGES + 1);
    SAME(complete.count, 2 * MESSAGES + 1);
    SAME(cancelled.count, 1);
    CHECK(cancelled.ids[0] == complete.ids[2 * MESSAGES]);
    /* The two requests of a round may complete in any order. */
    for (int i = 0; i < MESSAGES; i++) {
        uint64_t *a = &active.ids[2 * i], *c = &complete.ids[2 * i];
        CHECK(a[0] != a[1] && c[0] != c[1]);
        CHECK((c[0] == a[0] || c[0] == a[1]) && (c[1] == a[0] || c[1] == a[1]));
    }
    for (int i = 0; i < 3; i++) OK(MPI_T_event_handle_free(handles[i], NULL, NULL));
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return verdict();
}
