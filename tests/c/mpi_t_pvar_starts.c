/* The starting value of a watermark is the length at its first start, not at the making of its handle (MPI 5.0 section
 * 15.3.7); and a handle that is bound to a communicator stays that of the communicator,
 * also when another one has the same MPI_Comm later.
 * RANKS: 1
 */
#include "pvars.h"

static int in, out;
static MPI_Request requests[8];

static void post(int count) {
    for (int tag = 0; tag < count; tag++) OK(MPI_Irecv(&in, 1, MPI_INT, 0, tag, MPI_COMM_SELF, &requests[tag]));
}

static void meet(int count) {
    for (int tag = 0; tag < count; tag++) OK(MPI_Send(&out, 1, MPI_INT, 0, tag, MPI_COMM_SELF));
    OK(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
}

static unsigned length(MPI_T_pvar_handle handle) {
    unsigned value = 4711;
    OK(MPI_T_pvar_read(session, handle, &value));
    return value;
}

static void watermarks_begin_with_the_length_at_their_start(void) {
    MPI_T_pvar_handle low = handle_of("posted_recvq_length", MPI_T_PVAR_CLASS_LOWWATERMARK);
    post(5);
    MPI_T_pvar_handle high = handle_of("posted_recvq_length", MPI_T_PVAR_CLASS_HIGHWATERMARK);
    OK(MPI_T_pvar_start(session, low));
    SAME(length(low), 5);
    SAME(length(high), 5);
    meet(5);
    SAME(length(low), 0);
    OK(MPI_T_pvar_start(session, high));
    SAME(length(high), 0);
    post(3);
    meet(3);
    SAME(length(high), 3);
    /* Stopped, nothing is observed; started again it goes on. */
    OK(MPI_T_pvar_stop(session, high));
    post(4);
    meet(4);
    OK(MPI_T_pvar_start(session, high));
    SAME(length(high), 3);
    /* Reset while it is stopped it is as new; what was written counts. */
    unsigned most = 7;
    OK(MPI_T_pvar_stop(session, high));
    post(2);
    OK(MPI_T_pvar_reset(session, high));
    SAME(length(high), 2);
    meet(2);
    OK(MPI_T_pvar_start(session, high));
    SAME(length(high), 0);
    OK(MPI_T_pvar_stop(session, high));
    OK(MPI_T_pvar_write(session, high, &most));
    OK(MPI_T_pvar_start(session, high));
    SAME(length(high), 7);
}

static void a_handle_is_of_its_own_communicator_alone(void) {
    int index, count, found = 0;
    MPI_T_pvar_handle size;
    unsigned long long ranks;
    MPI_Comm comm, first;
    OK(MPI_T_pvar_get_index("comm_size", MPI_T_PVAR_CLASS_SIZE, &index));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    OK(MPI_T_pvar_handle_alloc(session, index, &comm, &size, &count));
    OK(MPI_T_pvar_read(session, size, &ranks));
    SAME(ranks, 1);
    first = comm;
    OK(MPI_Comm_free(&comm));
    SAME(MPI_T_pvar_read(session, size, &ranks), MPI_T_ERR_INVALID_HANDLE);
    /* No handle is given out again before many others have been. */
    for (int i = 0; i < 20000 && !found; i++) {
        OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
        found = comm == first;
        if (found) SAME(MPI_T_pvar_read(session, size, &ranks), MPI_T_ERR_INVALID_HANDLE);
        OK(MPI_Comm_free(&comm));
    }
    /* One of a communicator that is still on its way is of the one that comes. */
    MPI_Request request;
    OK(MPI_Comm_idup(MPI_COMM_SELF, &comm, &request));
    OK(MPI_T_pvar_handle_alloc(session, index, &comm, &size, &count));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_T_pvar_read(session, size, &ranks));
    SAME(ranks, 1);
    OK(MPI_Comm_free(&comm));
}

int main(int argc, char **argv) {
    int provided;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_Init(&argc, &argv));
    OK(MPI_T_pvar_session_create(&session));
    watermarks_begin_with_the_length_at_their_start();
    a_handle_is_of_its_own_communicator_alone();
    OK(MPI_T_pvar_session_free(&session));
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return verdict();
}
