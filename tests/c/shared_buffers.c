/* Large messages between buffers of which both, one or none come from MPI_Alloc_mem: of every size around the
 * thresholds, from the middle of an allocation, to receives posted before and later, of any source, too small,
 * scattered on either side; in all modes; probed for, cancelled, to oneself;
 * with memory that was freed and taken again in between.
 * RANKS: 2 3
 */
#include "check.h"

enum { MOST = 1 << 20, EDGE = 100, WINDOW = 16 };
static const int sizes[] = {100, 16384, 16385, 20001, 65535, 65536, 65537, 131072, 131073, 300000, MOST};
enum { SIZES = sizeof sizes / sizeof *sizes };
static int rank, ranks;

/* A buffer of MOST bytes between two edges, from MPI_Alloc_mem or malloc. */
static unsigned char *take(int shared)
{
    unsigned char *at;
    if (shared)
        OK(MPI_Alloc_mem(MOST + 2 * EDGE, MPI_INFO_NULL, &at));
    else
        at = malloc(MOST + 2 * EDGE);
    memset(at, 0xee, MOST + 2 * EDGE);
    return at + EDGE;
}

static void give(int shared, unsigned char *buffer)
{
    for (int i = 1; i <= EDGE; i++) CHECK(buffer[-i] == 0xee && buffer[MOST + i - 1] == 0xee);
    if (shared)
        OK(MPI_Free_mem(buffer - EDGE));
    else
        free(buffer - EDGE);
}

static unsigned char byte(int i, int seed) { return (unsigned char)(i * 7 + i / 251 + seed); }

static void fill(unsigned char *at, int bytes, int seed)
{
    for (int i = 0; i < bytes; i++) at[i] = byte(i, seed);
}

static int wrong(const unsigned char *at, int bytes, int seed)
{
    for (int i = 0; i < bytes; i++)
        if (at[i] != byte(i, seed)) return i + 1;
    return 0;
}

static void ready(int from, int to)
{
    if (rank == from) OK(MPI_Send(NULL, 0, MPI_BYTE, to, 1, MPI_COMM_WORLD));
    if (rank == to) OK(MPI_Recv(NULL, 0, MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/* To a receive that is posted, of one source or any; the message begins in the middle of an allocation. */
static void posted(unsigned char *out, unsigned char *in, int bytes)
{
    int at = bytes < MOST / 2 ? 12345 : 0, got;
    MPI_Status status;
    MPI_Request request;
    for (int any = 0; any < 2; any++) {
        if (rank == 1) {
            memset(in, 0xee, MOST);
            OK(MPI_Irecv(in + at, bytes, MPI_BYTE, any ? MPI_ANY_SOURCE : 0, any ? MPI_ANY_TAG : 5, MPI_COMM_WORLD, &request));
        }
        ready(1, 0);
        if (rank == 0) {
            fill(out + at, bytes, any);
            OK(any ? MPI_Ssend(out + at, bytes, MPI_BYTE, 1, 5, MPI_COMM_WORLD) : MPI_Send(out + at, bytes, MPI_BYTE, 1, 5, MPI_COMM_WORLD));
            memset(out + at, 0, (size_t)bytes);
        }
        if (rank == 1) {
            OK(MPI_Wait(&request, &status));
            OK(MPI_Get_count(&status, MPI_BYTE, &got));
            SAME(got, bytes);
            CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == 5);
            SAME(wrong(in + at, bytes, any), 0);
            CHECK((at == 0 || in[at - 1] == 0xee) && (at + bytes == MOST || in[at + bytes] == 0xee));
        }
    }
}

/* Both ways at once, windows of messages, received in another order than sent; the last is received too short. */
static void windows(unsigned char *out, unsigned char *in, int bytes)
{
    int each = bytes < MOST / WINDOW ? bytes : MOST / WINDOW, class;
    MPI_Request requests[2 * WINDOW];
    MPI_Status statuses[2 * WINDOW];
    if (rank > 1) return;
    fill(out, MOST, rank);
    memset(in, 0xee, MOST);
    for (int i = 0; i < WINDOW; i++) OK(MPI_Isend(out + i * each, each, MPI_BYTE, 1 - rank, i, MPI_COMM_WORLD, &requests[i]));
    OK(MPI_Probe(1 - rank, 3, MPI_COMM_WORLD, &statuses[0]));
    OK(MPI_Get_count(&statuses[0], MPI_BYTE, &class));
    SAME(class, each);
    for (int i = WINDOW - 1; i >= 0; i--)
        OK(MPI_Irecv(in + i * each, i == 0 ? each / 2 : each, MPI_BYTE, 1 - rank, i, MPI_COMM_WORLD, &requests[WINDOW + i]));
    SAME(MPI_Waitall(2 * WINDOW, requests, statuses), MPI_ERR_IN_STATUS);
    MPI_Error_class(statuses[WINDOW].MPI_ERROR, &class);
    SAME(class, MPI_ERR_TRUNCATE);
    for (int i = each; i < WINDOW * each; i++) {
        if (in[i] == byte(i, 1 - rank)) continue;
        SAME(i, -1);
        break;
    }
    CHECK(in[each / 2] == 0xee);
}

/* Every second byte on one side, a run on the other. */
static void scattered(unsigned char *out, unsigned char *in, int bytes)
{
    int half = bytes / 2;
    MPI_Datatype second;
    OK(MPI_Type_vector(half, 1, 2, MPI_BYTE, &second));
    OK(MPI_Type_commit(&second));
    fill(out, bytes, 3);
    if (rank == 0) {
        OK(MPI_Send(out, half, MPI_BYTE, 1, 6, MPI_COMM_WORLD));
        OK(MPI_Send(out, 1, second, 1, 6, MPI_COMM_WORLD));
    } else if (rank == 1) {
        memset(in, 0xee, MOST);
        OK(MPI_Recv(in, 1, second, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < half; i++) {
            if (in[2 * i] == byte(i, 3) && (i + 1 == half || in[2 * i + 1] == 0xee)) continue;
            SAME(i, -1);
            break;
        }
        OK(MPI_Recv(in, half, MPI_BYTE, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < half; i++) {
            if (in[i] == byte(2 * i, 3)) continue;
            SAME(i, -1);
            break;
        }
    }
    OK(MPI_Type_free(&second));
}

/* A send that nobody receives can be cancelled; its successor arrives. */
static void cancelled(unsigned char *out, unsigned char *in, int bytes)
{
    MPI_Request request;
    MPI_Status status;
    int flag;
    if (rank == 0) {
        fill(out, bytes, 8);
        OK(MPI_Issend(out, bytes, MPI_BYTE, 1, 77, MPI_COMM_WORLD, &request));
        OK(MPI_Cancel(&request));
        OK(MPI_Wait(&request, &status));
        OK(MPI_Test_cancelled(&status, &flag));
        CHECK(flag);
        OK(MPI_Send(out, bytes, MPI_BYTE, 1, 78, MPI_COMM_WORLD));
    } else if (rank == 1) {
        OK(MPI_Recv(in, bytes, MPI_BYTE, 0, 78, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        SAME(wrong(in, bytes, 8), 0);
        OK(MPI_Iprobe(0, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);
    }
}

/* Round the ring of all ranks, to oneself, and from a buffer attached for buffered sends. */
static void others(unsigned char *out, unsigned char *in, int bytes)
{
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    fill(out, bytes, rank);
    OK(MPI_Sendrecv(out, bytes, MPI_BYTE, right, 9, in, bytes, MPI_BYTE, left, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    SAME(wrong(in, bytes, left), 0);
    memset(in, 0, (size_t)bytes);
    OK(MPI_Sendrecv(out, bytes, MPI_BYTE, rank, 9, in, bytes, MPI_BYTE, rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    SAME(wrong(in, bytes, rank), 0);
    char *attached;
    int room = bytes + MPI_BSEND_OVERHEAD;
    OK(MPI_Alloc_mem(room, MPI_INFO_NULL, &attached));
    OK(MPI_Buffer_attach(attached, room));
    OK(MPI_Bsend(out, bytes, MPI_BYTE, right, 10, MPI_COMM_WORLD));
    OK(MPI_Recv(in, bytes, MPI_BYTE, left, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    SAME(wrong(in, bytes, left), 0);
    OK(MPI_Buffer_detach(&attached, &room));
    OK(MPI_Free_mem(attached));
    OK(MPI_Bcast(out, bytes, MPI_BYTE, 0, MPI_COMM_WORLD));
    SAME(wrong(out, bytes, 0), 0);
}

int main(int argc, char **argv)
{
    int threads;
    MPI_Init_thread(&argc, &argv, argc > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    errors_return();
    for (int sides = 0; sides < 4; sides++) {
        for (int i = 0; i < SIZES; i++) {
            /* Freed and taken again each time: what peers have mapped is another's memory meanwhile. */
            unsigned char *out = take(sides & 1), *in = take(sides >> 1);
            posted(out, in, sizes[i]);
            windows(out, in, sizes[i]);
            scattered(out, in, sizes[i]);
            cancelled(out, in, sizes[i]);
            others(out, in, sizes[i]);
            OK(MPI_Barrier(MPI_COMM_WORLD));
            memset(out, 0xee, MOST);
            memset(in, 0xee, MOST);
            give(sides & 1, out);
            give(sides >> 1, in);
        }
    }
    MPI_Finalize();
    return verdict();
}
