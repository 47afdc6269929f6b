/* instructions.c: user-space instructions of MPI calls on an 8-byte message, counted one by one.
 *
 *   mpiexec -n 2 instructions [CASE…]
 *
 * Rank 0 prints a line "case=… calls=… instructions=…" for each case, or for those named.
 *
 * Written against MPI alone, so that any library's calls are counted by the same tool. A child process single-steps
 * rank 0 while a word of shared memory says that what happens is to be counted. What a call needs from the partner has
 * happened before it: it does not wait, so that the count is a property of the code, and neither of the machine nor of
 * its load; where the partner was late all the same the count is larger, so the least of many is printed.
 *
 * With INSTRUCTIONS_TRACE=DIRECTORY, what was executed in that run is written to DIRECTORY/CASE: a line of
 * /proc/self/maps behind "map" for each thing that was loaded, "entry NAME ADDRESS" for functions that allocate,
 * then an address a line.
 *
 * Cases that begin with "broken-" are run when they are named: each does on purpose, outside of MPI, what a reader of
 * such a trace is to find. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 32, WINDOW = 64, TAG = 3, GO = 4, KEPT = 1 << 20 };

static struct shared {
    volatile int allowed, attached, counting;
    volatile long steps;
    unsigned long at[KEPT];
} *shared;

/* Steps through what is counted, and lets the rank run freely otherwise, until it ends. */
static void count(pid_t rank)
{
    int status;
    while (!shared->allowed) usleep(1000);
    if (ptrace(PTRACE_ATTACH, rank, 0, 0) != 0) {
        perror("instructions: ptrace");
        shared->attached = -1;
        _exit(2);
    }
    waitpid(rank, &status, __WALL);
    shared->attached = 1;
    while (!WIFEXITED(status) && !WIFSIGNALED(status)) {
        struct user_regs_struct registers;
        /* A signal that came meanwhile is for the rank. */
        int signal = WSTOPSIG(status) == SIGTRAP || WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status);
        int counted = shared->counting;
        if (counted && shared->steps < KEPT && ptrace(PTRACE_GETREGS, rank, 0, &registers) == 0)
            shared->at[shared->steps] = registers.rip;
        if (ptrace(counted ? PTRACE_SINGLESTEP : PTRACE_CONT, rank, 0, signal) != 0) _exit(2);
        if (waitpid(rank, &status, __WALL) != rank) _exit(2);
        if (counted) shared->steps++;
    }
    _exit(0);
}

static MPI_Comm world;
static MPI_Win window;
static MPI_Request requests[WINDOW];
static long out[2 * WINDOW], in[2 * WINDOW];

static void send(int tag) { MPI_Send(out, 1, MPI_LONG, 1, tag, world); }
static void send_many(int n) { for (int i = 0; i < n; i++) MPI_Send(out, 1, MPI_LONG, 0, TAG, world); }
static void receive_many(int n) { for (int i = 0; i < n; i++) MPI_Recv(in, 1, MPI_LONG, 0, TAG, world, MPI_STATUS_IGNORE); }
static void await(int tag) { MPI_Recv(in, 1, MPI_LONG, 0, tag, world, MPI_STATUS_IGNORE); }

/* Asks the partner for what it has to do, and gives it the time. */
static void go(void)
{
    send(GO);
    usleep(2000);
}

/* What is counted: `begin` or `resume`, and `end`, stand around it. */
static void resume(void)
{
    shared->counting = 1;
    __asm__ volatile("int3");
}

static void begin(void)
{
    shared->steps = 0;
    resume();
}

static long end(void)
{
    shared->counting = 0;
    return shared->steps;
}

static long count_nothing(void)
{
    begin();
    return end();
}

static long count_send(void) { go(); begin(); send(TAG); return end(); }

static long receive_from(int source, int tag)
{
    begin();
    MPI_Recv(in, 1, MPI_LONG, source, tag, world, MPI_STATUS_IGNORE);
    return end();
}

static long count_recv(void) { go(); return receive_from(1, TAG); }
static long count_recv_any(void) { go(); return receive_from(MPI_ANY_SOURCE, MPI_ANY_TAG); }

/* The same bytes as every other int: a type with gaps. */
static MPI_Datatype every_other(void)
{
    static MPI_Datatype type = MPI_DATATYPE_NULL;
    if (type == MPI_DATATYPE_NULL) MPI_Type_vector(2, 1, 2, MPI_INT, &type), MPI_Type_commit(&type);
    return type;
}

static long count_send_vector(void)
{
    MPI_Datatype type = every_other();
    go();
    begin();
    MPI_Send(out, 1, type, 1, TAG, world);
    return end();
}

static long count_recv_vector(void)
{
    MPI_Datatype type = every_other();
    go();
    begin();
    MPI_Recv(in, 1, type, 1, TAG, world, MPI_STATUS_IGNORE);
    return end();
}

static long count_recv_unexpected(void)
{
    int flag = 0;
    go();
    /* A message that a probe has found is in the queue, however late the partner was. */
    while (!flag) MPI_Iprobe(1, TAG, world, &flag, MPI_STATUS_IGNORE);
    return receive_from(1, TAG);
}

static long count_sendrecv(void)
{
    go();
    begin();
    MPI_Sendrecv(out, 1, MPI_LONG, 1, TAG, in, 1, MPI_LONG, 1, TAG, world, MPI_STATUS_IGNORE);
    return end();
}

static long count_isend(void)
{
    go();
    begin();
    MPI_Isend(out, 1, MPI_LONG, 1, TAG, world, requests);
    MPI_Wait(requests, MPI_STATUS_IGNORE);
    return end();
}

static long count_irecv_there(void)
{
    go();
    begin();
    MPI_Irecv(in, 1, MPI_LONG, 1, TAG, world, requests);
    MPI_Wait(requests, MPI_STATUS_IGNORE);
    return end();
}

static long count_irecv_posted(int source, int tag)
{
    begin();
    MPI_Irecv(in, 1, MPI_LONG, source, tag, world, requests);
    end();
    go();
    resume();
    MPI_Wait(requests, MPI_STATUS_IGNORE);
    return end();
}

static long count_irecv(void) { return count_irecv_posted(1, TAG); }
static long count_irecv_any(void) { return count_irecv_posted(MPI_ANY_SOURCE, MPI_ANY_TAG); }

static long count_start(MPI_Request *request)
{
    go();
    begin();
    MPI_Start(request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    return end();
}

static long count_start_send(void)
{
    static MPI_Request request = MPI_REQUEST_NULL;
    if (request == MPI_REQUEST_NULL) MPI_Send_init(out, 1, MPI_LONG, 1, TAG, world, &request);
    return count_start(&request);
}

static long count_start_recv(void)
{
    static MPI_Request request = MPI_REQUEST_NULL;
    if (request == MPI_REQUEST_NULL) MPI_Recv_init(in, 1, MPI_LONG, 1, TAG, world, &request);
    return count_start(&request);
}

static long count_window_of_sends(MPI_Datatype type)
{
    go();
    begin();
    for (int i = 0; i < WINDOW; i++) MPI_Isend(out + 2 * i, 1, type, 1, TAG, world, requests + i);
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    return end();
}

static long count_window_send(void) { return count_window_of_sends(MPI_LONG); }
static long count_window_send_vector(void) { return count_window_of_sends(every_other()); }

static long count_window_of_receives(MPI_Datatype type)
{
    begin();
    for (int i = 0; i < WINDOW; i++) MPI_Irecv(in + 2 * i, 1, type, 1, TAG, world, requests + i);
    end();
    go();
    resume();
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    return end();
}

static long count_window_receive(void) { return count_window_of_receives(MPI_LONG); }
static long count_window_receive_vector(void) { return count_window_of_receives(every_other()); }

static long count_window_there(void)
{
    go();
    begin();
    for (int i = 0; i < WINDOW; i++) MPI_Irecv(in + i, 1, MPI_LONG, 1, TAG, world, requests + i);
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    return end();
}

/* Collectives that the partner has come to already: what is counted neither waits nor is waited for. */
static void barrier(void) { MPI_Barrier(world); }
static void bcast(void) { MPI_Bcast(in, 1, MPI_LONG, 1, world); }
static void allreduce(void) { MPI_Allreduce(out, in, 1, MPI_LONG, MPI_SUM, world); }
static void alltoall(void) { MPI_Alltoall(out, 1, MPI_LONG, in, 1, MPI_LONG, world); }

static void allgather(void) { MPI_Allgather(out, 1, MPI_LONG, in, 1, MPI_LONG, world); }
static void gather(void) { MPI_Gather(out, 1, MPI_LONG, in, 1, MPI_LONG, 1, world); }
static void win_fence(void) { MPI_Win_fence(0, window); }
static void scan(void) { MPI_Scan(out, in, 1, MPI_LONG, MPI_SUM, world); }

/* More bytes than fit into a member's slot. */
static char blocks_out[4096], blocks_in[4096];
static void alltoall_blocks(void) { MPI_Alltoall(blocks_out, 128, MPI_CHAR, blocks_in, 128, MPI_CHAR, world); }
static void bcast_block(void) { MPI_Bcast(blocks_in, 2048, MPI_CHAR, 1, world); }
static void gather_blocks(void) { MPI_Gather(blocks_out, 2048, MPI_CHAR, blocks_in, 2048, MPI_CHAR, 1, world); }
static void scatter_blocks(void) { MPI_Scatter(blocks_out, 128, MPI_CHAR, blocks_in, 128, MPI_CHAR, 1, world); }
static void scan_block(void) { MPI_Scan(blocks_out, blocks_in, 256, MPI_DOUBLE, MPI_SUM, world); }
static void allreduce_block(void) { MPI_Allreduce(blocks_out, blocks_in, 256, MPI_DOUBLE, MPI_SUM, world); }
static void reduce_scatter(void) { MPI_Reduce_scatter(blocks_out, blocks_in, (int[]) {1, 1}, MPI_LONG, MPI_SUM, world); }

/* By messages. */
static MPI_Comm ring;
static const int each[] = {1, 1}, places[] = {0, 1};
static void gatherv(void) { MPI_Gatherv(out, 1, MPI_LONG, in, each, places, MPI_LONG, 0, world); }
static void scatterv(void) { MPI_Scatterv(out, each, places, MPI_LONG, in, 1, MPI_LONG, 0, world); }
static void alltoallv(void) { MPI_Alltoallv(out, each, places, MPI_LONG, in, each, places, MPI_LONG, world); }
static void neighbor_allgather(void) { MPI_Neighbor_allgather(out, 1, MPI_LONG, in, 1, MPI_LONG, ring); }
static void exscan(void) { MPI_Exscan(out, in, 1, MPI_LONG, MPI_SUM, world); }

static void wait_for(MPI_Request request) { MPI_Wait(&request, MPI_STATUS_IGNORE); }
static void ibcast(void)
{
    MPI_Request request;
    MPI_Ibcast(in, 1, MPI_LONG, 1, world, &request);
    wait_for(request);
}
static void iallreduce(void)
{
    MPI_Request request;
    MPI_Iallreduce(out, in, 1, MPI_LONG, MPI_SUM, world, &request);
    wait_for(request);
}

/* By messages, too. */
static void ibcast_block(void)
{
    MPI_Request request;
    MPI_Ibcast(blocks_in, 2048, MPI_CHAR, 1, world, &request);
    wait_for(request);
}
static void igather_blocks(void)
{
    MPI_Request request;
    MPI_Igather(blocks_out, 2048, MPI_CHAR, blocks_in, 2048, MPI_CHAR, 1, world, &request);
    wait_for(request);
}

static MPI_Request kept_bcast, kept_allreduce, kept_bcast_block;
static void start(MPI_Request *request)
{
    MPI_Start(request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
}
static void bcast_start(void) { start(&kept_bcast); }
static void allreduce_start(void) { start(&kept_allreduce); }
static void bcast_block_start(void) { start(&kept_bcast_block); }

static long count_together(void (*call)(void))
{
    go();
    begin();
    call();
    return end();
}

static long count_barrier(void) { return count_together(barrier); }
static long count_bcast(void) { return count_together(bcast); }
static long count_allreduce(void) { return count_together(allreduce); }
static long count_alltoall(void) { return count_together(alltoall); }
static long count_allgather(void) { return count_together(allgather); }
static long count_gather(void) { return count_together(gather); }
static long count_win_fence(void) { return count_together(win_fence); }
static long count_scan(void) { return count_together(scan); }
static long count_alltoall_blocks(void) { return count_together(alltoall_blocks); }
static long count_bcast_block(void) { return count_together(bcast_block); }
static long count_gather_blocks(void) { return count_together(gather_blocks); }
static long count_scatter_blocks(void) { return count_together(scatter_blocks); }
static long count_scan_block(void) { return count_together(scan_block); }
static long count_allreduce_block(void) { return count_together(allreduce_block); }
static long count_reduce_scatter(void) { return count_together(reduce_scatter); }
static long count_gatherv(void) { return count_together(gatherv); }
static long count_scatterv(void) { return count_together(scatterv); }
static long count_alltoallv(void) { return count_together(alltoallv); }
static long count_neighbor_allgather(void) { return count_together(neighbor_allgather); }
static long count_exscan(void) { return count_together(exscan); }
static long count_ibcast(void) { return count_together(ibcast); }
static long count_iallreduce(void) { return count_together(iallreduce); }
static long count_bcast_start(void) { return count_together(bcast_start); }
static long count_allreduce_start(void) { return count_together(allreduce_start); }
static long count_ibcast_block(void) { return count_together(ibcast_block); }
static long count_igather_blocks(void) { return count_together(igather_blocks); }
static long count_bcast_block_start(void) { return count_together(bcast_block_start); }

/* Started before the partner has come to it. */
static long count_early(MPI_Request *request, int bytes)
{
    begin();
    MPI_Ibcast(blocks_in, bytes, MPI_CHAR, 1, world, request);
    end();
    go();
    resume();
    wait_for(*request);
    return end();
}
static long count_ibcast_early(void) { MPI_Request request; return count_early(&request, 8); }
static long count_ibcast_block_early(void) { MPI_Request request; return count_early(&request, 2048); }

/* One-sided operations at the partner, within an epoch of MPI_Win_lock_all but for the last. */
static void put(void) { MPI_Put(out, 1, MPI_LONG, 1, 0, 1, MPI_LONG, window); }
static void get(void) { MPI_Get(in, 1, MPI_LONG, 1, 0, 1, MPI_LONG, window); }
static void flush(void) { MPI_Win_flush(1, window); }
static void fetch_and_op(void) { MPI_Fetch_and_op(out, in, MPI_LONG, 1, 0, MPI_SUM, window); }
static void compare_and_swap(void) { MPI_Compare_and_swap(out, out + 1, in, MPI_LONG, 1, 0, window); }
static void accumulate(void) { MPI_Accumulate(out, 2, MPI_LONG, 1, 0, 2, MPI_LONG, MPI_SUM, window); }
static void lock_and_unlock(void) { MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window); MPI_Win_unlock(1, window); }

static long count_one_sided(void (*call)(void))
{
    go();
    MPI_Win_lock_all(0, window);
    begin();
    call();
    end();
    MPI_Win_unlock_all(window);
    return shared->steps;
}

static long count_put(void) { return count_one_sided(put); }
static long count_get(void) { return count_one_sided(get); }
static long count_flush(void) { return count_one_sided(flush); }
static long count_fetch_and_op(void) { return count_one_sided(fetch_and_op); }
static long count_compare_and_swap(void) { return count_one_sided(compare_and_swap); }
static long count_accumulate(void) { return count_one_sided(accumulate); }
static long count_lock_and_unlock(void) { return count_together(lock_and_unlock); }

/* What must not be on a message's way, one each. */
static volatile long word;
static void *volatile allocated;
static void lock(void) { __asm__ volatile("lock addq $1, %0" : "+m"(word)); }
static void exchange(void) { long mine = 1; __asm__ volatile("xchgq %0, %1" : "+r"(mine), "+m"(word)); }
static void fence(void) { __asm__ volatile("mfence" ::: "memory"); }
static void call_system(void) { syscall(SYS_getppid); }
static void allocate(void) { allocated = malloc(40); }
static void give_back(void) { free(allocated); allocated = NULL; }

static long count_broken(void (*deed)(void))
{
    go();
    begin();
    deed();
    return end();
}

static long count_lock(void) { return count_broken(lock); }
static long count_exchange(void) { return count_broken(exchange); }
static long count_fence(void) { return count_broken(fence); }
static long count_system_call(void) { return count_broken(call_system); }
static long count_allocation(void) { return count_broken(allocate); }
static long count_giving_back(void) { allocate(); return count_broken(give_back); }

/* Messages of a run; those that the partner receives and sends in it, and what it calls with us. */
static const struct {
    const char *name, *calls;
    long (*run)(void);
    int messages, receives, sends;
    void (*together)(void);
} cases[] = {
    {"send", "MPI_Send", count_send, 1, 1, 0, NULL},
    {"recv", "MPI_Recv", count_recv, 1, 0, 1, NULL},
    {"send-vector", "MPI_Send(vector)", count_send_vector, 1, 1, 0, NULL},
    {"recv-vector", "MPI_Recv(vector)", count_recv_vector, 1, 0, 1, NULL},
    {"recv-any", "MPI_Recv(ANY_SOURCE,ANY_TAG)", count_recv_any, 1, 0, 1, NULL},
    {"recv-unexpected", "MPI_Recv", count_recv_unexpected, 1, 0, 1, NULL},
    {"sendrecv", "MPI_Sendrecv", count_sendrecv, 1, 1, 1, NULL},
    {"isend", "MPI_Isend+MPI_Wait", count_isend, 1, 1, 0, NULL},
    {"irecv-there", "MPI_Irecv+MPI_Wait", count_irecv_there, 1, 0, 1, NULL},
    {"irecv", "MPI_Irecv+MPI_Wait", count_irecv, 1, 0, 1, NULL},
    {"irecv-any", "MPI_Irecv(ANY_SOURCE,ANY_TAG)+MPI_Wait", count_irecv_any, 1, 0, 1, NULL},
    {"start-send", "MPI_Start(send)+MPI_Wait", count_start_send, 1, 1, 0, NULL},
    {"start-recv", "MPI_Start(receive)+MPI_Wait", count_start_recv, 1, 0, 1, NULL},
    {"window-send", "(64*MPI_Isend+MPI_Waitall)/64", count_window_send, WINDOW, WINDOW, 0, NULL},
    {"window-send-vector", "(64*MPI_Isend(vector)+MPI_Waitall)/64", count_window_send_vector, WINDOW, WINDOW, 0, NULL},
    {"window-receive", "(64*MPI_Irecv+MPI_Waitall)/64", count_window_receive, WINDOW, 0, WINDOW, NULL},
    {"window-receive-vector", "(64*MPI_Irecv(vector)+MPI_Waitall)/64", count_window_receive_vector, WINDOW, 0, WINDOW, NULL},
    {"window-there", "(64*MPI_Irecv+MPI_Waitall)/64", count_window_there, WINDOW, 0, WINDOW, NULL},
    {"barrier", "MPI_Barrier", count_barrier, 1, 0, 0, barrier},
    {"bcast", "MPI_Bcast", count_bcast, 1, 0, 0, bcast},
    {"allreduce", "MPI_Allreduce", count_allreduce, 1, 0, 0, allreduce},
    {"alltoall", "MPI_Alltoall", count_alltoall, 1, 0, 0, alltoall},
    {"allgather", "MPI_Allgather", count_allgather, 1, 0, 0, allgather},
    {"gather", "MPI_Gather", count_gather, 1, 0, 0, gather},
    {"scan", "MPI_Scan", count_scan, 1, 0, 0, scan},
    {"bcast-2k", "MPI_Bcast(2-KiB)", count_bcast_block, 1, 0, 0, bcast_block},
    {"gather-2k", "MPI_Gather(2-KiB)", count_gather_blocks, 1, 0, 0, gather_blocks},
    {"scatter-128", "MPI_Scatter(128-bytes)", count_scatter_blocks, 1, 0, 0, scatter_blocks},
    {"allreduce-2k", "MPI_Allreduce(2-KiB)", count_allreduce_block, 1, 0, 0, allreduce_block},
    {"scan-2k", "MPI_Scan(2-KiB)", count_scan_block, 1, 0, 0, scan_block},
    {"reduce-scatter", "MPI_Reduce_scatter", count_reduce_scatter, 1, 0, 0, reduce_scatter},
    {"alltoall-128", "MPI_Alltoall(128-bytes)", count_alltoall_blocks, 1, 0, 0, alltoall_blocks},
    {"gatherv", "MPI_Gatherv(root)", count_gatherv, 1, 0, 0, gatherv},
    {"scatterv", "MPI_Scatterv(root)", count_scatterv, 1, 0, 0, scatterv},
    {"alltoallv", "MPI_Alltoallv", count_alltoallv, 1, 0, 0, alltoallv},
    {"neighbor-allgather", "MPI_Neighbor_allgather(2-neighbours)", count_neighbor_allgather, 1, 0, 0, neighbor_allgather},
    {"exscan", "MPI_Exscan", count_exscan, 1, 0, 0, exscan},
    {"ibcast", "MPI_Ibcast+MPI_Wait", count_ibcast, 1, 0, 0, ibcast},
    {"iallreduce", "MPI_Iallreduce+MPI_Wait", count_iallreduce, 1, 0, 0, iallreduce},
    {"bcast-start", "MPI_Start(bcast)+MPI_Wait", count_bcast_start, 1, 0, 0, bcast_start},
    {"allreduce-start", "MPI_Start(allreduce)+MPI_Wait", count_allreduce_start, 1, 0, 0, allreduce_start},
    {"ibcast-2k", "MPI_Ibcast(2-KiB)+MPI_Wait", count_ibcast_block, 1, 0, 0, ibcast_block},
    {"igather-2k", "MPI_Igather(2-KiB)+MPI_Wait", count_igather_blocks, 1, 0, 0, igather_blocks},
    {"bcast-start-2k", "MPI_Start(bcast,2-KiB)+MPI_Wait", count_bcast_block_start, 1, 0, 0, bcast_block_start},
    {"ibcast-early", "MPI_Ibcast(early)+MPI_Wait", count_ibcast_early, 1, 0, 0, ibcast},
    {"ibcast-2k-early", "MPI_Ibcast(2-KiB,early)+MPI_Wait", count_ibcast_block_early, 1, 0, 0, ibcast_block},
    {"put", "MPI_Put", count_put, 1, 0, 0, NULL},
    {"get", "MPI_Get", count_get, 1, 0, 0, NULL},
    {"flush", "MPI_Win_flush", count_flush, 1, 0, 0, NULL},
    {"fetch-and-op", "MPI_Fetch_and_op", count_fetch_and_op, 1, 0, 0, NULL},
    {"compare-and-swap", "MPI_Compare_and_swap", count_compare_and_swap, 1, 0, 0, NULL},
    {"win-lock", "MPI_Win_lock+MPI_Win_unlock", count_lock_and_unlock, 1, 0, 0, NULL},
    {"win-fence", "MPI_Win_fence", count_win_fence, 1, 0, 0, win_fence},
    {"accumulate", "MPI_Accumulate(2-elements)", count_accumulate, 1, 0, 0, NULL},
    {"broken-lock", "lock", count_lock, 1, 0, 0, NULL},
    {"broken-exchange", "xchg", count_exchange, 1, 0, 0, NULL},
    {"broken-fence", "mfence", count_fence, 1, 0, 0, NULL},
    {"broken-system-call", "syscall", count_system_call, 1, 0, 0, NULL},
    {"broken-allocation", "malloc", count_allocation, 1, 0, 0, NULL},
    {"broken-free", "free", count_giving_back, 1, 0, 0, NULL},
};
enum { CASES = sizeof cases / sizeof *cases };

/* A window takes long to step through. */
static int rounds(int i) { return cases[i].messages == 1 ? ROUNDS : ROUNDS / 8; }

/* Whether a case is to be run: those that the arguments name, or all that are MPI's. */
static char **wanted;
static int is_wanted(const char *name)
{
    for (int i = 0; wanted[i]; i++) if (strcmp(wanted[i], name) == 0) return 1;
    return !wanted[0] && strncmp(name, "broken-", 7) != 0;
}

/* Writes the addresses of the run that has just been, and what was loaded where. */
static void trace(const char *name)
{
    const char *directory = getenv("INSTRUCTIONS_TRACE");
    char line[4096], path[4096];
    if (!directory) return;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *to = fopen(path, "w"), *maps = fopen("/proc/self/maps", "r");
    if (!to || !maps) {
        perror(path);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    while (fgets(line, sizeof line, maps)) if (strstr(line, "r-xp")) fprintf(to, "map %s", line);
    fprintf(to, "entry malloc %lx\nentry calloc %lx\nentry realloc %lx\nentry free %lx\n", (unsigned long)malloc,
            (unsigned long)calloc, (unsigned long)realloc, (unsigned long)free);
    for (long i = 0; i < shared->steps && i < KEPT; i++) fprintf(to, "%lx\n", shared->at[i]);
    fclose(to);
    fclose(maps);
}

static void measure(void)
{
    long empty = count_nothing();
    for (int i = 0; i < CASES; i++) {
        if (!is_wanted(cases[i].name)) continue;
        long least = KEPT;
        for (int j = 0; j < rounds(i); j++) {
            long count = cases[i].run();
            if (count >= least) continue;
            least = count;
            trace(cases[i].name);
        }
        printf("case=%s calls=%s instructions=%ld\n", cases[i].name, cases[i].calls, (least - empty) / cases[i].messages);
    }
}

static void partner(void)
{
    for (int i = 0; i < CASES; i++) {
        for (int j = 0; j < rounds(i) && is_wanted(cases[i].name); j++) {
            await(GO);
            send_many(cases[i].sends);
            receive_many(cases[i].receives);
            if (cases[i].together) cases[i].together();
        }
    }
}

static void release(void)
{
    MPI_Request_free(&kept_bcast);
    MPI_Request_free(&kept_allreduce);
    MPI_Request_free(&kept_bcast_block);
    MPI_Comm_free(&ring);
    MPI_Win_free(&window);
}

int main(int argc, char **argv)
{
    int rank;
    setvbuf(stdout, NULL, _IOLBF, 0);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    world = MPI_COMM_WORLD;
    wanted = argv + 1;
    long *memory;
    MPI_Win_allocate(64, sizeof *memory, MPI_INFO_NULL, world, &memory, &window);
    MPI_Cart_create(world, 1, (int[]) {2}, (int[]) {1}, 0, &ring);
    MPI_Bcast_init(in, 1, MPI_LONG, 1, world, MPI_INFO_NULL, &kept_bcast);
    MPI_Allreduce_init(out, in, 1, MPI_LONG, MPI_SUM, world, MPI_INFO_NULL, &kept_allreduce);
    MPI_Bcast_init(blocks_in, 2048, MPI_CHAR, 1, world, MPI_INFO_NULL, &kept_bcast_block);
    if (rank == 1) {
        partner();
        release();
        MPI_Finalize();
        return 0;
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t self = getpid(), child = fork();
    if (child == 0) count(self);
    prctl(PR_SET_PTRACER, child, 0, 0, 0);
    shared->allowed = 1;
    while (!shared->attached) usleep(1000);
    if (shared->attached < 0) MPI_Abort(MPI_COMM_WORLD, 2);
    measure();
    release();
    MPI_Finalize();
    return 0;
}
