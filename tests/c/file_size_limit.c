/* A file-size limit that is set after the file has been opened: accesses of every form, sizes and preallocation beyond
 * it are errors, and what was reported is there. The signal that comes with the limit is the program's again where it
 * writes by itself, in programs that it executes, and when its files are closed; a handler of its own stays.
 * RANKS: 1 2
 */
#include "file.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { LIMIT = 10000, LONG = 3 * LIMIT };

static char bytes[LONG], back[LONG];
static MPI_File file;
static struct rlimit before;
static volatile sig_atomic_t rang = 0;

static void ring(int number) { (void)number; rang++; }

static void limit(rlim_t most)
{
    struct rlimit limit = before;
    limit.rlim_cur = most;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

static void open_own(void)
{
    char own[80];
    snprintf(own, sizeof own, "%s.%d", name, rank);
    OK(MPI_File_open(MPI_COMM_SELF, own, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
}

/* The limit was the error, and so many bytes are there as the status says. */
static void limited(int code, MPI_Status *status, int most)
{
    int count, got;
    CLASS(code, MPI_ERR_NO_SPACE);
    OK(MPI_Get_count(status, MPI_BYTE, &count));
    SAME(count, most);
    OK(MPI_File_read_at(file, 0, back, LONG, MPI_BYTE, status));
    OK(MPI_Get_count(status, MPI_BYTE, &got));
    SAME(got, most);
    SAME(memcmp(back, bytes, (size_t)got), 0);
    OK(MPI_File_set_size(file, 0));
}

static void accesses(void)
{
    MPI_Status status;
    MPI_Request request;
    MPI_Datatype strided;
    MPI_Offset end;
    limited(MPI_File_write_at(file, 0, bytes, LONG, MPI_BYTE, &status), &status, LIMIT);
    CLASS(MPI_File_write_at(file, LIMIT, bytes, 1, MPI_BYTE, &status), MPI_ERR_NO_SPACE);
    OK(MPI_File_iwrite_at(file, 0, bytes, LONG, MPI_BYTE, &request));
    limited(MPI_Wait(&request, &status), &status, LIMIT);
    /* Long enough for a thread. */
    OK(MPI_File_iwrite_at(file, LIMIT, bytes, LONG, MPI_BYTE, &request));
    CLASS(MPI_Wait(&request, &status), MPI_ERR_NO_SPACE);
    limited(MPI_File_write_shared(file, bytes, LONG, MPI_BYTE, &status), &status, LIMIT);
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    OK(MPI_File_write_ordered_begin(file, bytes, LONG, MPI_BYTE));
    limited(MPI_File_write_ordered_end(file, bytes, &status), &status, LIMIT);
    OK(MPI_File_set_atomicity(file, 1));
    limited(MPI_File_write_at_all(file, 0, bytes, LONG, MPI_BYTE, &status), &status, LIMIT);
    OK(MPI_File_set_atomicity(file, 0));
    /* Short runs of every second place: once one by one, and then through a mapping. */
    OK(MPI_Type_vector(LONG / 10, 10, 20, MPI_BYTE, &strided));
    OK(MPI_Type_commit(&strided));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, strided, "native", MPI_INFO_NULL));
    for (int turn = 0; turn < 3; turn++)
        limited(MPI_File_write_at(file, 0, bytes, LONG, MPI_BYTE, &status), &status, LIMIT / 2);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_Type_free(&strided));
    CLASS(MPI_File_set_size(file, LONG), MPI_ERR_NO_SPACE);
    CLASS(MPI_File_preallocate(file, LONG), MPI_ERR_NO_SPACE);
    OK(MPI_File_get_size(file, &end));
    SAME(end, 0);
}

/* How a process ends that writes beyond the limit by itself: `execute` has it write as another program. */
static int end_of_own_write(int execute)
{
    int status = 0;
    char own[80];
    snprintf(own, sizeof own, "%s.own.%d", name, rank);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        if (execute) {
            execlp("dd", "dd", "if=/dev/zero", "bs=64k", "count=1", strcat(strcpy(back, "of="), own), (char *)NULL);
            _exit(99);
        }
        int fd = open(own, O_CREAT | O_WRONLY, 0600);
        _exit(pwrite(fd, bytes, 1, LIMIT) == 1);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    unlink(own);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
}

static int is_default(void)
{
    struct sigaction action;
    CHECK(sigaction(SIGXFSZ, NULL, &action) == 0);
    return action.sa_handler == SIG_DFL;
}

int main(int argc, char **argv)
{
    MPI_Status status;
    MPI_Init(&argc, &argv);
    name_file("file_size_limit");
    getrlimit(RLIMIT_FSIZE, &before);
    for (int i = 0; i < LONG; i++) bytes[i] = (char)(i * 31 + i / 1000 + rank);
    /* Whatever started this program may have ignored it. */
    signal(SIGXFSZ, SIG_DFL);
    open_own();
    limit(LIMIT);
    accesses();
    SAME(end_of_own_write(0), SIGXFSZ);
    SAME(end_of_own_write(1), SIGXFSZ);
    accesses();
    OK(MPI_File_close(&file));
    CHECK(is_default());

    /* A handler of the program's, however it comes between. */
    struct sigaction action = {.sa_handler = ring}, old;
    open_own();
    CHECK(sigaction(SIGXFSZ, &action, &old) == 0);
    limited(MPI_File_write_at(file, 0, bytes, LONG, MPI_BYTE, &status), &status, LIMIT);
    CHECK(rang > 0);
    OK(MPI_File_close(&file));
    CHECK(sigaction(SIGXFSZ, NULL, &action) == 0 && action.sa_handler == ring);
    open_own();
    int before_that = rang;
    limited(MPI_File_write_at(file, 0, bytes, LONG, MPI_BYTE, &status), &status, LIMIT);
    CHECK(rang > before_that);
    /* What the program found before is put back. */
    CHECK(sigaction(SIGXFSZ, &old, NULL) == 0);
    accesses();
    SAME(end_of_own_write(0), SIGXFSZ);
    OK(MPI_File_close(&file));
    limit(before.rlim_cur);
    MPI_Finalize();
    return verdict();
}
