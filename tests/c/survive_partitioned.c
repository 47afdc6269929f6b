/* A partitioned message that ends in vain: once its request is freed nothing of the buffer is read or written,
 * whatever the other side does later.
 * RANKS: 2
 * FLAGS: -pthread
 */
#define _GNU_SOURCE
#include "survive.h"
#include <pthread.h>
#include <sys/mman.h>

enum { PARTS = 4, LENGTH = 16384, BYTES = PARTS * LENGTH, GO = 5 };

static char *mapped(void)
{
    char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    memset(memory, 1, BYTES);
    return memory;
}

/* Waits in vain, frees the request, and takes the buffer away, or uses it for something else. */
static void give_up(MPI_Request request, char *memory, int is_mapped)
{
    CLASS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
    OK(MPI_Request_free(&request));
    if (is_mapped) OK(munmap(memory, BYTES));
    else memset(memory, 7, BYTES);
    OK(MPI_Send(NULL, 0, MPI_INT, 1, GO, MPI_COMM_WORLD));
    OK(MPI_Recv(NULL, 0, MPI_INT, 1, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static void await_go(void) { OK(MPI_Recv(NULL, 0, MPI_INT, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE)); }

static void go_on(void)
{
    usleep(10000);
    OK(MPI_Send(NULL, 0, MPI_INT, 0, GO, MPI_COMM_WORLD));
}

/* All partitions are ready before the receiver starts, which it does when the sender has given up. */
static void late_start(int rank, MPI_Comm comm, int unused)
{
    (void)unused;
    MPI_Request request;
    char *memory;
    if (rank == 0) {
        memory = mapped();
        OK(MPI_Psend_init(memory, PARTS, LENGTH, MPI_CHAR, 1, 3, comm, MPI_INFO_NULL, &request));
        OK(MPI_Barrier(comm));
        OK(MPI_Start(&request));
        OK(MPI_Pready_range(0, PARTS - 1, request));
        OK(MPIX_Comm_revoke(comm));
        give_up(request, memory, 1);
    } else {
        /* Where the sender writes to, so that only MPI_Start makes it ready. */
        OK(MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &memory));
        OK(MPI_Precv_init(memory, PARTS, LENGTH, MPI_CHAR, 0, 3, comm, MPI_INFO_NULL, &request));
        OK(MPI_Barrier(comm));
        await_go();
        OK(MPI_Start(&request));
        go_on();
        CLASS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
        OK(MPI_Request_free(&request));
        OK(MPI_Free_mem(memory));
    }
}

/* The receiver has started, and gives up before any partition is ready. `direct`: the sender writes to its buffer. */
static void late_partitions(int rank, MPI_Comm comm, int direct)
{
    MPI_Request request;
    char *memory;
    if (direct && rank == 0) OK(MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &memory));
    else memory = mapped();
    if (rank == 0) {
        OK(MPI_Precv_init(memory, PARTS, LENGTH, MPI_CHAR, 1, 3, comm, MPI_INFO_NULL, &request));
        OK(MPI_Barrier(comm));
        OK(MPI_Start(&request));
        OK(MPIX_Comm_revoke(comm));
        give_up(request, memory, !direct);
        for (int i = 0; direct && i < BYTES && failures == 0; i++) SAME(memory[i], 7);
        if (direct) OK(MPI_Free_mem(memory));
    } else {
        OK(MPI_Psend_init(memory, PARTS, LENGTH, MPI_CHAR, 0, 3, comm, MPI_INFO_NULL, &request));
        OK(MPI_Barrier(comm));
        await_go();
        OK(MPI_Start(&request));
        OK(MPI_Pready_range(0, PARTS - 1, request));
        go_on();
        int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(code == MPI_SUCCESS || code == MPIX_ERR_REVOKED);
        OK(MPI_Request_free(&request));
        OK(munmap(memory, BYTES));
    }
}

int main(void)
{
    int rank, provided;
    void (*const parts[])(int, MPI_Comm, int) = {late_start, late_partitions, late_partitions};
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 30; i++) {
        MPI_Comm comm;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
        parts[i % 3](rank, comm, i % 3 == 2);
        OK(MPI_Comm_free(&comm));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    MPI_Finalize();
    return verdict();
}
