/* Every kind of call raises its events in the specified order, with ids that belong together (PERUSE 2.0 section 4.3).
 * One rank talks to itself, so that the order of both sides is fixed.
 * RANKS: 1
 */
#include "peruse_trace.h"

enum { TAG = 7 };
static int out[4] = {1, 2, 3, 4}, in[4];

static void expected_receive(void)
{
    MPI_Request r;
    OK(MPI_Irecv(in, 4, MPI_INT, 0, TAG, MPI_COMM_WORLD, &r));
    OK(MPI_Send(out, 4, MPI_INT, 0, TAG, MPI_COMM_WORLD));
    OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    scene("expected", "A()IAa[]mRBEBECCNN");
    MPI_Aint receive = nth_id(PERUSE_COMM_REQ_ACTIVATE, 0), send = nth_id(PERUSE_COMM_REQ_ACTIVATE, 1);
    SAME(strcmp(letters(0, receive), "AIRBECN"), 0);
    SAME(strcmp(letters(0, send), "ABECN"), 0);
    SAME(strcmp(letters(0, nth_id(PERUSE_COMM_MSG_ARRIVED, 0)), "am"), 0);
    SAME(strcmp(letters(0, nth_id(PERUSE_COMM_SEARCH_POSTED_Q_BEGIN, 0)), "[]"), 0);
    SAME(strcmp(letters(0, nth_id(PERUSE_COMM_SEARCH_UNEX_Q_BEGIN, 0)), "()"), 0);
    scene_over();
}

static void unexpected_receive(void)
{
    MPI_Request s;
    OK(MPI_Isend(out, 4, MPI_INT, 0, TAG, MPI_COMM_WORLD, &s));
    OK(MPI_Recv(in, 4, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&s, MPI_STATUS_IGNORE));
    scene("unexpected", "Aa[]iBECA()MrBECNN");
    SAME(strcmp(letters(0, nth_id(PERUSE_COMM_MSG_ARRIVED, 0)), "air"), 0);
    SAME(strcmp(letters(0, nth_id(PERUSE_COMM_REQ_ACTIVATE, 1)), "AMBECN"), 0);
    SAME(nth_spec(PERUSE_COMM_REQ_ACTIVATE, 1)->peer, MPI_ANY_SOURCE);
    SAME(nth_spec(PERUSE_COMM_SEARCH_UNEX_Q_END, 0)->peer, MPI_ANY_SOURCE);
    SAME(nth_spec(PERUSE_COMM_REQ_MATCH_UNEX, 0)->peer, 0);
    SAME(nth_spec(PERUSE_COMM_REQ_MATCH_UNEX, 0)->tag, TAG);
    const peruse_comm_spec_t *message = nth_spec(PERUSE_COMM_MSG_INSERT_IN_UNEX_Q, 0);
    CHECK(message->buf == NULL && message->datatype == MPI_BYTE && message->count == (int)sizeof out);
    scene_over();
}

static void proc_null(void)
{
    OK(MPI_Send(out, 4, MPI_INT, MPI_PROC_NULL, TAG, MPI_COMM_WORLD));
    OK(MPI_Recv(in, 4, MPI_INT, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    scene("proc_null", "ACNACN");
    scene_over();
}

static void proc_null_message(void)
{
    MPI_Message message;
    MPI_Request r;
    MPI_Status status;
    int flag;
    OK(MPI_Mprobe(MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
    SAME(message, MPI_MESSAGE_NO_PROC);
    OK(MPI_Mrecv(in, 4, MPI_INT, &message, &status));
    SAME(message, MPI_MESSAGE_NULL);
    SAME(status.MPI_SOURCE, MPI_PROC_NULL);
    OK(MPI_Improbe(MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE));
    OK(MPI_Imrecv(in, 4, MPI_INT, &message, &r));
    SAME(message, MPI_MESSAGE_NULL);
    OK(MPI_Wait(&r, &status));
    SAME(status.MPI_SOURCE, MPI_PROC_NULL);
    scene("no message", "ACNACN");
    for (int i = 0; i < 2; i++) {
        const peruse_comm_spec_t *spec = nth_spec(PERUSE_COMM_REQ_ACTIVATE, i);
        CHECK(spec->buf == in && spec->count == 4 && spec->datatype == MPI_INT);
        SAME(spec->peer, MPI_PROC_NULL);
    }
    scene_over();
}

static void cancelled(void)
{
    MPI_Request r;
    MPI_Status status;
    int flag;
    OK(MPI_Irecv(in, 4, MPI_INT, 0, TAG, MPI_COMM_WORLD, &r));
    OK(MPI_Cancel(&r));
    OK(MPI_Wait(&r, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag);
    scene("cancelled receive", "A()IRCN");
    scene_over();
}

static void matched_probe(void)
{
    MPI_Request s;
    MPI_Message message;
    OK(MPI_Isend(out, 4, MPI_INT, 0, TAG, MPI_COMM_WORLD, &s));
    OK(MPI_Mprobe(0, TAG, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
    OK(MPI_Mrecv(in, 4, MPI_INT, &message, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&s, MPI_STATUS_IGNORE));
    scene("matched probe", "Aa[]iBEC()rAMBECNN");
    scene_over();
}

static void plain_probe(void)
{
    MPI_Request s;
    OK(MPI_Isend(out, 4, MPI_INT, 0, TAG, MPI_COMM_WORLD, &s));
    OK(MPI_Probe(0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    scene("probe", "Aa[]iBEC");
    scene_over();
    OK(MPI_Recv(in, 4, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&s, MPI_STATUS_IGNORE));
    scene_over();
}

static void persistent(void)
{
    MPI_Request r[2];
    OK(MPI_Recv_init(in, 4, MPI_INT, 0, TAG, MPI_COMM_WORLD, &r[0]));
    OK(MPI_Send_init(out, 4, MPI_INT, 0, TAG, MPI_COMM_WORLD, &r[1]));
    scene("init calls", "");
    for (int turn = 0; turn < 3; turn++) {
        OK(MPI_Startall(2, r));
        OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
        scene("persistent", "A()IAa[]mRBEBECCNN");
        scene_over();
    }
    OK(MPI_Request_free(&r[0]));
    OK(MPI_Request_free(&r[1]));
    scene("free", "");
}

/* A buffered send is one request: what the library does with its copy is its own affair. */
static void buffered(void)
{
    static char room[4096];
    void *back;
    int bytes;
    OK(MPI_Buffer_attach(room, sizeof room));
    OK(MPI_Bsend(out, 4, MPI_INT, 0, TAG, MPI_COMM_WORLD));
    OK(MPI_Recv(in, 4, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Buffer_detach(&back, &bytes));
    MPI_Aint send = nth_id(PERUSE_COMM_REQ_ACTIVATE, 0), receive = nth_id(PERUSE_COMM_REQ_ACTIVATE, 1);
    SAME(strcmp(letters(0, send), "ABECN"), 0);
    SAME(strcmp(letters(0, receive), "AMBECN"), 0);
    SAME((int)strlen(letters(1, 0)), 5 + 6 + 3 + 2 + 2);
    scene_over();
}

/* Messages that came while nobody listened still have ids of their own when they go. */
static void opened_late(void)
{
    MPI_Request s[2];
    for (int i = 0; i < 2; i++) OK(MPI_Isend(out, 4, MPI_INT, 0, TAG, MPI_COMM_WORLD, &s[i]));
    trace_open(MPI_COMM_WORLD, 0);
    for (int i = 0; i < 2; i++) OK(MPI_Recv(in, 4, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Waitall(2, s, MPI_STATUSES_IGNORE));
    MPI_Aint first = nth_id(PERUSE_COMM_MSG_REMOVE_FROM_UNEX_Q, 0), second = nth_id(PERUSE_COMM_MSG_REMOVE_FROM_UNEX_Q, 1);
    CHECK(first != second);
    trace_close();
    scene_over();
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    OK(PERUSE_Init());
    trace_open(MPI_COMM_WORLD, 0);
    expected_receive();
    unexpected_receive();
    proc_null();
    proc_null_message();
    cancelled();
    matched_probe();
    plain_probe();
    persistent();
    buffered();
    trace_close();
    OK(MPI_Send(out, 0, MPI_INT, MPI_PROC_NULL, TAG, MPI_COMM_WORLD));
    scene("nobody listens", "");
    opened_late();
    MPI_Finalize();
    return verdict();
}
