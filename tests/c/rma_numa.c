/* Memory of windows on a NUMA node that a member asks for: the pages lie there, and what a thread prefers itself is as
 * before. A node that there is not, or that the kernel refuses, is a hint that is not in force: the window is there
 * without it.
 * RANKS: 1 2 3
 */
#include "check.h"
#include <sys/syscall.h>
#include <unistd.h>

enum { DEFAULT = 0, PREFERRED = 1, INTERLEAVE = 3 };
static const long bytes = 3 << 20;
static int rank, size;

/* What this thread prefers. */
static int own_policy(unsigned long *nodes)
{
    int mode = -1;
    memset(nodes, 0, 16 * sizeof *nodes);
    if (syscall(SYS_get_mempolicy, &mode, nodes, 16 * 64 + 1, NULL, 0)) return -1;
    return mode;
}

static int prefer(int mode)
{
    unsigned long zero = 1;
    return syscall(SYS_set_mempolicy, mode, mode == DEFAULT ? NULL : &zero, mode == DEFAULT ? 0 : 64) == 0;
}

/* Whether this process may ask for node 0 at all. */
static int kernel_places(void)
{
    unsigned long nodes[16];
    int mode = own_policy(nodes);
    return mode >= 0 && prefer(PREFERRED) && prefer(mode);
}

static MPI_Win window(int shared, const char *contiguous, const char *node, char **base)
{
    MPI_Info info;
    MPI_Win win;
    OK(MPI_Info_create(&info));
    if (node) OK(MPI_Info_set(info, "perusal_numa_node", node));
    OK(MPI_Info_set(info, "alloc_shared_noncontig", contiguous));
    if (shared) OK(MPI_Win_allocate_shared(bytes, 1, info, MPI_COMM_WORLD, base, &win));
    else OK(MPI_Win_allocate(bytes, 1, info, MPI_COMM_WORLD, base, &win));
    OK(MPI_Info_free(&info));
    return win;
}

static int node_in_force(MPI_Win win)
{
    MPI_Info info;
    char value[16];
    int there, length = sizeof value;
    OK(MPI_Win_get_info(win, &info));
    OK(MPI_Info_get_string(info, "perusal_numa_node", &length, value, &there));
    OK(MPI_Info_free(&info));
    return there ? atoi(value) : -1;
}

/* Whether the page at that place is on node 0: as the kernel says it is, not as it was asked to be. */
static void check_page(char *at)
{
    void *page = at;
    int node = -1;
    if (syscall(SYS_move_pages, 0, 1UL, &page, NULL, &node, 0) == 0) SAME(node, 0);
}

static void both(int shared, const char *contiguous)
{
    unsigned long nodes[16];
    char *base;
    const int places = kernel_places(), preferred = own_policy(nodes);
    MPI_Win win = window(shared, contiguous, "0", &base);
    SAME(node_in_force(win), places ? 0 : -1);
    SAME(own_policy(nodes), preferred);
    if (preferred > DEFAULT) SAME(nodes[0], 1);
    check_page(base);
    check_page(base + bytes - 1);
    memset(base, rank + 1, bytes);
    /* The others access it as ever. */
    char got = 0;
    int next = (rank + 1) % size;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get(&got, 1, MPI_CHAR, next, bytes - 1, 1, MPI_CHAR, win));
    OK(MPI_Win_fence(0, win));
    SAME(got, next + 1);
    OK(MPI_Win_free(&win));
    win = window(shared, contiguous, NULL, &base);
    SAME(node_in_force(win), -1);
    OK(MPI_Win_free(&win));
}

static void refused(const char *node)
{
    char *base;
    MPI_Win win = window(size == 1, "true", node, &base);
    SAME(node_in_force(win), -1);
    base[0] = 1, base[bytes - 1] = 2;
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 2; i++) {
        if (i == 1 && kernel_places()) prefer(INTERLEAVE);
        both(0, "false");
        both(1, "false");
        both(1, "true");
    }
    refused("1000");
    refused("70000");
    refused("-1");
    refused("nearby");
    /* Each member may ask for what it likes. */
    char *base;
    MPI_Win win = window(1, "false", rank ? NULL : "0", &base);
    SAME(node_in_force(win), rank == 0 && kernel_places() ? 0 : -1);
    OK(MPI_Win_free(&win));
    MPI_Finalize();
    return verdict();
}
