/* Error handlers: who is called, with what, who inherits, how long a handle lives.
 * RANKS: 1 2
 */
#include "check.h"

static int calls, last;
static MPI_Comm seen;

static void handler(MPI_Comm *comm, int *code, ...) {
    seen = *comm;
    MPI_Error_class(*code, &last);
    calls++;
}
static void to_success(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    *code = MPI_SUCCESS;
}
static void of_files(MPI_File *file, int *code, ...) {
    (void)file, (void)code;
    calls += 100;
}

int main(void) {
    MPI_Errhandler mine, got, again, files;
    MPI_Comm comm, dup;
    int n;
    OK(MPI_Comm_create_errhandler(handler, &mine));
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &got));
    CHECK(got == MPI_ERRORS_ARE_FATAL);
    OK(MPI_Errhandler_free(&got));
    CHECK(got == MPI_ERRHANDLER_NULL);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, mine));
    OK(MPI_Comm_get_errhandler(comm, &got));
    CHECK(got == mine);
    OK(MPI_Errhandler_free(&got));
    OK(MPI_Errhandler_free(&mine));
    /* The communicator still has it. */
    CLASS(MPI_Send(&n, 1, MPI_INT, 99, 0, comm), MPI_ERR_RANK);
    SAME(calls, 1); SAME(last, MPI_ERR_RANK);
    CHECK(seen == comm);
    OK(MPI_Comm_get_errhandler(comm, &again));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, again));
    OK(MPI_Errhandler_free(&again));
    OK(MPI_Comm_dup(comm, &dup));
    CLASS(MPI_Bcast(&n, 1, MPI_INT, -9, dup), MPI_ERR_ROOT);
    SAME(calls, 2); SAME(last, MPI_ERR_ROOT);
    CHECK(seen == dup);
    OK(MPI_Comm_call_errhandler(dup, MPI_ERR_TAG));
    SAME(calls, 3); SAME(last, MPI_ERR_TAG);
    /* What belongs to no communicator goes to MPI_COMM_SELF's. */
    CLASS(MPI_Comm_size(MPI_COMM_NULL, &n), MPI_ERR_COMM);
    SAME(calls, 4); SAME(last, MPI_ERR_COMM);
    CLASS(MPI_Group_size(MPI_GROUP_NULL, &n), MPI_ERR_GROUP);
    SAME(calls, 5);
    /* What a handler stores as the code is what the function returns. */
    OK(MPI_Comm_create_errhandler(to_success, &again));
    OK(MPI_Comm_set_errhandler(dup, again));
    OK(MPI_Errhandler_free(&again));
    OK(MPI_Bcast(&n, 1, MPI_INT, -9, dup));
    OK(MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN));
    CLASS(MPI_Bcast(&n, 1, MPI_INT, -9, dup), MPI_ERR_ROOT);
    SAME(calls, 5);
    /* The error of a request is its communicator's. */
    int big[4] = {0}, small[1];
    MPI_Request requests[2];
    MPI_Comm own;
    OK(MPI_Comm_split(dup, 0, 0, &own));
    OK(MPI_Comm_rank(own, &n));
    calls = 0;
    OK(MPI_Irecv(small, 1, MPI_INT, n, 0, own, &requests[0]));
    OK(MPI_Isend(big, 4, MPI_INT, n, 0, own, &requests[1]));
    CLASS(MPI_Wait(&requests[0], MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    SAME(calls, 0);
    OK(MPI_Comm_get_errhandler(comm, &again));
    OK(MPI_Comm_set_errhandler(own, again));
    OK(MPI_Errhandler_free(&again));
    OK(MPI_Irecv(small, 1, MPI_INT, n, 0, own, &requests[0]));
    OK(MPI_Isend(big, 4, MPI_INT, n, 0, own, &requests[1]));
    CLASS(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE), MPI_ERR_IN_STATUS);
    SAME(calls, 1);
    SAME(last, MPI_ERR_TRUNCATE);
    CHECK(seen == own);
    OK(MPI_Comm_free(&own));
    calls = 5;
    /* A handler is for one kind of object. */
    OK(MPI_File_create_errhandler(of_files, &files));
    CLASS(MPI_Comm_set_errhandler(dup, files), MPI_ERR_ERRHANDLER);
    CLASS(MPI_Comm_set_errhandler(dup, MPI_ERRHANDLER_NULL), MPI_ERR_ERRHANDLER);
    OK(MPI_File_get_errhandler(MPI_FILE_NULL, &got));
    CHECK(got == MPI_ERRORS_RETURN);
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, files));
    OK(MPI_File_call_errhandler(MPI_FILE_NULL, MPI_ERR_FILE));
    SAME(calls, 105);
    OK(MPI_Errhandler_free(&files));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    CLASS(MPI_Errhandler_free(&files), MPI_ERR_ERRHANDLER);
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    return verdict();
}
