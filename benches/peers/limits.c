/* limits.c: what the machine can do at best, without any MPI; measured beside the libraries and printed as they print.
 *
 *   limits line | copy | bare | barrier N… | launch N…
 *
 * line: microseconds one way of a cache line between two processes, each on a processor of its own: a line each way, as
 * a message is, and one word that both write, which saves half of that and which no channel that goes one way can be.
 * bare: microseconds of a store and a fence, and of an atomic addition, to a line in memory that another process has
 * mapped. copy: GB/s of memcpy, one core, through as much memory as the bandwidth metric. barrier: a counter and a word
 * that all watch, waiting by spinning and yielding or by futex. launch: milliseconds to start and reap N processes that
 * do nothing. */
#define _GNU_SOURCE
#include "probe.h"
#include <linux/futex.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHUNKS = 7, MOST_WINDOW = 64, ROOM = 16 << 20, SPINS = 200 };

struct shared {
    struct line line;
    _Alignas(128) _Atomic unsigned arrived;
    _Alignas(128) _Atomic unsigned turn;
};
static struct shared *shared;
static double scale = 1;

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_size);
    return values[n / 2];
}

/* The driver's prober, and what it said before the measurement that goes on; 0: it was not asked. */
static struct probe_page *page;
static double before;

static void begin(void)
{
    before = page ? probe(page, 1) : 0;
}

/* Prints as the libraries' benchmark does. */
__attribute__((format(printf, 2, 3))) static void result(double value, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("R ");
    vprintf(format, arguments);
    va_end(arguments);
    printf(" %.9g", value);
    if (before > 0) printf(" %.4g %.4g", before, probe(page, 1));
    printf("\n");
    before = 0;
}

/* The processors that this program was given. */
static cpu_set_t given;

static void bind_to(int nth)
{
    cpu_set_t one;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &given) || nth-- > 0) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
        return;
    }
}

static void unbind(void)
{
    sched_setaffinity(0, sizeof given, &given);
}

static double one_way(int each_way)
{
    memset(&shared->line, 0, sizeof shared->line);
    pid_t child = fork();
    int first = child != 0;
    bind_to(!first);
    double took[WAYS_TO_LOOK], best;
    line_one_way(&shared->line, first, each_way, 20000, WAYS_TO_LOOK, took);
    if (!first) _exit(0);
    waitpid(child, NULL, 0);
    unbind();
    best = took[0];
    for (int way = 1; way < WAYS_TO_LOOK; way++)
        if (took[way] < best) best = took[way];
    return best;
}

static void lines(void)
{
    if (CPU_COUNT(&given) < 2) return;
    for (int each_way = 1; each_way >= 0; each_way--) {
        begin();
        double time = one_way(each_way);
        result(time * 1e6, "line/%s", each_way ? "each-way" : "shared-word");
    }
}

static void copies(void)
{
    char *from = malloc(ROOM), *to = malloc(ROOM);
    memset(from, 1, ROOM);
    memset(to, 1, ROOM);
    for (int bytes = 4 << 10; bytes <= 4 << 20; bytes *= 4) {
        int window = ROOM / bytes < MOST_WINDOW ? ROOM / bytes : MOST_WINDOW;
        double times[CHUNKS];
        begin();
        for (int i = 0; i < CHUNKS; i++) {
            long copied = 0;
            double start = now(), took;
            do {
                for (int j = 0; j < window; j++) memcpy(to + (size_t)j * (size_t)bytes, from + (size_t)j * (size_t)bytes, (size_t)bytes);
                copied += window;
                took = now() - start;
            } while (took < 0.005 * scale);
            times[i] = took / (double)copied;
        }
        result(bytes / median(times, CHUNKS) * 1e-9, "copy/%d", bytes);
    }
    free(from);
    free(to);
}

static void bare(void)
{
    enum { TIMES = 100000 };
    double stores[CHUNKS], adds[CHUNKS];
    begin();
    for (int i = 0; i < CHUNKS; i++) {
        double start = now();
        for (unsigned j = 0; j < TIMES; j++) {
            atomic_store_explicit(&shared->turn, j, memory_order_relaxed);
            atomic_thread_fence(memory_order_seq_cst);
        }
        stores[i] = (now() - start) / TIMES;
        start = now();
        for (unsigned j = 0; j < TIMES; j++) atomic_fetch_add(&shared->arrived, 1);
        adds[i] = (now() - start) / TIMES;
    }
    double store = median(stores, CHUNKS), add = median(adds, CHUNKS);
    result(store * 1e6, "bare/store-fence");
    begin();
    result(add * 1e6, "bare/fetch-add");
}

static void barrier(int n, int futex, int oversubscribed)
{
    unsigned turn = atomic_load_explicit(&shared->turn, memory_order_acquire);
    if (atomic_fetch_add(&shared->arrived, 1) + 1 == (unsigned)n) {
        atomic_store(&shared->arrived, 0);
        atomic_store(&shared->turn, turn + 1);
        if (futex) syscall(SYS_futex, &shared->turn, FUTEX_WAKE, n, NULL, NULL, 0);
        return;
    }
    for (int spins = 0; atomic_load_explicit(&shared->turn, memory_order_acquire) == turn; spins++) {
        if (!oversubscribed) {
            __builtin_ia32_pause();
            if (spins % 65536 == 65535) sched_yield();
        } else if (futex) {
            syscall(SYS_futex, &shared->turn, FUTEX_WAIT, turn, NULL, NULL, 0);
        } else {
            sched_yield();
        }
    }
}

static double barrier_time(int n, int futex)
{
    double times[CHUNKS];
    int oversubscribed = n > CPU_COUNT(&given), rounds = oversubscribed ? 300 : 50000, rank = 0;
    memset(shared, 0, sizeof *shared);
    while (rank + 1 < n && fork() != 0) rank++;
    int parent = rank + 1 == n;
    if (!oversubscribed) bind_to(rank);
    for (int i = 0; i < CHUNKS + 1; i++) {
        double start = now();
        for (int j = 0; j < rounds; j++) barrier(n, futex, oversubscribed);
        if (i > 0) times[i - 1] = (now() - start) / rounds;
    }
    if (!parent) _exit(0);
    while (wait(NULL) > 0) continue;
    unbind();
    return median(times, CHUNKS);
}

static void barriers(int n)
{
    for (int futex = 0; futex <= (n > CPU_COUNT(&given)); futex++) {
        begin();
        double time = barrier_time(n, futex);
        result(time * 1e6, "flags%s/%d", futex ? "-futex" : "", n);
    }
}

static void launch(int n, const char *self)
{
    double times[CHUNKS];
    for (int i = 0; i < CHUNKS; i++) {
        double start = now();
        for (int j = 0; j < n; j++) {
            if (fork() == 0) {
                execl(self, self, (char *)NULL);
                _exit(127);
            }
        }
        while (wait(NULL) > 0) continue;
        times[i] = now() - start;
    }
    result(median(times, CHUNKS) * 1e3, "spawn/%d", n);
}

int main(int argc, char **argv)
{
    /* An empty program, for launch. */
    if (argc == 1) return 0;
    if (getenv("BENCH_SCALE")) scale = atof(getenv("BENCH_SCALE"));
    sched_getaffinity(0, sizeof given, &given);
    const char *path = getenv("BENCH_PAGE");
    if (path && *path && (page = probe_open(path)) == NULL) {
        perror(path);
        return 3;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 1; i < argc; i++) {
        int n = i + 1 < argc ? atoi(argv[i + 1]) : 0;
        if (strcmp(argv[i], "line") == 0) lines();
        if (strcmp(argv[i], "copy") == 0) copies();
        if (strcmp(argv[i], "bare") == 0) bare();
        if (strcmp(argv[i], "barrier") == 0 && n > 0) barriers(n);
        if (strcmp(argv[i], "launch") == 0 && n > 0) launch(n, argv[0]);
    }
    return 0;
}
