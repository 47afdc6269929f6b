/* What was reported is there, and what went wrong is an error with its class: a full device, in independent,
 * nonblocking and collective accesses; a file-size limit within many short runs; signals during long writes; a file
 * that is no file of bytes.
 * RANKS: 1 2 3
 */
#include "file.h"
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>

enum { LONG = 1 << 22, BLOCKS = 512, BLOCK = 100 };

static volatile sig_atomic_t rang = 0;

static void ring(int number) { (void)number; rang++; }

static char buffer[LONG], back[LONG];
static int count;

static void full_device(void)
{
    MPI_File file;
    MPI_Status status;
    MPI_Request request;
    MPI_Datatype strided;
    OK(MPI_File_open(MPI_COMM_WORLD, "/dev/full", MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    CLASS(MPI_File_write_at(file, 0, buffer, 1000, MPI_BYTE, &status), MPI_ERR_NO_SPACE);
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    SAME(count, 0);
    OK(MPI_File_iwrite_at(file, 0, buffer, 1000, MPI_BYTE, &request));
    CLASS(MPI_Wait(&request, &status), MPI_ERR_NO_SPACE);
    OK(MPI_File_iwrite_at(file, 0, buffer, 1000, MPI_BYTE, &request));
    CLASS(MPI_Waitall(1, &request, &status), MPI_ERR_IN_STATUS);
    SAME(status.MPI_ERROR, MPI_ERR_NO_SPACE);
    OK(MPI_Type_vector(BLOCKS, BLOCK, BLOCK * size, MPI_BYTE, &strided));
    OK(MPI_Type_commit(&strided));
    OK(MPI_File_set_view(file, rank * BLOCK, MPI_BYTE, strided, "native", MPI_INFO_NULL));
    for (int turn = 0; turn < 2; turn++) {
        CLASS(MPI_File_write_at_all(file, 0, buffer, BLOCKS * BLOCK, MPI_BYTE, &status), MPI_ERR_NO_SPACE);
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        SAME(count, 0);
        OK(MPI_File_write_all_begin(file, buffer, BLOCKS * BLOCK, MPI_BYTE));
        CLASS(MPI_File_write_all_end(file, buffer, &status), MPI_ERR_NO_SPACE);
    }
    /* The pointer is where it was. */
    MPI_Offset at;
    OK(MPI_File_get_position(file, &at));
    SAME(at, 0);
    OK(MPI_Type_free(&strided));
    OK(MPI_File_close(&file));
}

/* The limit was the error, and the first bytes of the view are so many of what was written as the status says. */
static void limited(MPI_File file, int code, MPI_Status *status)
{
    int got;
    CLASS(code, MPI_ERR_NO_SPACE);
    OK(MPI_Get_count(status, MPI_BYTE, &count));
    CHECK(count >= 0 && count < BLOCKS * BLOCK);
    MPI_Barrier(MPI_COMM_WORLD);
    memset(back, 0, (size_t)count);
    OK(MPI_File_read_at(file, 0, back, count, MPI_BYTE, status));
    OK(MPI_Get_count(status, MPI_BYTE, &got));
    SAME(got, count);
    SAME(memcmp(back, buffer, (size_t)count), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_set_size(file, 0));
}

/* Every rank has short runs of its own, and the limit lies in the middle of them. */
static void size_limit(void)
{
    MPI_File file;
    MPI_Status status;
    MPI_Datatype strided;
    MPI_Request request;
    struct rlimit before, limit;
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = (rlim_t)size * BLOCK * BLOCKS / 2 + 7;
    for (int i = 0; i < BLOCKS * BLOCK; i++) buffer[i] = (char)(i * 29 + i / 1000 + rank + 1);
    setrlimit(RLIMIT_FSIZE, &limit);
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_Type_vector(BLOCKS, BLOCK, BLOCK * size, MPI_BYTE, &strided));
    OK(MPI_Type_commit(&strided));
    OK(MPI_File_set_view(file, rank * BLOCK, MPI_BYTE, strided, "native", MPI_INFO_NULL));
    for (int turn = 0; turn < 2; turn++) {
        limited(file, MPI_File_write_at(file, 0, buffer, BLOCKS * BLOCK, MPI_BYTE, &status), &status);
        limited(file, MPI_File_write_at_all(file, 0, buffer, BLOCKS * BLOCK, MPI_BYTE, &status), &status);
        OK(MPI_File_iwrite_at(file, 0, buffer, BLOCKS * BLOCK, MPI_BYTE, &request));
        limited(file, MPI_Wait(&request, &status), &status);
    }
    setrlimit(RLIMIT_FSIZE, &before);
    OK(MPI_File_write_at_all(file, 0, buffer, BLOCKS * BLOCK, MPI_BYTE, &status));
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    SAME(count, BLOCKS * BLOCK);
    OK(MPI_Type_free(&strided));
    OK(MPI_File_close(&file));
}

static void signals(void)
{
    MPI_File file;
    MPI_Status status;
    struct sigaction action = {.sa_handler = ring};
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, NULL);
    for (int i = 0; i < LONG; i++) buffer[i] = (char)(i * 31 + rank);
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    setitimer(ITIMER_REAL, &often, NULL);
    for (int turn = 0; turn < 8; turn++) {
        OK(MPI_File_write_at(file, (MPI_Offset)rank * LONG, buffer, LONG, MPI_BYTE, &status));
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        SAME(count, LONG);
        memset(back, 0, LONG);
        MPI_Request request;
        OK(MPI_File_iread_at(file, (MPI_Offset)rank * LONG, back, LONG, MPI_BYTE, &request));
        OK(MPI_Wait(&request, &status));
        SAME(memcmp(buffer, back, LONG), 0);
    }
    OK(MPI_File_close(&file));
    if (size > 1) {
        /* A pipe takes little at a time, and its calls are interrupted. */
        char pipe[80];
        snprintf(pipe, sizeof pipe, "%s.pipe", name);
        if (rank == 0) mkfifo(pipe, 0600);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank < 2) {
            OK(MPI_File_open(MPI_COMM_SELF, pipe, MPI_MODE_SEQUENTIAL | (rank ? MPI_MODE_RDONLY : MPI_MODE_WRONLY), MPI_INFO_NULL, &file));
            if (rank == 0) {
                OK(MPI_File_write_shared(file, buffer, LONG, MPI_BYTE, &status));
            } else {
                memset(back, 0, LONG);
                OK(MPI_File_read_shared(file, back, LONG, MPI_BYTE, &status));
                for (int i = 0; i < LONG; i++) buffer[i] = (char)(i * 31);
                SAME(memcmp(buffer, back, LONG), 0);
            }
            OK(MPI_Get_count(&status, MPI_BYTE, &count));
            SAME(count, LONG);
            OK(MPI_File_close(&file));
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) unlink(pipe);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    CHECK(rang > 0);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    name_file("file_faults");
    full_device();
    size_limit();
    signals();
    MPI_Finalize();
    return verdict();
}
