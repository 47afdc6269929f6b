/* Messages of every size around the protocols' limits, to receives that are posted before, that come later, that are
 * too small, that take any source, and that scatter what they get; and the senders' other modes.
 * RANKS: 3
 */
#include "check.h"

enum { MOST = 300 << 10 };
static const int sizes[] = {40, 41, 16383, 16384, 16385, 16425, 32768, 65536, 65577, 100001, 131071, 131072, 131073, MOST};
enum { SIZES = sizeof sizes / sizeof *sizes };
static unsigned char out[MOST], in[MOST + 64];

static void fill(int bytes, int seed)
{
    for (int i = 0; i < bytes; i++) out[i] = (unsigned char)(i * 7 + i / 251 + seed);
}

static int wrong(const unsigned char *got, int bytes, int seed)
{
    for (int i = 0; i < bytes; i++) {
        if (got[i] != (unsigned char)(i * 7 + i / 251 + seed)) return i + 1;
    }
    return 0;
}

/* Rank 0 waits until ranks 1 and 2 say that they are ready, and then sends. */
static void posted(int rank, int bytes)
{
    MPI_Request request;
    MPI_Status status;
    int got;
    memset(in, 0xee, sizeof in);
    if (rank > 0) {
        MPI_Irecv(in, bytes + 64, MPI_BYTE, rank == 1 ? 0 : MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &request);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        MPI_Wait(&request, &status);
        MPI_Get_count(&status, MPI_BYTE, &got);
        CHECK(got == bytes);
        CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == 5);
        CHECK(wrong(in, bytes, rank) == 0);
        CHECK(in[bytes] == 0xee);
    } else {
        for (int to = 1; to <= 2; to++) MPI_Recv(NULL, 0, MPI_BYTE, to, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int to = 1; to <= 2; to++) {
            fill(bytes, to);
            MPI_Send(out, bytes, MPI_BYTE, to, 5, MPI_COMM_WORLD);
            memset(out, 0, sizeof out);
        }
    }
}

/* Rank 1 probes for the last of three messages and receives them backwards;
 * the middle one is too long for its receive. */
static void unexpected(int rank, int bytes)
{
    MPI_Request requests[3];
    MPI_Status status;
    int got, class;
    if (rank == 0) {
        static unsigned char copies[3][MOST];
        for (int i = 0; i < 3; i++) {
            fill(bytes, i);
            memcpy(copies[i], out, (size_t)bytes);
            MPI_Isend(copies[i], bytes, MPI_BYTE, 1, i, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    } else if (rank == 1) {
        MPI_Probe(0, 2, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &got);
        CHECK(got == bytes);
        for (int i = 2; i >= 0; i--) {
            int room = i == 1 ? bytes - 1 : bytes;
            memset(in, 0xee, sizeof in);
            MPI_Error_class(MPI_Recv(in, room, MPI_BYTE, 0, i, MPI_COMM_WORLD, &status), &class);
            CHECK(class == (i == 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
            CHECK(i == 1 || wrong(in, bytes, i) == 0);
            CHECK(in[room] == 0xee);
        }
    }
}

/* A receive that is posted and too small. */
static void truncated(int rank, int bytes)
{
    MPI_Request request;
    int class;
    if (rank == 1) {
        memset(in, 0xee, sizeof in);
        MPI_Irecv(in, bytes / 2, MPI_BYTE, 0, 8, MPI_COMM_WORLD, &request);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        MPI_Error_class(MPI_Wait(&request, MPI_STATUS_IGNORE), &class);
        CHECK(class == MPI_ERR_TRUNCATE);
        CHECK(in[bytes / 2] == 0xee);
    } else if (rank == 0) {
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out, bytes, MPI_BYTE, 1, 8, MPI_COMM_WORLD);
    }
}

/* Every second byte on one side, a run on the other; sent in each mode. */
static void scattered(int rank, int bytes)
{
    MPI_Datatype every_second;
    int half = bytes / 2;
    MPI_Type_vector(half, 1, 2, MPI_BYTE, &every_second);
    MPI_Type_commit(&every_second);
    if (rank == 0) {
        fill(half, 3);
        MPI_Send(out, half, MPI_BYTE, 1, 6, MPI_COMM_WORLD);
        MPI_Ssend(out, half, MPI_BYTE, 1, 7, MPI_COMM_WORLD);
        fill(bytes, 4);
        MPI_Send(out, 1, every_second, 1, 6, MPI_COMM_WORLD);
    } else if (rank == 1) {
        memset(in, 0xee, sizeof in);
        MPI_Recv(in, 1, every_second, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < half; i++) CHECK(in[2 * i] == (unsigned char)(i * 7 + i / 251 + 3));
        for (int i = 0; i + 1 < half; i++) CHECK(in[2 * i + 1] == 0xee);
        MPI_Recv(in, half, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(wrong(in, half, 3) == 0);
        MPI_Recv(in, half, MPI_BYTE, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < half; i++) CHECK(in[i] == (unsigned char)(2 * i * 7 + 2 * i / 251 + 4));
    }
    MPI_Type_free(&every_second);
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < SIZES; i++) {
        posted(rank, sizes[i]);
        unexpected(rank, sizes[i]);
        truncated(rank, sizes[i]);
        scattered(rank, sizes[i]);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return verdict();
}
