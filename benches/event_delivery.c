/* event_delivery.c: what an empty callback costs per event that it gets, in messages as programs send them.
 *
 *   mpiexec -n 1 event_delivery [ROUNDS]       messages of 8 bytes to oneself: MPI_Isend, MPI_Recv, MPI_Wait
 *   mpiexec -n 2 event_delivery [ROUNDS]       a ping-pong of 8 bytes: MPI_Send and MPI_Recv
 *
 * The same messages are sent while nobody listens (idle), while a handle listens to an event that they do not cause, so
 * that they take the slow path but no callback is called (gate), and with empty callbacks on everything that they
 * cause: handles of PERUSE, of MPI_T bound to the communicator, of MPI_T unbound, and two MPI_T handles of each event.
 * In each round all of these run one after the other, so that what the machine does meets all alike. A line for each
 * case: deliveries to this rank's callbacks for one message (a round trip, with two ranks), nanoseconds of a message,
 * and what a delivery costs beyond idle and beyond gate: of the medians, and of the least. With one rank that is also
 * counted in instructions, one by one, where ptrace is allowed; with two, both ranks' deliveries lie on the way of a
 * round trip, so they are counted together. */
#include <mpi.h>
#include <peruse.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MESSAGES = 4000, EVENTS = 16, COPIES = 2, MOST = 999, TAG = 1 };

static int rank, size;
static long delivered;
static MPI_Comm world;

static void message(void)
{
    long out = 1, in;
    MPI_Request request;
    if (size == 1) {
        MPI_Isend(&out, 1, MPI_LONG, 0, TAG, world, &request);
        MPI_Recv(&in, 1, MPI_LONG, 0, TAG, world, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (rank == 0) {
        MPI_Send(&out, 1, MPI_LONG, 1, TAG, world);
        MPI_Recv(&in, 1, MPI_LONG, 1, TAG, world, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(&in, 1, MPI_LONG, 0, TAG, world, MPI_STATUS_IGNORE);
        MPI_Send(&out, 1, MPI_LONG, 0, TAG, world);
    }
}

static double nanoseconds(void)
{
    double start = MPI_Wtime();
    for (int i = 0; i < MESSAGES; i++) message();
    return (MPI_Wtime() - start) * 1e9 / MESSAGES;
}

/* Callbacks: empty ones, and ones that count. */

static int peruse_empty(peruse_event_h h, MPI_Aint id, peruse_comm_spec_t *spec, void *data) { return PERUSE_SUCCESS; }
static int peruse_counts(peruse_event_h h, MPI_Aint id, peruse_comm_spec_t *spec, void *data) { return delivered++, PERUSE_SUCCESS; }
static void tool_empty(MPI_T_event_instance e, MPI_T_event_registration h, MPI_T_cb_safety s, void *data) {}
static void tool_counts(MPI_T_event_instance e, MPI_T_event_registration h, MPI_T_cb_safety s, void *data) { delivered++; }

static peruse_event_h handles[EVENTS + 1];
static MPI_T_event_registration registrations[COPIES * EVENTS];
static int made;

static void peruse(int first, int last, peruse_comm_callback_f *function)
{
    for (int event = first; event <= last; event++) {
        PERUSE_Event_comm_register(event, world, function, NULL, &handles[made]);
        PERUSE_Event_activate(handles[made++]);
    }
}

/* PERUSE's events are the first types: unbound from index 0. */
static void tool(int copies, int bound, MPI_T_event_cb_function *function)
{
    for (int copy = 0; copy < copies; copy++) {
        for (int event = 1; event <= EVENTS; event++) {
            int index = event - 1, length = 100;
            char name[100];
            if (bound) {
                MPI_T_event_get_info(index, name, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
                *strstr(name, "_all") = 0;
                MPI_T_event_get_index(name, &index);
            }
            MPI_T_event_handle_alloc(index, bound ? &world : NULL, MPI_INFO_NULL, &registrations[made]);
            MPI_T_event_register_callback(registrations[made++], MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, MPI_INFO_NULL, NULL, function);
        }
    }
}

static void idle(int counts) {}
static void gate(int counts) { peruse(PERUSE_COMM_REQ_XFER_CONTINUE, PERUSE_COMM_REQ_XFER_CONTINUE, peruse_empty); }
static void with_peruse(int counts) { peruse(1, EVENTS, counts ? peruse_counts : peruse_empty); }
static void with_bound(int counts) { tool(1, 1, counts ? tool_counts : tool_empty); }
static void with_unbound(int counts) { tool(1, 0, counts ? tool_counts : tool_empty); }
static void with_two(int counts) { tool(COPIES, 0, counts ? tool_counts : tool_empty); }

static void end(void)
{
    for (int i = 0; i < made; i++) {
        if (registrations[i]) MPI_T_event_handle_free(registrations[i], NULL, NULL);
        else PERUSE_Event_release(&handles[i]);
        registrations[i] = 0;
    }
    made = 0;
}

static const struct {
    const char *name;
    void (*begin)(int counts);
} cases[] = {
    {"idle", idle}, {"gate", gate}, {"peruse", with_peruse}, {"mpi_t-bound", with_bound}, {"mpi_t", with_unbound}, {"mpi_t-twice", with_two},
};
enum { CASES = sizeof cases / sizeof *cases };

/* Instructions: a child steps through what happens while `counting` is set. */

static struct shared { volatile int attached, counting; volatile long steps; } *shared;

static void step_through(pid_t parent)
{
    int status;
    if (ptrace(PTRACE_ATTACH, parent, 0, 0) != 0) shared->attached = -1, _exit(2);
    waitpid(parent, &status, __WALL);
    shared->attached = 1;
    while (!WIFEXITED(status) && !WIFSIGNALED(status)) {
        int signal = WSTOPSIG(status) == SIGTRAP || WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status);
        int counted = shared->counting;
        if (ptrace(counted ? PTRACE_SINGLESTEP : PTRACE_CONT, parent, 0, signal) != 0) _exit(2);
        if (waitpid(parent, &status, __WALL) != parent) _exit(2);
        if (counted) shared->steps++;
    }
    _exit(0);
}

static long instructions(void)
{
    long least = -1;
    for (int round = 0; round < 8; round++) {
        message();
        shared->steps = 0;
        shared->counting = 1;
        __asm__ volatile("int3");
        message();
        shared->counting = 0;
        if (least < 0 || shared->steps < least) least = shared->steps;
    }
    return least;
}

static int less(const void *a, const void *b) { return (*(double *)a > *(double *)b) - (*(double *)a < *(double *)b); }

int main(int argc, char **argv)
{
    static double times[CASES][MOST];
    double median[CASES], least[CASES];
    long deliveries[CASES], counted[CASES];
    int provided, rounds = argc > 1 ? atoi(argv[1]) : 31;
    if (rounds < 1 || rounds > MOST) rounds = MOST;

    MPI_Init(NULL, NULL);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    PERUSE_Init();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    world = MPI_COMM_WORLD;

    for (int c = 0; c < CASES; c++) {
        cases[c].begin(1);
        MPI_Barrier(world);
        delivered = 0;
        for (int i = 0; i < 100; i++) message();
        long mine = delivered;
        end();
        MPI_Allreduce(&mine, &deliveries[c], 1, MPI_LONG, MPI_SUM, world);
    }
    for (int round = 0; round < rounds; round++) {
        for (int c = 0; c < CASES; c++) {
            cases[c].begin(0);
            MPI_Barrier(world);
            times[c][round] = nanoseconds();
            end();
        }
    }
    for (int c = 0; c < CASES; c++) {
        qsort(times[c], rounds, sizeof times[c][0], less);
        median[c] = times[c][rounds / 2], least[c] = times[c][0];
    }

    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = -1;
    if (size == 1) {
        pid_t parent = getpid();
        child = fork();
        if (child == 0) step_through(parent);
        prctl(PR_SET_PTRACER, child);
        while (!shared->attached) usleep(1000);
    }
    int steps = size == 1 && shared->attached == 1;
    for (int c = 0; steps && c < CASES; c++) {
        cases[c].begin(0);
        counted[c] = instructions();
        end();
    }
    for (int c = 0; rank == 0 && c < CASES; c++) {
        double n = deliveries[c] / 100.0;
        printf("case=%-12s deliveries=%.2f message_ns=%.1f least_ns=%.1f", cases[c].name, n, median[c], least[c]);
        if (n > 0)
            printf(" beyond_idle_ns=%.2f least=%.2f beyond_gate_ns=%.2f least=%.2f", (median[c] - median[0]) / n, (least[c] - least[0]) / n,
                   (median[c] - median[1]) / n, (least[c] - least[1]) / n);
        if (steps) printf(" instructions=%ld", counted[c]);
        if (steps && n > 0) printf(" beyond_idle=%.1f beyond_gate=%.1f", (counted[c] - counted[0]) / n, (counted[c] - counted[1]) / n);
        printf("\n");
    }
    MPI_T_finalize();
    MPI_Finalize();
    if (child > 0) kill(child, SIGKILL);
    return 0;
}
