/* Pipes: what several ranks write or read at the shared file pointer stays whole, and in order where there is one;
 * offsets are errors; a reader that has gone is an error; accesses that wait keep no others from going on.
 * RANKS: 3
 */
#include "file.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

/* More than a pipe holds. */
enum { LONG = 200000, RECORDS = 200, SHORT = 64, TURNS = 5, PIPES = 5 };

static char record[LONG], got[3 * TURNS * LONG];
static char pipes[PIPES][80];

static void make_pipes(int number)
{
    for (int i = 0; i < number; i++) {
        snprintf(pipes[i], sizeof pipes[i], "%s.pipe%d", name, i);
        if (rank == 0) SAME(mkfifo(pipes[i], 0600), 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void remove_pipes(int number)
{
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < number; i++)
        if (rank == 0) SAME(unlink(pipes[i]), 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Reads until all have closed; the bytes. */
static size_t read_all(void)
{
    int fd = open(pipes[0], O_RDONLY);
    size_t done = 0;
    ssize_t bytes;
    while ((bytes = read(fd, got + done, sizeof got - done)) > 0) done += (size_t)bytes;
    close(fd);
    return done;
}

static int is_whole(const char *bytes, int length)
{
    for (int i = 1; i < length; i++)
        if (bytes[i] != bytes[0]) return 0;
    return 1;
}

/* The first two ranks write, each record of one letter, and the last one reads without MPI. */
static void written(MPI_Comm writers)
{
    MPI_File file;
    MPI_Request requests[2];
    int whole = 1, ordered = 1;
    for (int kind = 0; kind < 3; kind++) {
        make_pipes(1);
        if (rank == 2) {
            size_t bytes = read_all();
            int length = kind == 0 ? SHORT : LONG, records = kind == 0 ? RECORDS : kind == 1 ? TURNS : 2;
            SAME(bytes, 2 * records * length);
            for (int i = 0; i < 2 * records; i++) {
                whole &= is_whole(got + i * length, length);
                ordered &= kind > 0 || got[i * length] == 'a' + i % 2;
            }
            CHECK(whole);
            CHECK(ordered);
            /* Of two that one rank has begun, the first one is first. */
            for (char letter = 'a'; kind == 2 && letter < 'c'; letter++)
                CHECK(memchr(got, letter, bytes) < memchr(got, letter + 2, bytes));
        } else {
            OK(MPI_File_open(writers, pipes[0], MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &file));
            memset(record, 'a' + rank, LONG);
            if (kind == 0)
                for (int i = 0; i < RECORDS; i++) OK(MPI_File_write_ordered(file, record, SHORT, MPI_BYTE, MPI_STATUS_IGNORE));
            if (kind == 1)
                for (int i = 0; i < TURNS; i++) OK(MPI_File_write_shared(file, record, LONG, MPI_BYTE, MPI_STATUS_IGNORE));
            if (kind == 2) {
                static char second[LONG];
                memset(second, 'c' + rank, LONG);
                OK(MPI_File_iwrite_shared(file, record, LONG, MPI_BYTE, &requests[0]));
                OK(MPI_File_iwrite_shared(file, second, LONG, MPI_BYTE, &requests[1]));
                OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
            }
            OK(MPI_File_close(&file));
        }
        remove_pipes(1);
    }
}

/* A pipe without a writer cannot be opened. */
static void await_second_reader(void) { MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }

static void read_in_order(MPI_Comm readers)
{
    MPI_File file;
    MPI_Status status;
    int count, words[8], right = 1;
    make_pipes(1);
    if (rank == 2) {
        int fd = open(pipes[0], O_WRONLY);
        for (int i = 0; i < 16 * RECORDS + 4; i++) SAME(write(fd, &i, sizeof i), sizeof i);
        await_second_reader();
        close(fd);
    } else {
        OK(MPI_File_open(readers, pipes[0], MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &file));
        if (rank == 1) MPI_Send(NULL, 0, MPI_BYTE, 2, 0, MPI_COMM_WORLD);
        for (int i = 0; i < RECORDS; i++) {
            OK(MPI_File_read_ordered(file, words, 8, MPI_INT, MPI_STATUS_IGNORE));
            for (int j = 0; j < 8; j++) right &= words[j] == i * 16 + rank * 8 + j;
        }
        CHECK(right);
        /* The end: what is there goes to the first. */
        OK(MPI_File_read_ordered(file, words, 8, MPI_INT, &status));
        OK(MPI_Get_count(&status, MPI_INT, &count));
        SAME(count, rank == 0 ? 4 : 0);
        OK(MPI_File_close(&file));
    }
    remove_pipes(1);
}

/* Offsets have no meaning, whatever the mode. */
static void offsets(MPI_Comm readers)
{
    MPI_File file;
    MPI_Offset at;
    MPI_Request request;
    MPI_Datatype apart;
    char bytes[8];
    int fd = -1, unsupported = MPI_ERR_UNSUPPORTED_OPERATION;
    make_pipes(1);
    if (rank == 2) {
        fd = open(pipes[0], O_WRONLY);
        SAME(write(fd, "abcd", 4), 4);
        await_second_reader();
        close(fd);
    } else {
        OK(MPI_File_open(readers, pipes[0], MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
        if (rank == 1) MPI_Send(NULL, 0, MPI_BYTE, 2, 0, MPI_COMM_WORLD);
        CLASS(MPI_File_read_at(file, 2, bytes, 1, MPI_BYTE, MPI_STATUS_IGNORE), unsupported);
        CLASS(MPI_File_read_at_all(file, 2, bytes, 1, MPI_BYTE, MPI_STATUS_IGNORE), unsupported);
        CLASS(MPI_File_read(file, bytes, 1, MPI_BYTE, MPI_STATUS_IGNORE), unsupported);
        CLASS(MPI_File_iread_at(file, 2, bytes, 1, MPI_BYTE, &request), unsupported);
        CLASS(MPI_File_seek(file, 2, MPI_SEEK_SET), unsupported);
        CLASS(MPI_File_seek_shared(file, 2, MPI_SEEK_SET), unsupported);
        CLASS(MPI_File_get_byte_offset(file, 2, &at), unsupported);
        OK(MPI_Type_vector(2, 1, 2, MPI_BYTE, &apart));
        OK(MPI_Type_commit(&apart));
        CLASS(MPI_File_set_view(file, 0, MPI_BYTE, apart, "native", MPI_INFO_NULL), unsupported);
        CLASS(MPI_File_set_view(file, 2, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), unsupported);
        OK(MPI_File_set_view(file, 0, MPI_CHAR, MPI_CHAR, "native", MPI_INFO_NULL));
        OK(MPI_File_read_ordered(file, bytes, 2, MPI_CHAR, MPI_STATUS_IGNORE));
        SAME(bytes[0], rank == 0 ? 'a' : 'c');
        OK(MPI_Type_free(&apart));
        OK(MPI_File_close(&file));
    }
    remove_pipes(1);
}

/* The signal that comes with the error neither ends the program nor stays pending,
 * and one that the program has blocked is still its own. */
static void no_reader(void)
{
    MPI_File file;
    sigset_t broken, before, pending;
    char byte = 0;
    make_pipes(1);
    if (rank == 1) {
        int fd = open(pipes[0], O_RDONLY);
        SAME(read(fd, &byte, 1), 1);
        close(fd);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    if (rank == 0) {
        OK(MPI_File_open(MPI_COMM_SELF, pipes[0], MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &file));
        OK(MPI_File_write_shared(file, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE));
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CLASS(MPI_File_write_shared(file, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_IO);
        sigemptyset(&broken);
        sigaddset(&broken, SIGPIPE);
        SAME(pthread_sigmask(SIG_BLOCK, &broken, &before), 0);
        CHECK(!sigismember(&before, SIGPIPE));
        CLASS(MPI_File_write_shared(file, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_IO);
        sigpending(&pending);
        CHECK(!sigismember(&pending, SIGPIPE));
        SAME(pthread_kill(pthread_self(), SIGPIPE), 0);
        CLASS(MPI_File_write_shared(file, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_IO);
        sigpending(&pending);
        CHECK(sigismember(&pending, SIGPIPE));
        SAME(sigwaitinfo(&broken, NULL), SIGPIPE);
        SAME(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
        OK(MPI_File_close(&file));
    }
    remove_pipes(1);
}

/* More accesses than there are threads for regular files wait for what the last one causes. */
static void all_go_on(void)
{
    make_pipes(PIPES);
    if (rank == 0) {
        MPI_File files[PIPES];
        MPI_Request requests[PIPES];
        char bytes[PIPES] = {0};
        for (int i = 0; i < PIPES; i++)
            OK(MPI_File_open(MPI_COMM_SELF, pipes[i], MPI_MODE_SEQUENTIAL | (i < PIPES - 1 ? MPI_MODE_RDONLY : MPI_MODE_WRONLY), MPI_INFO_NULL, &files[i]));
        for (int i = 0; i < PIPES - 1; i++) OK(MPI_File_iread_shared(files[i], &bytes[i], 1, MPI_BYTE, &requests[i]));
        OK(MPI_File_iwrite_shared(files[PIPES - 1], "g", 1, MPI_BYTE, &requests[PIPES - 1]));
        OK(MPI_Waitall(PIPES, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < PIPES - 1; i++) SAME(bytes[i], 'g');
        for (int i = 0; i < PIPES; i++) OK(MPI_File_close(&files[i]));
    }
    if (rank == 1) {
        int fds[PIPES];
        char byte = 0;
        for (int i = 0; i < PIPES; i++) fds[i] = open(pipes[i], i < PIPES - 1 ? O_WRONLY : O_RDONLY);
        SAME(read(fds[PIPES - 1], &byte, 1), 1);
        for (int i = 0; i < PIPES - 1; i++) SAME(write(fds[i], &byte, 1), 1);
        for (int i = 0; i < PIPES; i++) close(fds[i]);
    }
    remove_pipes(PIPES);
}

int main(int argc, char **argv)
{
    MPI_Comm some;
    MPI_Init(&argc, &argv);
    name_file("file_streams");
    MPI_Comm_split(MPI_COMM_WORLD, rank == 2, rank, &some);
    written(some);
    read_in_order(some);
    offsets(some);
    no_reader();
    all_go_on();
    MPI_Comm_free(&some);
    MPI_Finalize();
    return verdict();
}
