/* What names nothing: names of null handles, the empty status, messages to and from MPI_PROC_NULL without a type,
 * dimensions of no process.
 * RANKS: 1 2
 */
#include "check.h"

static MPI_Status status;

static MPI_Status *filled(void) {
    memset(&status, 0x77, sizeof status);
    return &status;
}

static void is_empty(void) {
    int count = -1, cancelled = -1;
    SAME(status.MPI_SOURCE, MPI_ANY_SOURCE);
    SAME(status.MPI_TAG, MPI_ANY_TAG);
    SAME(status.MPI_ERROR, MPI_SUCCESS);
    OK(MPI_Get_count(&status, MPI_INT, &count));
    SAME(count, 0);
    OK(MPI_Test_cancelled(&status, &cancelled));
    SAME(cancelled, 0);
}

static void empty_statuses(void) {
    MPI_Request none[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}, inactive;
    int flag, index, data = 0;
    OK(MPI_Wait(none, filled())); is_empty();
    OK(MPI_Test(none, &flag, filled())); is_empty();
    OK(MPI_Request_get_status(none[0], &flag, filled())); is_empty();
    OK(MPI_Request_get_status_any(2, none, &index, &flag, filled())); is_empty();
    OK(MPI_Waitany(2, none, &index, filled())); is_empty();
    OK(MPI_Testany(2, none, &index, &flag, filled())); is_empty();
    OK(MPI_Recv_init(&data, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &inactive));
    OK(MPI_Wait(&inactive, filled())); is_empty();
    OK(MPI_Test(&inactive, &flag, filled())); is_empty();
    OK(MPI_Request_free(&inactive));
    /* A status of one message keeps what the program wrote there. */
    OK(MPI_Sendrecv(&data, 1, MPI_INT, 0, 1, &flag, 1, MPI_INT, 0, 1, MPI_COMM_SELF, filled()));
    SAME(status.MPI_ERROR, 0x77777777);
}

static void nobody(void) {
    MPI_Request request;
    MPI_Datatype none = MPI_DATATYPE_NULL;
    OK(MPI_Send(NULL, 0, none, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    OK(MPI_Ssend(NULL, 3, none, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    OK(MPI_Recv(NULL, 0, none, MPI_PROC_NULL, 0, MPI_COMM_WORLD, filled()));
    SAME(status.MPI_SOURCE, MPI_PROC_NULL);
    OK(MPI_Isend(NULL, 0, none, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Irecv(NULL, 0, none, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, filled()));
    SAME(status.MPI_SOURCE, MPI_PROC_NULL);
    OK(MPI_Sendrecv(NULL, 0, none, MPI_PROC_NULL, 0, NULL, 0, none, MPI_PROC_NULL, 0, MPI_COMM_WORLD, filled()));
    SAME(status.MPI_SOURCE, MPI_PROC_NULL);
    OK(MPI_Send_init(NULL, 0, none, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request));
    OK(MPI_Start(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&request));
    /* To somebody it is an error. */
    CLASS(MPI_Send(NULL, 0, none, 0, 0, MPI_COMM_WORLD), MPI_ERR_TYPE);
    CLASS(MPI_Recv(NULL, 0, none, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
}

static void names(void) {
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    OK(MPI_Comm_get_name(MPI_COMM_NULL, name, &length));
    CHECK(strcmp(name, "MPI_COMM_NULL") == 0);
    SAME(length, (int)strlen(name));
    OK(MPI_Win_get_name(MPI_WIN_NULL, name, &length));
    CHECK(strcmp(name, "MPI_WIN_NULL") == 0);
    OK(MPI_Type_get_name(MPI_DATATYPE_NULL, name, &length));
    CHECK(strcmp(name, "MPI_DATATYPE_NULL") == 0);
}

static void shared_memory(void) {
    MPI_Info info;
    MPI_Comm node, other;
    int size, all;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_hw_resource_type", "mpi_shared_memory"));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, info, &node));
    OK(MPI_Comm_size(node, &size));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &all));
    SAME(size, all);
    OK(MPI_Comm_free(&node));
    OK(MPI_Info_set(info, "mpi_hw_resource_type", "no such resource"));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, info, &other));
    CHECK(other == MPI_COMM_NULL);
    OK(MPI_Info_free(&info));
}

static void no_process(void) {
    int dims[2] = {0, 2}, periods[2] = {0, 0}, rank, x = 1;
    CLASS(MPI_Cart_map(MPI_COMM_WORLD, 2, dims, periods, &rank), MPI_ERR_DIMS);
    CLASS(MPI_Reduce_local(MPI_IN_PLACE, &x, 1, MPI_INT, MPI_SUM), MPI_ERR_BUFFER);
    CLASS(MPI_Reduce_local(&x, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM), MPI_ERR_BUFFER);
}

int main(int argc, char **argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    empty_statuses();
    nobody();
    names();
    shared_memory();
    no_process();
    OK(MPI_Finalize());
    return verdict();
}
