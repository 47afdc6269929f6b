/* MPI_Sendrecv_replace and MPI_Isendrecv_replace: events of both halves say what the user passed, although the send
 * half is made of a copy (PERUSE 2.0 section 4.2).
 * RANKS: 1 2
 */
#include "peruse_trace.h"

enum { TAG = 7, MOST_PAIRS = 40000 };
static struct { double value; int index; } pairs[MOST_PAIRS];
static int rank, size;

static void specs_are(int count, MPI_Datatype type)
{
    int sent = 0, received = 0;
    for (int i = 0; i < traced; i++) {
        const peruse_comm_spec_t *s = &trace[i].spec;
        /* Of a message that no receive has met nothing is known. */
        if (s->buf == NULL) continue;
        if (s->operation == PERUSE_SEND) sent++;
        else received++;
        CHECK(s->buf == pairs && s->datatype == type);
        SAME(s->count, count);
        SAME(s->tag, TAG);
    }
    CHECK(sent >= 3 && received >= 3);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    trace_open(MPI_COMM_WORLD, TAG);
    int peer = (rank + 1) % size, counts[] = {1, 100, MOST_PAIRS};
    MPI_Datatype types[] = {MPI_DOUBLE_INT, MPI_FLOAT_INT};
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 2; j++) {
            MPI_Request r;
            OK(MPI_Sendrecv_replace(pairs, counts[i], types[j], peer, TAG, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            specs_are(counts[i], types[j]);
            traced = 0;
            OK(MPI_Isendrecv_replace(pairs, counts[i], types[j], peer, TAG, peer, TAG, MPI_COMM_WORLD, &r));
            OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
            specs_are(counts[i], types[j]);
            traced = 0;
        }
    }
    trace_close();
    MPI_Finalize();
    return verdict();
}
