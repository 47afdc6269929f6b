/* Every rank sends every other one a series of messages, and receives what probes find: the next one of a sender and a
 * tag, of a sender, or of anybody, by each kind of probe and of receive. Some come through a communicator of their own,
 * and some are received while another receive is posted. Each is the one that was probed, and none overtakes another.
 * RANKS: 2 4
 */
#include "check.h"

enum { EACH = 400, TAGS = 3, MOST = 200000 };

static unsigned long long state;

static int draw(int below)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (int)((state >> 33) % (unsigned)below);
}

/* Bytes of message `i` of a series: mostly few, some in several records, some that must be asked for. */
static int bytes_of(int from, int to, int i)
{
    static const int sizes[] = {0, 4, 20, 40, 41, 300, 2000, 9000, 40000, 70000, MOST};
    unsigned at = (unsigned)(from * 31 + to * 17 + i * 7) * 2654435761u >> 8;
    return at % 8 ? sizes[at % 7] : sizes[at / 8 % 11];
}

static int tag_of(int from, int to, int i) { return (from + 2 * to + i * i) % TAGS; }

int main(void)
{
    int rank, size;
    MPI_Comm other;
    MPI_Init(NULL, NULL);
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    state = (unsigned long long)rank + 1;
    unsigned char *out = malloc(MOST), *in = malloc(MOST);
    int *sent = calloc((size_t)size, sizeof *sent), *got = calloc((size_t)size * TAGS, sizeof *got), left = EACH * (size - 1);
    MPI_Request *sends = malloc((size_t)(EACH * size) * sizeof *sends), posted = MPI_REQUEST_NULL;
    int begun = 0, never;
    memset(out, rank + 1, MOST);
    OK(MPI_Irecv(&never, 1, MPI_INT, MPI_ANY_SOURCE, TAGS, other, &posted));
    while (left > 0 || begun < EACH * (size - 1)) {
        /* A few sends, to anybody. */
        for (int n = draw(6); n > 0 && begun < EACH * (size - 1); n--) {
            int to = draw(size);
            while (to == rank || sent[to] == EACH) to = (to + 1) % size;
            int i = sent[to]++;
            OK(MPI_Isend(out, bytes_of(rank, to, i), MPI_BYTE, to, tag_of(rank, to, i), i % 5 ? MPI_COMM_WORLD : other, &sends[begun++]));
        }
        /* A probe, by which a message may come. */
        MPI_Comm comm = draw(5) ? MPI_COMM_WORLD : other;
        int source = draw(3) ? draw(size) : MPI_ANY_SOURCE, tag = draw(2) ? draw(TAGS) : MPI_ANY_TAG, there = 0, bytes, again;
        int matched = draw(4) == 0;
        MPI_Status status, second;
        MPI_Message message;
        if (matched) OK(MPI_Improbe(source, tag, comm, &there, &message, &status));
        else OK(MPI_Iprobe(source, tag, comm, &there, &status));
        if (!there) continue;
        int from = status.MPI_SOURCE, of = status.MPI_TAG;
        CHECK(source == MPI_ANY_SOURCE || source == from);
        CHECK(tag == MPI_ANY_TAG || tag == of);
        OK(MPI_Get_count(&status, MPI_BYTE, &bytes));
        /* The next of that sender with that tag on that communicator. */
        int *next = &got[from * TAGS + of], i = 0;
        for (int seen = 0; i < EACH; i++) {
            if (tag_of(from, rank, i) != of || (i % 5 == 0) != (comm == other)) continue;
            if (seen++ == (comm == other ? *next >> 16 : *next & 0xffff)) break;
        }
        *next += comm == other ? 1 << 16 : 1;
        SAME(bytes, bytes_of(from, rank, i));
        if (!matched && draw(2)) {
            /* It is still there, whatever else has come. */
            OK(MPI_Iprobe(from, of, comm, &again, &second));
            CHECK(again && second.MPI_SOURCE == from && second.MPI_TAG == of);
            OK(MPI_Probe(from, of, comm, &second));
            OK(MPI_Get_count(&second, MPI_BYTE, &again));
            SAME(again, bytes);
        }
        memset(in, 0, (size_t)bytes);
        if (matched) {
            OK(MPI_Mrecv(in, bytes, MPI_BYTE, &message, &second));
        } else if (draw(2)) {
            OK(MPI_Recv(in, bytes, MPI_BYTE, from, of, comm, &second));
        } else {
            MPI_Request request;
            OK(MPI_Irecv(in, bytes, MPI_BYTE, from, of, comm, &request));
            OK(MPI_Wait(&request, &second));
        }
        OK(MPI_Get_count(&second, MPI_BYTE, &again));
        SAME(again, bytes);
        CHECK(bytes == 0 || (in[0] == from + 1 && in[bytes - 1] == from + 1));
        left--;
    }
    OK(MPI_Waitall(begun, sends, MPI_STATUSES_IGNORE));
    OK(MPI_Cancel(&posted));
    OK(MPI_Wait(&posted, MPI_STATUS_IGNORE));
    OK(MPI_Comm_free(&other));
    free(out), free(in), free(sent), free(got), free(sends);
    MPI_Finalize();
    return verdict();
}
