/* Errors of matched receives are raised on the communicator of the message;
 * those of messages that are not there, on MPI_COMM_SELF.
 * RANKS: 1
 */
#include "check.h"

static int of_world, of_self, of_dup;
static MPI_Comm dup;

static void handler(MPI_Comm *comm, int *code, ...) {
    (void)code;
    *(*comm == MPI_COMM_WORLD ? &of_world : *comm == MPI_COMM_SELF ? &of_self : &of_dup) += 1;
}

static void expect(int dups, int selfs) {
    SAME(of_dup, dups);
    SAME(of_self, selfs);
    SAME(of_world, 0);
}

static MPI_Request sent;
static int data[4] = {1, 2, 3, 4}, room[4];

static MPI_Message message(void) {
    MPI_Message found;
    OK(MPI_Isend(data, 4, MPI_INT, 0, 5, dup, &sent));
    OK(MPI_Mprobe(0, 5, dup, &found, MPI_STATUS_IGNORE));
    return found;
}

int main(int argc, char **argv) {
    MPI_Errhandler mine;
    MPI_Request request;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_create_errhandler(handler, &mine));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, mine));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, mine));
    OK(MPI_Comm_set_errhandler(dup, mine));

    MPI_Message found = message();
    CLASS(MPI_Mrecv(room, 1, MPI_INT, &found, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    expect(1, 0);
    OK(MPI_Wait(&sent, MPI_STATUS_IGNORE));

    /* An argument that is wrong leaves the message where it is. */
    found = message();
    CLASS(MPI_Mrecv(room, -1, MPI_INT, &found, MPI_STATUS_IGNORE), MPI_ERR_COUNT);
    expect(2, 0);
    CLASS(MPI_Imrecv(room, 4, MPI_DATATYPE_NULL, &found, &request), MPI_ERR_TYPE);
    expect(3, 0);
    OK(MPI_Imrecv(room, 1, MPI_INT, &found, &request));
    CLASS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    expect(4, 0);
    OK(MPI_Wait(&sent, MPI_STATUS_IGNORE));

    found = MPI_MESSAGE_NULL;
    CLASS(MPI_Mrecv(room, 1, MPI_INT, &found, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
    expect(4, 1);
    OK(MPI_Errhandler_free(&mine));
    OK(MPI_Comm_free(&dup));
    OK(MPI_Finalize());
    return verdict();
}
