/* event_cost.c: user-space instructions of an 8-byte send and receive, put and get, counted one by one.
 *
 *   mpiexec -n 2 event_cost        prints a line "case=… send=… recv=… pair=…" for each case (rank 0, medians)
 *
 * Rank 0 sends to rank 1 and receives messages that are there already, so neither call waits and the count is a
 * property of the code, not of the machine or its load. The cases: blocking calls whose message lies in the ring
 * (ring); blocking calls whose message lies in the unexpected queue (unexpected); nonblocking calls and their waits
 * (nonblocking). Besides, in a window: put and get (one-sided), lock and unlock (window-lock), each as its two calls.
 * A child process counts: it single-steps rank 0 and looks at a word of shared memory that says what is being measured.
 * Run it on two builds of the library to see what one costs more. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

/* After some sixteen messages out of a ring a receive looks at everything, which puts those behind into the unexpected
 * queue: so there are fewer of them at a time, and a meeting looks at everything before. */
enum { ROUNDS = 4, AT_ONCE = 8, PAIRS = ROUNDS * AT_ONCE, CASES = 3 };
enum phase { ATTACHING, IDLE, SENDING, RECEIVING, OVER, PHASES };
static const char *const names[CASES] = {"ring", "unexpected", "nonblocking"};

struct shared {
    volatile int allowed, phase;
    long steps[PHASES];
};

static void count(pid_t rank, struct shared *shared)
{
    int status;
    while (!shared->allowed) usleep(1000);
    if (ptrace(PTRACE_ATTACH, rank, 0, 0) != 0) {
        perror("event_cost: ptrace");
        shared->phase = OVER;
        _exit(2);
    }
    waitpid(rank, &status, __WALL);
    shared->phase = IDLE;
    while (shared->phase != OVER) {
        int phase = shared->phase;
        /* A signal that came meanwhile is for the rank. */
        int signal = WSTOPSIG(status) == SIGTRAP || WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status);
        if (ptrace(PTRACE_SINGLESTEP, rank, 0, signal) != 0 || waitpid(rank, &status, __WALL) != rank) _exit(2);
        shared->steps[phase]++;
    }
    ptrace(PTRACE_DETACH, rank, 0, 0);
    _exit(0);
}

static int by_size(const void *a, const void *b)
{
    long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

static long median(long *values)
{
    qsort(values, PAIRS, sizeof *values, by_size);
    return values[PAIRS / 2];
}

/* Both ranks are through with everything before. */
static void meet(int rank)
{
    long nothing = 0;
    MPI_Sendrecv(&nothing, 1, MPI_LONG, 1 - rank, 9, &nothing, 1, MPI_LONG, 1 - rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void partner(void)
{
    long out = 1, in;
    for (int i = 0; i < CASES * ROUNDS; i++) {
        int signals = 1;
        for (int j = 0; j < AT_ONCE; j++) MPI_Send(&out, 1, MPI_LONG, 0, 3, MPI_COMM_WORLD);
        if (i / ROUNDS == 1) MPI_Send(&signals, 1, MPI_INT, 0, 4, MPI_COMM_WORLD);
        meet(1);
        for (int j = 0; j < AT_ONCE; j++) MPI_Recv(&in, 1, MPI_LONG, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void send(int nonblocking)
{
    long out = 1;
    MPI_Request request;
    if (!nonblocking) {
        MPI_Send(&out, 1, MPI_LONG, 1, 3, MPI_COMM_WORLD);
        return;
    }
    MPI_Isend(&out, 1, MPI_LONG, 1, 3, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void receive(int nonblocking)
{
    long in;
    MPI_Request request;
    if (!nonblocking) {
        MPI_Recv(&in, 1, MPI_LONG, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    MPI_Irecv(&in, 1, MPI_LONG, 1, 3, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void measure(struct shared *shared, int which)
{
    long sends[PAIRS], receives[PAIRS];
    int signal;
    for (int i = 0; i < PAIRS; i++) {
        if (i % AT_ONCE == 0) {
            if (i > 0) meet(0);
            /* The partner sends meanwhile; a message that is late makes one count larger,
             * which the median does not see. */
            usleep(100000);
            if (which == 1) MPI_Recv(&signal, 1, MPI_INT, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        shared->steps[SENDING] = shared->steps[RECEIVING] = 0;
        shared->phase = SENDING;
        send(which == 2);
        shared->phase = RECEIVING;
        receive(which == 2);
        shared->phase = IDLE;
        sends[i] = shared->steps[SENDING];
        receives[i] = shared->steps[RECEIVING];
    }
    long sent = median(sends), received = median(receives);
    printf("case=%s send=%ld recv=%ld pair=%ld\n", names[which], sent, received, sent + received);
}

/* The two calls of a case of windows. */
static void first(MPI_Win win, int locks)
{
    long out = 1;
    if (locks) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
    else MPI_Put(&out, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win);
}

static void second(MPI_Win win, int locks)
{
    long in;
    if (locks) MPI_Win_unlock(1, win);
    else MPI_Get(&in, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win);
}

static void measure_window(struct shared *shared, MPI_Win win, int locks)
{
    long firsts[PAIRS], seconds[PAIRS];
    if (!locks) MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    first(win, locks);
    second(win, locks);
    for (int i = 0; i < PAIRS; i++) {
        shared->steps[SENDING] = shared->steps[RECEIVING] = 0;
        shared->phase = SENDING;
        first(win, locks);
        shared->phase = RECEIVING;
        second(win, locks);
        shared->phase = IDLE;
        firsts[i] = shared->steps[SENDING];
        seconds[i] = shared->steps[RECEIVING];
    }
    if (!locks) MPI_Win_unlock(1, win);
    long one = median(firsts), other = median(seconds);
    printf(locks ? "case=window-lock lock=%ld unlock=%ld pair=%ld\n" : "case=one-sided put=%ld get=%ld pair=%ld\n", one, other,
           one + other);
}

int main(int argc, char **argv)
{
    int rank, status;
    long *base;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    /* Rings and matching state are made at first use, and calls bound: all of that happens here. */
    for (int i = 0; i < 64; i++) meet(rank);
    MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    if (rank == 1) {
        partner();
        MPI_Win_free(&win);
        MPI_Finalize();
        return 0;
    }
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t self = getpid(), child = fork();
    if (child == 0) count(self, shared);
    prctl(PR_SET_PTRACER, child, 0, 0, 0);
    shared->allowed = 1;
    while (shared->phase == ATTACHING) usleep(1000);
    for (int i = 0; i < CASES && shared->phase != OVER; i++) {
        measure(shared, i);
        meet(0);
    }
    for (int locks = 0; locks < 2 && shared->phase != OVER; locks++) measure_window(shared, win, locks);
    if (shared->phase == OVER) MPI_Abort(MPI_COMM_WORLD, 2);
    shared->phase = OVER;
    waitpid(child, &status, 0);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
