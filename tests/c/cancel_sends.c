/* A send of any mode and size can be taken back while nobody has matched it, and only then.
 * RANKS: 2
 */
#include "check.h"
#include <stdlib.h>
#include <string.h>

enum { WANTED = 1, UNWANTED = 2, MODES = 3, LARGEST = 300000 };
static const int sizes[] = {0, 8, 4096, LARGEST};
static char data[LARGEST], got[LARGEST];

static MPI_Request start(int mode, int persistent, int bytes, int dest, int tag)
{
    MPI_Request request;
    if (persistent) {
        if (mode == 0) MPI_Send_init(data, bytes, MPI_CHAR, dest, tag, MPI_COMM_WORLD, &request);
        if (mode == 1) MPI_Bsend_init(data, bytes, MPI_CHAR, dest, tag, MPI_COMM_WORLD, &request);
        if (mode == 2) MPI_Ssend_init(data, bytes, MPI_CHAR, dest, tag, MPI_COMM_WORLD, &request);
        MPI_Start(&request);
    } else {
        if (mode == 0) MPI_Isend(data, bytes, MPI_CHAR, dest, tag, MPI_COMM_WORLD, &request);
        if (mode == 1) MPI_Ibsend(data, bytes, MPI_CHAR, dest, tag, MPI_COMM_WORLD, &request);
        if (mode == 2) MPI_Issend(data, bytes, MPI_CHAR, dest, tag, MPI_COMM_WORLD, &request);
    }
    return request;
}

/* Whether the send was cancelled; the request is gone afterwards. */
static int cancel(MPI_Request request)
{
    MPI_Status status;
    int flag, persistent;
    MPI_Request before = request;
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    persistent = request == before;
    if (persistent) MPI_Request_free(&request);
    return flag;
}

static void one(int mode, int persistent, int bytes, int rank, int dest)
{
    MPI_Status status;
    int flag, count;
    if (rank == 0) {
        memset(data, 'n', (size_t)bytes);
        CHECK(cancel(start(mode, persistent, bytes, dest, UNWANTED)));
        memset(data, 'y', (size_t)bytes);
        MPI_Request wanted = start(mode, persistent, bytes, dest, WANTED);
        if (dest == 0) {
            MPI_Recv(got, LARGEST, MPI_CHAR, 0, WANTED, MPI_COMM_WORLD, &status);
        } else {
            MPI_Recv(NULL, 0, MPI_CHAR, dest, WANTED, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* it has ours */
        }
        CHECK(!cancel(wanted));
    } else if (rank == dest) {
        MPI_Recv(got, LARGEST, MPI_CHAR, 0, WANTED, MPI_COMM_WORLD, &status);
        MPI_Send(NULL, 0, MPI_CHAR, 0, WANTED, MPI_COMM_WORLD);
    }
    if (rank == dest) {
        MPI_Get_count(&status, MPI_CHAR, &count);
        CHECK(count == bytes);
        CHECK(bytes == 0 || (got[0] == 'y' && got[bytes - 1] == 'y'));
        MPI_Iprobe(0, UNWANTED, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag);
    }
}

/* The last of many sends is taken back, and none before it, which have had the same request, or its place. */
static void last(int mode, int persistent, int rank, int dest)
{
    enum { MANY = 300 };
    static int value;
    int flag;
    MPI_Request request;
    MPI_Status status;
    if (rank == 0) {
        if (persistent && mode == 0) MPI_Send_init(&value, 1, MPI_INT, dest, UNWANTED, MPI_COMM_WORLD, &request);
        if (persistent && mode == 1) MPI_Bsend_init(&value, 1, MPI_INT, dest, UNWANTED, MPI_COMM_WORLD, &request);
        for (value = 0; value < MANY; value++) {
            if (persistent) MPI_Start(&request);
            else if (mode == 0) MPI_Isend(&value, 1, MPI_INT, dest, UNWANTED, MPI_COMM_WORLD, &request);
            else MPI_Ibsend(&value, 1, MPI_INT, dest, UNWANTED, MPI_COMM_WORLD, &request);
            if (value == MANY - 1) MPI_Cancel(&request);
            MPI_Wait(&request, &status);
        }
        MPI_Test_cancelled(&status, &flag);
        CHECK(flag);
        if (persistent) MPI_Request_free(&request);
        if (dest != 0) MPI_Send(NULL, 0, MPI_INT, dest, WANTED, MPI_COMM_WORLD);
    }
    if (rank == dest) {
        int got_value;
        if (dest != 0) MPI_Recv(NULL, 0, MPI_INT, 0, WANTED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < MANY - 1; i++) {
            MPI_Recv(&got_value, 1, MPI_INT, 0, UNWANTED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            SAME(got_value, i);
        }
        MPI_Iprobe(0, UNWANTED, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int rank, size = 4 * (LARGEST + MPI_BSEND_OVERHEAD);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    void *buffer = malloc((size_t)size);
    MPI_Buffer_attach(buffer, size);
    for (int dest = 0; dest < 2; dest++)
        for (int mode = 0; mode < MODES; mode++)
            for (int persistent = 0; persistent < 2; persistent++)
                for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) one(mode, persistent, sizes[i], rank, dest);
    for (int dest = 0; dest < 2; dest++)
        for (int mode = 0; mode < 2; mode++)
            for (int persistent = 0; persistent < 2; persistent++) last(mode, persistent, rank, dest);
    /* Nothing that was taken back still lies in the buffer, or this would hang. */
    MPI_Buffer_detach(&buffer, &size);
    free(buffer);
    MPI_Finalize();
    return verdict();
}
