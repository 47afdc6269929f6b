/* What an error handler is given: a handle that names something of its kind, whatever the call was passed, and the code
 * of the request that has failed; and the errors of calls that have no object go to MPI_COMM_WORLD's handler while
 * MPI_COMM_SELF has none. Statuses get MPI_ERROR only from calls that return MPI_ERR_IN_STATUS.
 * RANKS: 2
 */
#include "check.h"

static int calls, last_code, depth;
static MPI_Comm last_comm;
static MPI_File last_file;

static void on_comm(MPI_Comm *comm, int *code, ...) {
    int rank;
    calls++;
    last_comm = *comm;
    last_code = *code;
    CHECK(++depth == 1);
    OK(MPI_Comm_rank(*comm, &rank));
    depth--;
}

static void on_file(MPI_File *file, int *code, ...) {
    calls++;
    last_file = *file;
    last_code = *code;
}

/* One call of the handler, on this communicator. */
static void once(MPI_Comm comm) {
    SAME(calls, 1);
    CHECK(last_comm == comm);
    calls = 0;
}

static void objects(void) {
    MPI_Comm dup, freed;
    MPI_Win win, no_win;
    MPI_Request none = MPI_REQUEST_NULL, *nowhere = NULL;
    MPI_Status status;
    MPI_File file, no_file;
    MPI_Errhandler handler, of_files;
    char name[64];
    int size, flag;
    OK(MPI_Comm_create_errhandler(on_comm, &handler));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    freed = dup;
    OK(MPI_Comm_free(&dup));
    OK(MPI_Win_create(&size, sizeof size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    no_win = win;
    OK(MPI_Win_free(&win));
    CLASS(MPI_Comm_size(MPI_COMM_NULL, &size), MPI_ERR_COMM);
    once(MPI_COMM_SELF);
    CLASS(MPI_Comm_size(freed, &size), MPI_ERR_COMM);
    once(MPI_COMM_SELF);
    CLASS(MPI_Win_fence(0, no_win), MPI_ERR_WIN);
    once(MPI_COMM_SELF);
    CLASS(MPI_Session_finalize(&(MPI_Session){MPI_SESSION_NULL}), MPI_ERR_SESSION);
    once(MPI_COMM_SELF);
    CLASS(MPI_Comm_free((MPI_Comm *)NULL), MPI_ERR_ARG);
    once(MPI_COMM_SELF);
    CLASS(MPI_Wait(nowhere, &status), MPI_ERR_ARG);
    once(MPI_COMM_SELF);
    CLASS(MPI_Test(nowhere, &flag, &status), MPI_ERR_ARG);
    once(MPI_COMM_SELF);
    CLASS(MPI_Test(&none, NULL, &status), MPI_ERR_ARG);
    once(MPI_COMM_SELF);
    CLASS(MPI_Send(&size, 1, MPI_INT, 2, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
    once(MPI_COMM_WORLD);
    OK(MPI_File_create_errhandler(on_file, &of_files));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, of_files));
    snprintf(name, sizeof name, "error_handler_objects.%p", (void *)&size);
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    no_file = file;
    OK(MPI_File_close(&file));
    CLASS(MPI_File_sync(no_file), MPI_ERR_FILE);
    SAME(calls, 1);
    CHECK(last_file == MPI_FILE_NULL);
    calls = 0;
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    OK(MPI_Errhandler_free(&of_files));
    OK(MPI_Errhandler_free(&handler));
}

static void in_status(void) {
    enum { N = 3 };
    MPI_Request requests[N];
    MPI_Status statuses[N];
    int word[N] = {0}, two[2] = {1, 2}, rank, outcount, indices[N];
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    for (int failing = 0; failing <= N; failing++) {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 1) {
            for (int i = 0; i < N; i++) OK(MPI_Send(two, i == failing ? 2 : 1, MPI_INT, 0, i, MPI_COMM_WORLD));
            continue;
        }
        for (int i = 0; i < N; i++) {
            statuses[i].MPI_ERROR = 77;
            OK(MPI_Irecv(&word[i], 1, MPI_INT, 1, i, MPI_COMM_WORLD, &requests[i]));
        }
        calls = last_code = 0;
        int code = MPI_Waitall(N, requests, statuses);
        if (failing == N) {
            OK(code);
            SAME(calls, 0);
            for (int i = 0; i < N; i++) SAME(statuses[i].MPI_ERROR, 77);
            continue;
        }
        SAME(code, MPI_ERR_IN_STATUS);
        SAME(calls, 1);
        SAME(last_code, MPI_ERR_TRUNCATE);
        CHECK(last_comm == MPI_COMM_WORLD);
        for (int i = 0; i < N; i++) SAME(statuses[i].MPI_ERROR, i == failing ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
    }
    /* Some of several, and those that are null. */
    if (rank == 0) {
        requests[0] = MPI_REQUEST_NULL;
        statuses[0].MPI_ERROR = statuses[1].MPI_ERROR = 77;
        OK(MPI_Irecv(word, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, &requests[1]));
        OK(MPI_Waitsome(2, requests, &outcount, indices, statuses));
        SAME(outcount, 1);
        SAME(indices[0], 1);
        SAME(statuses[0].MPI_ERROR, 77);
        OK(MPI_Waitall(2, requests, statuses));
        SAME(statuses[0].MPI_ERROR, MPI_SUCCESS);
    } else {
        OK(MPI_Send(two, 1, MPI_INT, 0, 9, MPI_COMM_WORLD));
    }
}

/* The first failure of a call decides whose handler is invoked. */
static void two_comms(void) {
    MPI_Comm dup;
    MPI_Request requests[2];
    int rank, word[2], two[2] = {1, 2};
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    if (rank == 1) {
        OK(MPI_Send(two, 2, MPI_INT, 0, 0, MPI_COMM_WORLD));
        OK(MPI_Send(two, 2, MPI_INT, 0, 0, dup));
    } else {
        OK(MPI_Irecv(&word[0], 1, MPI_INT, 1, 0, dup, &requests[0]));
        OK(MPI_Irecv(&word[1], 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &requests[1]));
        calls = 0;
        SAME(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE), MPI_ERR_IN_STATUS);
        once(dup);
    }
    OK(MPI_Comm_free(&dup));
}

int main(int argc, char **argv) {
    OK(MPI_Init(&argc, &argv));
    objects();
    in_status();
    two_comms();
    MPI_Finalize();
    return verdict();
}
