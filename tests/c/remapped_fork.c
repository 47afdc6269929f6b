/* A child process has copies of the buffers that the library has remapped in its parent: neither sees what the other
 * writes from then on, and messages of the parent are what the parent has stored.
 * RANKS: 2
 * ENV: PERUSAL_COPY_REMAP_AFTER=2
 */
#include "remapped.h"
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 300000, BUFFERS = 3 };
static char *buffers[BUFFERS];

static int holds(const char *buffer, char value)
{
    for (int i = 0; i < BYTES; i++)
        if (buffer[i] != value) return 0;
    return 1;
}

static void pass_on(char value)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < BUFFERS; i++) {
        if (rank == 0) {
            memset(buffers[i], value + i, BYTES);
            OK(MPI_Send(buffers[i], BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD));
        } else {
            OK(MPI_Recv(buffers[i], BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(holds(buffers[i], value + i));
        }
    }
}

static void child(volatile int *turn, char value)
{
    /* The parent overwrites everything before the child looks. */
    while (*turn != 1) usleep(100);
    for (int i = 0; i < BUFFERS; i++) {
        CHECK(!is_remapped(buffers[i] + BYTES / 2) && holds(buffers[i], value + i));
        memset(buffers[i], 100, BYTES);
    }
    pid_t grandchild = fork();
    if (grandchild == 0) {
        CHECK(holds(buffers[1], 100));
        memset(buffers[1], 5, BYTES);
        _exit(verdict());
    }
    int status = -1;
    waitpid(grandchild, &status, 0);
    SAME(status, 0);
    buffers[0] = realloc(buffers[0], 4 * BYTES);
    for (int i = 0; i < BUFFERS; i++) {
        CHECK(holds(buffers[i], 100));
        free(buffers[i]);
    }
    *turn = 2;
    _exit(verdict());
}

int main(int argc, char **argv)
{
    int rank, status = -1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    volatile int *turn = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < BUFFERS; i++) buffers[i] = malloc(BYTES);
    for (char value = 0; value < 4; value++) pass_on(value);
    if (can_remap()) CHECK(is_remapped(buffers[0] + BYTES / 2));
    /* Of one of them a part is gone: what is mapped there now is no buffer. */
    char *gap = (char *)(((uintptr_t)buffers[2] + BYTES / 2) & ~(uintptr_t)(PAGE - 1));
    CHECK(mmap(gap, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == gap);
    memset(gap, 3 + 2, PAGE);
    pid_t pid = fork();
    if (pid == 0) child(turn, 3);
    for (int i = 0; i < BUFFERS; i++) memset(buffers[i], 50, BYTES);
    *turn = 1;
    waitpid(pid, &status, 0);
    SAME(status, 0);
    SAME(*turn, 2);
    for (int i = 0; i < BUFFERS; i++) CHECK(holds(buffers[i], 50));
    for (char value = 10; value < 14; value++) pass_on(value);
    MPI_Finalize();
    /* Also when MPI is over. */
    *turn = 0;
    pid = fork();
    if (pid == 0) child(turn, 13);
    for (int i = 0; i < BUFFERS; i++) memset(buffers[i], 60, BYTES);
    *turn = 1;
    waitpid(pid, &status, 0);
    SAME(status, 0);
    for (int i = 0; i < BUFFERS; i++) CHECK(holds(buffers[i], 60));
    return verdict();
}
