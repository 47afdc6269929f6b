/* Dynamic windows: attached memory at its address, several pieces,
 * attached and detached while others go on (MPI 5.0 section 12.2.4).
 * RANKS: 1 2 4
 */
#include "check.h"

static int rank, size;

static void ring(MPI_Win win, int *memory, int n) {
    MPI_Aint mine, theirs;
    int next = (rank + 1) % size, previous = (rank + size - 1) % size, got = -1, one = 1, old = -1;
    for (int i = 0; i < n; i++) memory[i] = rank * 10 + i;
    OK(MPI_Win_attach(win, memory, n * sizeof *memory));
    OK(MPI_Get_address(memory, &mine));
    OK(MPI_Sendrecv(&mine, 1, MPI_AINT, previous, 0, &theirs, 1, MPI_AINT, next, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get(&got, 1, MPI_INT, next, MPI_Aint_add(theirs, sizeof(int)), 1, MPI_INT, win));
    OK(MPI_Put(&rank, 1, MPI_INT, next, theirs, 1, MPI_INT, win));
    OK(MPI_Accumulate(&one, 1, MPI_INT, next, MPI_Aint_add(theirs, 2 * sizeof(int)), 1, MPI_INT, MPI_SUM, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    SAME(got, next * 10 + 1);
    SAME(memory[0], previous);
    SAME(memory[2], rank * 10 + 3);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win));
    OK(MPI_Fetch_and_op(&one, &old, MPI_INT, next, MPI_Aint_add(theirs, 3 * sizeof(int)), MPI_SUM, win));
    OK(MPI_Win_unlock(next, win));
    SAME(old, next * 10 + 3);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_detach(win, memory));
}

/* Regions that touch are one memory to an origin. */
static void beside_each_other(MPI_Win win) {
    static char memory[8192], sent[8192], got[8192];
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    MPI_Aint mine, theirs;
    memset(sent, 'a' + rank, sizeof sent);
    OK(MPI_Win_attach(win, memory, 4096));
    OK(MPI_Win_attach(win, memory + 4096, 4096));
    OK(MPI_Get_address(memory, &mine));
    OK(MPI_Sendrecv(&mine, 1, MPI_AINT, previous, 0, &theirs, 1, MPI_AINT, next, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(sent, sizeof sent, MPI_BYTE, next, theirs, sizeof sent, MPI_BYTE, win));
    OK(MPI_Win_fence(0, win));
    SAME(memory[0], 'a' + previous);
    SAME(memory[8191], 'a' + previous);
    OK(MPI_Get(got, sizeof got, MPI_BYTE, next, theirs, sizeof got, MPI_BYTE, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK(memcmp(got, sent, sizeof got) == 0);
    OK(MPI_Win_detach(win, memory + 4096));
    OK(MPI_Win_detach(win, memory));
}

int main(int argc, char **argv) {
    static int fixed[8];
    int on_stack[8], *heap, *given;
    MPI_Win win;
    void *base = &win;
    int flag, *flavor;
    MPI_Aint *bytes;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &flag));
    CHECK(flag && base == MPI_BOTTOM);
    OK(MPI_Win_get_attr(win, MPI_WIN_SIZE, &bytes, &flag));
    CHECK(flag && *bytes == 0);
    OK(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &flavor, &flag));
    CHECK(flag && *flavor == MPI_WIN_FLAVOR_DYNAMIC);
    heap = malloc(1 << 20);
    OK(MPI_Alloc_mem(1 << 20, MPI_INFO_NULL, &given));
    for (int i = 0; i < 3; i++) {
        ring(win, fixed, 8);
        ring(win, on_stack, 8);
        ring(win, heap, 1 << 18);
        ring(win, given, 1 << 18);
    }
    beside_each_other(win);
    /* Pieces side by side, and detached in another order. */
    OK(MPI_Win_attach(win, heap, 64));
    OK(MPI_Win_attach(win, heap + 16, 64));
    OK(MPI_Win_attach(win, heap + 32, 0));
    OK(MPI_Win_detach(win, heap + 16));
    OK(MPI_Win_detach(win, heap + 32));
    OK(MPI_Win_attach(win, heap + 16, 128));
    OK(MPI_Win_detach(win, heap));
    OK(MPI_Win_detach(win, heap + 16));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_free(&win));
    OK(MPI_Free_mem(given));
    free(heap);
    MPI_Finalize();
    return verdict();
}
