/* A child process has copies of what its parent's malloc shares: neither sees what the other writes from then on. The
 * child may use malloc as before, and what it frees is no loss to the parent; so has its own child.
 * RANKS: 2
 * ENV: PERUSAL_SHARE_HEAP=on
 */
#include "check.h"
#include "malloc_shared.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 1 << 20, BLOCKS = 5 };
static char *blocks[BLOCKS];
static volatile int stop;

static int holds(const char *block, char value)
{
    for (int i = 0; i < BYTES; i++)
        if (block[i] != value) return 0;
    return 1;
}

static void *busy(void *unused)
{
    while (!stop) free(malloc(200000));
    return unused;
}

static void child(volatile int *turn)
{
    /* The parent overwrites everything before the child looks. */
    while (*turn != 1) usleep(100);
    for (int i = 0; i < BLOCKS; i++) CHECK(!is_shared(blocks[i]) && holds(blocks[i], (char)i));
    for (int i = 0; i < BLOCKS; i++) memset(blocks[i], 100, BYTES);
    blocks[0] = realloc(blocks[0], 2 * BYTES);
    CHECK(!is_shared(blocks[0]) && holds(blocks[0], 100));
    blocks[1] = realloc(blocks[1], BYTES / 2);
    char *own = malloc(BYTES);
    CHECK(!is_shared(own));
    memset(own, 1, BYTES);
    free(own);
    pid_t grandchild = fork();
    if (grandchild == 0) {
        CHECK(holds(blocks[2], 100));
        memset(blocks[2], 5, BYTES);
        _exit(verdict());
    }
    int status = -1;
    waitpid(grandchild, &status, 0);
    SAME(status, 0);
    CHECK(holds(blocks[2], 100));
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    *turn = 2;
    _exit(verdict());
}

int main(int argc, char **argv)
{
    int rank, status = -1;
    pthread_t thread;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    volatile int *turn = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BYTES);
        CHECK(is_shared(blocks[i]));
        memset(blocks[i], i, BYTES);
    }
    /* Sparse, so there is nothing to copy. */
    char *sparse = calloc(1, 200 << 20);
    sparse[100 << 20] = 9;
    pthread_create(&thread, NULL, busy, NULL);
    pid_t pid = fork();
    if (pid == 0) {
        CHECK(sparse[100 << 20] == 9 && sparse[1] == 0);
        child(turn);
    }
    for (int i = 0; i < BLOCKS; i++) memset(blocks[i], 50, BYTES);
    *turn = 1;
    while (*turn != 2 && waitpid(pid, &status, WNOHANG) == 0) usleep(100);
    if (status == -1) waitpid(pid, &status, 0);
    SAME(status, 0);
    for (int i = 0; i < BLOCKS; i++) CHECK(is_shared(blocks[i]) && holds(blocks[i], 50));
    /* They are still this rank's and the other's to copy. */
    if (rank == 0) OK(MPI_Send(blocks[3], BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
    else OK(MPI_Recv(blocks[4], BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(holds(blocks[4], 50));
    stop = 1;
    pthread_join(thread, NULL);
    SAME(system("exit 3") >> 8, 3);
    free(sparse);
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    MPI_Finalize();
    return verdict();
}
