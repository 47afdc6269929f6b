/* Attached buffers of communicators and sessions: which one a buffered send takes, flushes that wait and that do not,
 * and what is wrong.
 * RANKS: 2
 */
#include "check.h"
#include <stdlib.h>

enum { LARGE = 1 << 20, ROOM = 4 * LARGE, SMALL = 4096 };
static int rank;
static char data[LARGE];

static int bsend(int bytes, MPI_Comm comm) { return MPI_Bsend(data, bytes, MPI_CHAR, 1, 3, comm); }

static void receive(int bytes, MPI_Comm comm) {
    MPI_Status status;
    int count;
    OK(MPI_Recv(data, bytes, MPI_CHAR, 0, 3, comm, &status));
    OK(MPI_Get_count(&status, MPI_CHAR, &count));
    SAME(count, bytes);
}

/* A library uses a buffer of its own, and puts back what it has found:
 * nothing, too, after which the program may attach one. */
static void nested(char *process) {
    void *found = &rank, *own;
    int size = -1, bytes;
    char library[SMALL];
    OK(MPI_Buffer_detach(&found, &size));
    CHECK(found == NULL);
    SAME(size, 0);
    OK(MPI_Buffer_attach(library, SMALL));
    CLASS(MPI_Buffer_attach(found, size), MPI_ERR_BUFFER);
    OK(MPI_Buffer_detach(&own, &bytes));
    CHECK(own == library);
    OK(MPI_Buffer_attach(found, size));
    CLASS(bsend(1, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    OK(MPI_Buffer_attach(process, ROOM));
    OK(MPI_Buffer_detach(&own, &bytes));
    CHECK(own == process);
    SAME(bytes, ROOM);
}

static void which_one(void) {
    MPI_Comm with, without;
    char *own = malloc(SMALL), *process = malloc(ROOM);
    void *got;
    int size;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &with));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &without));
    OK(MPI_Comm_attach_buffer(with, own, SMALL));
    CLASS(MPI_Comm_attach_buffer(with, own, SMALL), MPI_ERR_BUFFER);
    if (rank == 0) {
        OK(bsend(100, with));
        CLASS(bsend(100, without), MPI_ERR_BUFFER);
    } else {
        receive(100, with);
    }
    OK(MPI_Buffer_attach(process, ROOM));
    if (rank == 0) {
        /* Its own, though there is more room in that of the process. */
        CLASS(bsend(LARGE, with), MPI_ERR_BUFFER);
        OK(bsend(LARGE, without));
    } else {
        receive(LARGE, without);
    }
    OK(MPI_Comm_flush_buffer(with));
    OK(MPI_Comm_detach_buffer(with, &got, &size));
    CHECK(got == own);
    SAME(size, SMALL);
    if (rank == 0) {
        OK(bsend(LARGE, with));
    } else {
        receive(LARGE, with);
    }
    OK(MPI_Buffer_flush());
    OK(MPI_Buffer_detach(&got, &size));
    CHECK(got == process);
    SAME(size, ROOM);
    OK(MPI_Comm_detach_buffer(with, &got, &size));
    SAME(size, 0);
    nested(process);
    OK(MPI_Comm_free(&with));
    OK(MPI_Comm_free(&without));
    free(own);
    free(process);
}

/* A flush is for what was buffered before it, and is over when that has been received. */
static void flush_later(void) {
    MPI_Comm comm;
    MPI_Request request;
    MPI_Count size;
    void *got, *room = malloc(ROOM);
    int over;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_attach_buffer_c(comm, room, ROOM));
    OK(MPI_Comm_iflush_buffer(comm, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (rank == 0) {
        OK(bsend(LARGE, comm));
        OK(MPI_Comm_iflush_buffer(comm, &request));
        OK(MPI_Test(&request, &over, MPI_STATUS_IGNORE));
        SAME(over, 0);
        OK(bsend(LARGE, comm));
        OK(MPI_Send(NULL, 0, MPI_CHAR, 1, 4, comm));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Send(NULL, 0, MPI_CHAR, 1, 5, comm));
    } else {
        OK(MPI_Recv(NULL, 0, MPI_CHAR, 0, 4, comm, MPI_STATUS_IGNORE));
        receive(LARGE, comm);
        /* The second message waits until the flush is over. */
        OK(MPI_Recv(NULL, 0, MPI_CHAR, 0, 5, comm, MPI_STATUS_IGNORE));
        receive(LARGE, comm);
    }
    OK(MPI_Comm_detach_buffer_c(comm, &got, &size));
    CHECK(got == room);
    SAME((int)size, ROOM);
    CLASS(MPI_Comm_attach_buffer(comm, room, -1), MPI_ERR_ARG);
    /* Its size says nothing. */
    OK(MPI_Comm_attach_buffer(comm, MPI_BUFFER_AUTOMATIC, -1));
    if (rank == 0) {
        OK(bsend(LARGE, comm));
    } else {
        receive(LARGE, comm);
    }
    OK(MPI_Comm_detach_buffer_c(comm, &got, &size));
    CHECK(got == MPI_BUFFER_AUTOMATIC);
    /* What is attached is flushed by MPI_Comm_disconnect. */
    OK(MPI_Comm_attach_buffer(comm, room, ROOM));
    if (rank == 0) OK(bsend(LARGE, comm));
    else receive(LARGE, comm);
    OK(MPI_Comm_disconnect(&comm));
    free(room);
}

static void of_session(void) {
    MPI_Session session, other;
    MPI_Group group;
    MPI_Comm comm, dup;
    MPI_Request request;
    void *got, *room = malloc(ROOM);
    int size;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &other));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, "perusal://buffers", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Comm_split(comm, 0, rank, &dup));
    OK(MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN));
    OK(MPI_Session_attach_buffer_c(session, room, ROOM));
    OK(MPI_Session_attach_buffer(other, MPI_BUFFER_AUTOMATIC, 0));
    if (rank == 0) {
        OK(bsend(LARGE, comm));
        OK(bsend(LARGE, dup));
        CLASS(bsend(1, MPI_COMM_WORLD), MPI_ERR_BUFFER);
        /* Room for four, with their overhead for three. */
        OK(bsend(LARGE, dup));
        CLASS(bsend(LARGE, comm), MPI_ERR_BUFFER);
        OK(MPI_Session_iflush_buffer(session, &request));
        OK(MPI_Send(NULL, 0, MPI_CHAR, 1, 4, comm));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
        OK(MPI_Recv(NULL, 0, MPI_CHAR, 0, 4, comm, MPI_STATUS_IGNORE));
        receive(LARGE, comm);
        receive(LARGE, dup);
        receive(LARGE, dup);
    }
    OK(MPI_Session_flush_buffer(session));
    OK(MPI_Session_detach_buffer(session, &got, &size));
    CHECK(got == room);
    SAME(size, ROOM);
    if (rank == 0) CLASS(bsend(1, dup), MPI_ERR_BUFFER);
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Group_free(&group));
    OK(MPI_Session_finalize(&other));
    OK(MPI_Session_finalize(&session));
    free(room);
}

static void what_is_wrong(void) {
    void *got;
    int size;
    MPI_Request request;
    CLASS(MPI_Comm_attach_buffer(MPI_COMM_NULL, data, 100), MPI_ERR_COMM);
    CLASS(MPI_Comm_attach_buffer(MPI_COMM_WORLD, data, -1), MPI_ERR_ARG);
    CLASS(MPI_Comm_attach_buffer(MPI_COMM_WORLD, NULL, 100), MPI_ERR_BUFFER);
    CLASS(MPI_Session_attach_buffer(MPI_SESSION_NULL, data, 100), MPI_ERR_SESSION);
    CLASS(MPI_Session_flush_buffer(MPI_SESSION_NULL), MPI_ERR_SESSION);
    CLASS(MPI_Session_iflush_buffer(MPI_SESSION_NULL, &request), MPI_ERR_SESSION);
    CLASS(MPI_Comm_detach_buffer(MPI_COMM_NULL, &got, &size), MPI_ERR_COMM);
    OK(MPI_Buffer_iflush(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

int main(int argc, char **argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    errors_return();
    which_one();
    flush_later();
    of_session();
    what_is_wrong();
    OK(MPI_Finalize());
    return verdict();
}
