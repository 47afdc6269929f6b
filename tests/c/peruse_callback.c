/* A callback may ask the time and call PERUSE; other MPI calls are refused and do nothing (PERUSE 2.0 section 5.1.2).
 * RANKS: 1
 */
#include "check.h"
#include <peruse.h>

static int calls = 0;

static int asks(peruse_event_h handle, MPI_Aint id, peruse_comm_spec_t *spec, void *param)
{
    int size = -1, event, value = 0;
    char *name;
    void *object;
    MPI_Request request = MPI_REQUEST_NULL;
    (void)id;
    calls++;
    CHECK(MPI_Wtime() > 0 && MPI_Wtick() > 0 && PMPI_Wtime() > 0);
    OK(PERUSE_Event_get(handle, &event));
    SAME(event, PERUSE_COMM_REQ_NOTIFY);
    OK(PERUSE_Query_event_name(event, &name));
    SAME(strcmp(name, "PERUSE_COMM_REQ_NOTIFY"), 0);
    OK(PERUSE_Event_object_get(handle, &object));
    CHECK((MPI_Comm)object == MPI_COMM_WORLD && spec->comm == MPI_COMM_WORLD);
    OK(PERUSE_Lock());
    OK(PERUSE_Unlock());
    SAME(MPI_Comm_size(MPI_COMM_WORLD, &size), MPI_ERR_OTHER);
    SAME(size, -1);
    SAME(MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD), MPI_ERR_OTHER);
    SAME(MPI_Irecv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request), MPI_ERR_OTHER);
    CHECK(request == MPI_REQUEST_NULL);
    SAME(MPI_Comm_rank(MPI_COMM_WORLD, &size), MPI_ERR_OTHER);
    peruse_event_h *own = param;
    SAME(*own, handle);
    OK(PERUSE_Event_release(own));
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    static peruse_event_h handle;
    int in, out = 5;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    errors_return();
    OK(PERUSE_Init());
    OK(PERUSE_Event_comm_register(PERUSE_COMM_REQ_NOTIFY, MPI_COMM_WORLD, asks, &handle, &handle));
    OK(PERUSE_Event_activate(handle));
    for (int i = 0; i < 3; i++) {
        OK(MPI_Irecv(&in, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request));
        OK(MPI_Send(&out, 1, MPI_INT, 0, 0, MPI_COMM_WORLD));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    SAME(calls, 1);
    CHECK(handle == PERUSE_EVENT_HANDLE_NULL);
    MPI_Finalize();
    return verdict();
}
