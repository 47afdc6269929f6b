/* A callback may make local enquiries and call PERUSE;
 * other MPI calls are refused and do nothing (docs/peruse.md has the list).
 * RANKS: 1
 */
#include "check.h"
#include <peruse.h>

static int calls = 0;
static MPI_Datatype pair;
static MPI_Group group;

/* What tools ask: the size of what is sent, and by whom. */
static void enquire(peruse_comm_spec_t *spec)
{
    int n = -1, m = -1;
    MPI_Count count = -1;
    MPI_Aint lower = -1, extent = -1, here = 0;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Status status = {.MPI_SOURCE = 3, .MPI_TAG = 5, .MPI_ERROR = 0};
    OK(MPI_Type_size(spec->datatype, &n));
    SAME(n * spec->count, 4);
    OK(MPI_Type_size_c(pair, &count));
    SAME(count, 8);
    OK(MPI_Type_get_extent(pair, &lower, &extent));
    SAME(extent, 8);
    OK(MPI_Type_get_true_extent(pair, &lower, &extent));
    SAME(lower, 0);
    OK(MPI_Type_get_name(pair, text, &n));
    SAME(strcmp(text, "pair"), 0);
    OK(MPI_Comm_size(spec->comm, &n));
    SAME(n, 1);
    OK(MPI_Comm_rank(spec->comm, &n));
    SAME(n, 0);
    OK(MPI_Comm_get_name(spec->comm, text, &n));
    SAME(strcmp(text, "MPI_COMM_WORLD"), 0);
    OK(MPI_Comm_test_inter(spec->comm, &n));
    SAME(n, 0);
    SAME(MPI_Comm_remote_size(spec->comm, &n), MPI_ERR_COMM);
    OK(MPI_Comm_compare(spec->comm, MPI_COMM_WORLD, &n));
    SAME(n, MPI_IDENT);
    OK(MPI_Group_size(group, &n));
    SAME(n, 1);
    OK(MPI_Group_rank(group, &n));
    SAME(n, 0);
    m = 0;
    OK(MPI_Group_translate_ranks(group, 1, &m, group, &n));
    SAME(n, 0);
    OK(MPI_Get_count(&status, MPI_INT, &n));
    SAME(n, 0);
    OK(MPI_Get_count_c(&status, MPI_INT, &count));
    OK(MPI_Get_elements(&status, pair, &n));
    SAME(n, 0);
    OK(MPI_Status_get_source(&status, &n));
    SAME(n, 3);
    OK(MPI_Status_get_tag(&status, &n));
    SAME(n, 5);
    OK(MPI_Test_cancelled(&status, &n));
    SAME(n, 0);
    OK(MPI_Initialized(&n));
    OK(MPI_Finalized(&m));
    CHECK(n && !m);
    OK(MPI_Get_version(&n, &m));
    SAME(n, MPI_VERSION);
    OK(MPI_Get_library_version(text, &n));
    OK(MPI_Get_processor_name(text, &n));
    OK(MPI_Query_thread(&n));
    SAME(n, MPI_THREAD_SINGLE);
    OK(MPI_Is_thread_main(&n));
    SAME(n, 1);
    OK(MPI_Error_class(MPI_ERR_TAG, &n));
    SAME(n, MPI_ERR_TAG);
    OK(MPI_Error_string(MPI_ERR_TAG, text, &n));
    OK(MPI_Get_address(&n, &here));
    CHECK(MPI_Aint_diff(MPI_Aint_add(here, 8), here) == 8);
    CHECK(MPI_Wtime() > 0 && MPI_Wtick() > 0 && PMPI_Wtime() > 0);
}

static int asks(peruse_event_h handle, MPI_Aint id, peruse_comm_spec_t *spec, void *param)
{
    int event, value = 0, flag = -1;
    char *name;
    void *object;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Group made = MPI_GROUP_NULL;
    (void)id;
    calls++;
    OK(PERUSE_Event_get(handle, &event));
    SAME(event, PERUSE_COMM_REQ_NOTIFY);
    OK(PERUSE_Query_event_name(event, &name));
    SAME(strcmp(name, "PERUSE_COMM_REQ_NOTIFY"), 0);
    OK(PERUSE_Event_object_get(handle, &object));
    CHECK((MPI_Comm)object == MPI_COMM_WORLD && spec->comm == MPI_COMM_WORLD);
    OK(PERUSE_Lock());
    OK(PERUSE_Unlock());
    enquire(spec);
    SAME(MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD), MPI_ERR_OTHER);
    SAME(MPI_Irecv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request), MPI_ERR_OTHER);
    CHECK(request == MPI_REQUEST_NULL);
    SAME(MPI_Iprobe(0, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE), MPI_ERR_OTHER);
    SAME(flag, -1);
    SAME(MPI_Barrier(MPI_COMM_WORLD), MPI_ERR_OTHER);
    SAME(MPI_Comm_group(MPI_COMM_WORLD, &made), MPI_ERR_OTHER);
    CHECK(made == MPI_GROUP_NULL);
    SAME(MPI_Comm_set_name(MPI_COMM_WORLD, "other"), MPI_ERR_OTHER);
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
    OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_set_name(pair, "pair"));
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
    OK(MPI_Type_free(&pair));
    OK(MPI_Group_free(&group));
    MPI_Finalize();
    return verdict();
}
