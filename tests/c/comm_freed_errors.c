/* Errors of operations that were pending when their communicator was freed are raised on it: it lives until they are
 * complete. Those of combined sends and receives are raised on their communicator, too.
 * RANKS: 2
 */
#include "check.h"

enum { LONG = 100, SHORT = 3, TAG = 5 };

static int rank, calls, called_with, out[LONG], in[LONG];
static MPI_Comm called_on;

static void note(MPI_Comm *comm, int *code, ...)
{
    calls++;
    called_on = *comm;
    called_with = *code;
}

static MPI_Errhandler handler;

static MPI_Comm fresh(void)
{
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, handler));
    calls = 0;
    return comm;
}

/* The handler of `comm` was called once with `class`. */
static void raised(MPI_Comm comm, int class)
{
    int of;
    SAME(calls, 1);
    SAME(called_on == comm, 1);
    OK(MPI_Error_class(called_with, &of));
    SAME(of, class);
    calls = 0;
}

enum kind { IRECV, TESTED, ALL, PERSISTENT, MATCHED, COMBINED, REPLACED, PARTITIONED, KINDS };

static void begin(enum kind kind, MPI_Comm comm, MPI_Request *request)
{
    MPI_Message message;
    int to = 1 - rank;
    switch (kind) {
    case PERSISTENT:
        OK(MPI_Recv_init(in, SHORT, MPI_INT, 0, TAG, comm, request));
        OK(MPI_Start(request));
        break;
    case MATCHED:
        OK(MPI_Mprobe(0, TAG, comm, &message, MPI_STATUS_IGNORE));
        OK(MPI_Imrecv(in, SHORT, MPI_INT, &message, request));
        break;
    case COMBINED:
        OK(MPI_Isendrecv(out, 1, MPI_INT, to, TAG, in, SHORT, MPI_INT, to, TAG, comm, request));
        break;
    case REPLACED:
        OK(MPI_Isendrecv_replace(in, SHORT, MPI_INT, to, TAG, to, TAG, comm, request));
        break;
    case PARTITIONED:
        OK(MPI_Precv_init(in, 1, SHORT, MPI_INT, 0, TAG, comm, MPI_INFO_NULL, request));
        OK(MPI_Start(request));
        break;
    default:
        OK(MPI_Irecv(in, SHORT, MPI_INT, 0, TAG, comm, request));
    }
}

static void receive(enum kind kind, int freed)
{
    MPI_Comm comm = fresh(), name = comm;
    MPI_Request request;
    MPI_Status status;
    int over = 0, code;
    begin(kind, comm, &request);
    if (freed) OK(MPI_Comm_free(&comm));
    /* One that must not be mistaken for the other. */
    MPI_Comm other;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &other));
    OK(MPI_Send(NULL, 0, MPI_INT, 0, TAG, MPI_COMM_WORLD));
    if (kind == TESTED) {
        do code = MPI_Test(&request, &over, &status);
        while (!over);
        CLASS(code, MPI_ERR_TRUNCATE);
        raised(name, MPI_ERR_TRUNCATE);
    } else if (kind == ALL) {
        CLASS(MPI_Waitall(1, &request, &status), MPI_ERR_IN_STATUS);
        SAME(status.MPI_ERROR, MPI_ERR_TRUNCATE);
        raised(name, MPI_ERR_TRUNCATE);
    } else {
        CLASS(MPI_Wait(&request, &status), MPI_ERR_TRUNCATE);
        raised(name, MPI_ERR_TRUNCATE);
    }
    if (request != MPI_REQUEST_NULL) OK(MPI_Request_free(&request));
    if (!freed) OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_free(&other));
    SAME(calls, 0);
}

static void send(enum kind kind, int freed)
{
    MPI_Comm comm = fresh();
    MPI_Request request;
    int got[LONG];
    if (kind == PARTITIONED) {
        OK(MPI_Psend_init(out, 1, LONG, MPI_INT, 1, TAG, comm, MPI_INFO_NULL, &request));
        OK(MPI_Start(&request));
        OK(MPI_Pready(0, request));
    } else {
        OK(MPI_Isend(out, LONG, MPI_INT, 1, TAG, comm, &request));
        if (kind == COMBINED || kind == REPLACED) OK(MPI_Recv(got, LONG, MPI_INT, 1, TAG, comm, MPI_STATUS_IGNORE));
    }
    if (freed) OK(MPI_Comm_free(&comm));
    OK(MPI_Recv(NULL, 0, MPI_INT, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (request != MPI_REQUEST_NULL) OK(MPI_Request_free(&request));
    if (!freed) OK(MPI_Comm_free(&comm));
    SAME(calls, 0);
}

/* A gather to which one member gives more than its root has room for. */
static void collective(int persistent)
{
    static const int counts[] = {1, 1}, places[] = {0, 1};
    MPI_Comm comm = fresh(), name = comm;
    MPI_Request request;
    int count = rank == 0 ? 1 : 2, code, class;
    if (persistent) {
        OK(MPI_Gatherv_init(out, count, MPI_INT, in, counts, places, MPI_INT, 0, comm, MPI_INFO_NULL, &request));
        OK(MPI_Start(&request));
    } else {
        OK(MPI_Igatherv(out, count, MPI_INT, in, counts, places, MPI_INT, 0, comm, &request));
    }
    OK(MPI_Comm_free(&comm));
    code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    OK(MPI_Error_class(code, &class));
    SAME(class, rank == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
    if (rank == 0) raised(name, MPI_ERR_TRUNCATE);
    SAME(calls, 0);
    if (request != MPI_REQUEST_NULL) OK(MPI_Request_free(&request));
}

int main(void)
{
    OK(MPI_Init(NULL, NULL));
    errors_return();
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_create_errhandler(note, &handler));
    for (enum kind kind = 0; kind < KINDS; kind++) {
        for (int freed = 0; freed < 2; freed++) {
            if (rank == 0) send(kind, freed);
            else receive(kind, freed);
        }
    }
    collective(0);
    collective(1);
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Finalize());
    return verdict();
}
