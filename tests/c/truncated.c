/* A message that is longer than its receive's buffer: its beginning arrives, whatever its size and whoever copies it,
 * and nothing behind the buffer is touched. The receive raises the same events of transfer as one that fits.
 * RANKS: 2
 */
#include "peruse_trace.h"

enum { EDGE = 64, LONGEST = 270000 };
static const int sizes[] = {2, 9, 100, 2500, 9000, 40000, LONGEST};
static int rank;

static void *take(int shared, size_t bytes)
{
    void *at;
    if (!shared) return malloc(bytes);
    OK(MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &at));
    return at;
}

static void give(int shared, void *at)
{
    if (!shared) free(at);
    else OK(MPI_Free_mem(at));
}

enum when { POSTED, UNEXPECTED, MATCHED_PROBE, NONBLOCKING, WAYS };

/* One message of `size` integers to a receive of `room`, every `stride`-th in memory. */
static void once(int size, int room, enum when when, int shared, int stride)
{
    const int tag = 7;
    if (rank == 0) {
        int *out = take(shared & 1, sizeof(int) * size);
        for (int i = 0; i < size; i++) out[i] = 3 * i + size;
        if (when == POSTED || when == NONBLOCKING) OK(MPI_Recv(NULL, 0, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MPI_Request request;
        OK(MPI_Isend(out, size, MPI_INT, 1, tag, MPI_COMM_WORLD, &request));
        if (when == UNEXPECTED) OK(MPI_Send(NULL, 0, MPI_INT, 1, 1, MPI_COMM_WORLD));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        give(shared & 1, out);
        return;
    }
    MPI_Datatype type = MPI_INT;
    if (stride > 1) {
        OK(MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)sizeof(int) * stride, &type));
        OK(MPI_Type_commit(&type));
    }
    const int all = room * stride + EDGE;
    int *in = take(shared >> 1 & 1, sizeof(int) * all);
    for (int i = 0; i < all; i++) in[i] = -1;
    MPI_Status status;
    MPI_Message message;
    MPI_Request request;
    switch (when) {
    case POSTED:
        OK(MPI_Irecv(in, room, type, 0, tag, MPI_COMM_WORLD, &request));
        OK(MPI_Send(NULL, 0, MPI_INT, 0, 1, MPI_COMM_WORLD));
        CLASS(MPI_Wait(&request, &status), MPI_ERR_TRUNCATE);
        break;
    case UNEXPECTED:
        OK(MPI_Recv(NULL, 0, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CLASS(MPI_Recv(in, room, type, 0, tag, MPI_COMM_WORLD, &status), MPI_ERR_TRUNCATE);
        break;
    case MATCHED_PROBE:
        OK(MPI_Mprobe(0, tag, MPI_COMM_WORLD, &message, &status));
        CLASS(MPI_Mrecv(in, room, type, &message, &status), MPI_ERR_TRUNCATE);
        break;
    default:
        OK(MPI_Irecv(in, room, type, 0, tag, MPI_COMM_WORLD, &request));
        OK(MPI_Send(NULL, 0, MPI_INT, 0, 1, MPI_COMM_WORLD));
        for (int done = 0; !done;) {
            int code = MPI_Test(&request, &done, &status);
            if (done) CLASS(code, MPI_ERR_TRUNCATE);
        }
    }
    int count, wrong = 0;
    OK(MPI_Get_count(&status, MPI_INT, &count));
    SAME(count, room);
    SAME(status.MPI_SOURCE, 0);
    SAME(status.MPI_TAG, tag);
    for (int i = 0; i < all && !wrong; i++) {
        int is_data = i % stride == 0 && i / stride < room;
        if (in[i] != (is_data ? 3 * (i / stride) + size : -1)) wrong = i + 1;
    }
    if (wrong) fprintf(stderr, "%d of %d integers, way %d, shared %d, stride %d:\n", room, size, when, shared, stride);
    SAME(wrong, 0);
    give(shared >> 1 & 1, in);
    if (stride > 1) OK(MPI_Type_free(&type));
}

static void all(int traces)
{
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int when = 0; when < WAYS; when++)
            for (int shared = 0; shared < 4; shared++)
                for (int stride = 1; stride < 3; stride++)
                    for (int r = 0; r < 3; r++) {
                        const int room = r == 0 ? 0 : r == 1 ? sizes[s] / 2 : sizes[s] - 1;
                        traced = 0;
                        once(sizes[s], room, when, shared, stride);
                        if (!traces || rank != 1) continue;
                        MPI_Aint id = nth_id(PERUSE_COMM_REQ_ACTIVATE, 0);
                        const char *of = letters(0, id);
                        if (!strchr(of, 'B') || !strchr(of, 'E') || !strchr(of, 'C')) {
                            fprintf(stderr, "%d of %d integers, way %d: events %s\n", room, sizes[s], when, of);
                            failures++;
                        }
                    }
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    errors_return();
    all(0);
    trace_open(MPI_COMM_WORLD, 7);
    all(1);
    trace_close();
    OK(MPI_Finalize());
    return verdict();
}
