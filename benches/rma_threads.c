/* rma_threads.c: threads that put to or get from a peer, and what the events of the window tell about it (after RMA-MT,
 * and section 5.3 of the paper on MPI_T events).
 *
 *   mpiexec -n 2 rma_threads [THREADS,… [BYTES,… [MEBIBYTES]]]       1,2,4,8 threads; 8, 4096 and 262144 bytes
 *
 * Threads of rank 0 perform PER_ROUND operations each in a round; its first thread synchronises. The synchronisations:
 *   flush      MPI_Win_lock_all once; after a round the first thread calls MPI_Win_flush
 *   all_flush  the same, but each thread calls MPI_Win_flush
 *   lock       MPI_Win_lock and MPI_Win_unlock around a round
 *   fence      MPI_Win_fence around a round, at both ranks
 *   pscw       MPI_Win_start and MPI_Win_complete, MPI_Win_post and MPI_Win_wait
 *
 * Each case runs three times. Twice without listeners: the better bandwidth. Then with listeners: all else, which is
 * from the events osc_rdma_put_started and osc_rdma_put_complete (get alike) and their time stamps:
 *   op_us      the median duration of an operation
 *   longest_us the longest one
 *   at_once    how many operations were being performed, on average, while at least one was
 *   share      bytes of the busiest thread, in ratio to an equal share
 *   elsewhere  operations that another thread completed than the one that started them
 *   sync_us    the median time from the last completion of a round until the call that ends the round returned
 *   listening  time of the rounds with listeners, in ratio to that without */
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 64, LIST = 16, PER_ROUND = 16, PAGE = 4096 };

enum { FLUSH, ALL_FLUSH, LOCK, FENCE, PSCW, SYNCHRONISATIONS };
static const char *const names[] = {"flush", "all_flush", "lock", "fence", "pscw"};

/* An operation, as its two events tell it. */
typedef struct {
    double from, to;
} span_t;

/* What events said to one thread. */
typedef struct {
    double started;
    int open, source;
    long done, elsewhere;
    uint64_t bytes;
    span_t *spans;
} seen_t;

static seen_t seen[THREADS];
static _Thread_local seen_t *mine;
static long room;

static MPI_Win win;
static MPI_Group peer;
static char *local;
static int rank, threads, kind, is_get, rounds;
static size_t bytes;
static pthread_barrier_t barrier;
static double *ends;

static void fail(const char *what)
{
    fprintf(stderr, "rma_threads: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static double time_of(MPI_T_event_instance instance)
{
    MPI_Count stamp;
    MPI_T_event_get_timestamp(instance, &stamp);
    return (double)stamp;
}

static void on_started(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    (void)handle, (void)level, (void)data;
    if (mine == NULL) return;
    if (mine->done == 0) MPI_T_event_get_source(instance, &mine->source);
    mine->started = time_of(instance);
    mine->open++;
}

static void on_complete(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    uint64_t size;
    (void)handle, (void)level, (void)data;
    if (mine == NULL) return;
    if (mine->open == 0) {
        mine->elsewhere++;
        return;
    }
    MPI_T_event_read(instance, 2, &size);
    mine->open--;
    mine->bytes += size;
    if (mine->done < room) mine->spans[mine->done++] = (span_t){mine->started, time_of(instance)};
}

static MPI_T_event_registration listen_to(const char *name, MPI_T_event_cb_function *function)
{
    MPI_T_event_registration handle;
    int index;
    if (MPI_T_event_get_index(name, &index) != MPI_SUCCESS) fail("the library has no events of windows");
    if (MPI_T_event_handle_alloc(index, &win, MPI_INFO_NULL, &handle) != MPI_SUCCESS) fail("no handle for an event");
    MPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, MPI_INFO_NULL, NULL, function);
    return handle;
}

static void begin(void)
{
    if (kind == LOCK) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
    if (kind == FENCE) MPI_Win_fence(0, win);
    if (kind == PSCW) MPI_Win_start(peer, 0, win);
}

static void end(void)
{
    if (kind == FLUSH) MPI_Win_flush(1, win);
    if (kind == LOCK) MPI_Win_unlock(1, win);
    if (kind == FENCE) MPI_Win_fence(0, win);
    if (kind == PSCW) MPI_Win_complete(win);
}

static void *work(void *argument)
{
    int me = (int)(intptr_t)argument;
    size_t part = (bytes * PER_ROUND + PAGE - 1) / PAGE * PAGE;
    mine = &seen[me];
    for (int round = 0; round < rounds; round++) {
        if (me == 0) begin();
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < PER_ROUND; i++) {
            size_t at = (size_t)me * part + (size_t)i * bytes;
            if (is_get) MPI_Get(local + at, (int)bytes, MPI_BYTE, 1, (MPI_Aint)at, (int)bytes, MPI_BYTE, win);
            else MPI_Put(local + at, (int)bytes, MPI_BYTE, 1, (MPI_Aint)at, (int)bytes, MPI_BYTE, win);
        }
        if (kind == ALL_FLUSH) MPI_Win_flush(1, win);
        pthread_barrier_wait(&barrier);
        if (me == 0) {
            end();
            MPI_Count stamp = 0;
            if (seen[0].done > 0) MPI_T_source_get_timestamp(seen[0].source, &stamp);
            ends[round] = (double)stamp;
        }
    }
    mine = NULL;
    return NULL;
}

/* All rounds; gives the seconds that they took. */
static double run(void)
{
    pthread_t other[THREADS];
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && kind <= ALL_FLUSH) MPI_Win_lock_all(0, win);
    double start = MPI_Wtime();
    if (rank == 0) {
        pthread_barrier_init(&barrier, NULL, (unsigned)threads);
        for (int i = 1; i < threads; i++)
            if (pthread_create(&other[i], NULL, work, (void *)(intptr_t)i) != 0) fail("no thread");
        work(NULL);
        for (int i = 1; i < threads; i++) pthread_join(other[i], NULL);
        pthread_barrier_destroy(&barrier);
    } else {
        for (int round = 0; round < rounds; round++) {
            if (kind == FENCE) MPI_Win_fence(0, win), MPI_Win_fence(0, win);
            if (kind == PSCW) MPI_Win_post(peer, 0, win), MPI_Win_wait(win);
        }
    }
    double took = MPI_Wtime() - start;
    if (rank == 0 && kind <= ALL_FLUSH) MPI_Win_unlock_all(win);
    if (kind == FENCE) MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Barrier(MPI_COMM_WORLD);
    return took;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int by_start(const void *a, const void *b) { return by_value(&((const span_t *)a)->from, &((const span_t *)b)->from); }

static double median(double *values, long count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return count > 0 ? values[count / 2] : 0;
}

static void evaluate(double idle, double listened)
{
    MPI_Count per_second = 1;
    MPI_T_source_get_info(seen[0].source, NULL, NULL, NULL, NULL, NULL, &per_second, NULL, NULL);
    double ticks = (double)per_second;
    long all = 0, elsewhere = 0, wanted = (long)threads * rounds * PER_ROUND;
    uint64_t most = 0, sum = 0;
    double busy = 0, covered = 0, until = 0, longest = 0;
    span_t *spans = malloc((size_t)wanted * sizeof *spans);
    double *values = malloc((size_t)wanted * sizeof *values), *waits = malloc((size_t)rounds * sizeof *waits);
    if (spans == NULL || values == NULL || waits == NULL) fail("no memory");
    for (int i = 0; i < threads; i++) {
        memcpy(spans + all, seen[i].spans, (size_t)seen[i].done * sizeof *spans);
        all += seen[i].done;
        elsewhere += seen[i].elsewhere;
        sum += seen[i].bytes;
        if (seen[i].bytes > most) most = seen[i].bytes;
    }
    for (long i = 0; i < all; i++) {
        values[i] = spans[i].to - spans[i].from;
        busy += values[i];
        if (values[i] > longest) longest = values[i];
    }
    qsort(spans, (size_t)all, sizeof *spans, by_start);
    for (long i = 0; i < all; i++) {
        if (spans[i].to > until) covered += spans[i].to - (spans[i].from > until ? spans[i].from : until), until = spans[i].to;
    }
    for (int round = 0, at = 0; round < rounds; round++) {
        double last = 0;
        for (int i = 0; i < PER_ROUND * threads && at < all; i++, at++)
            if (spans[at].to > last) last = spans[at].to;
        waits[round] = ends[round] - last;
    }
    double volume = (double)bytes * (double)wanted;
    printf("%-4s %-9s threads=%d bytes=%zu MB/s=%.0f operations=%ld op_us=%.3f longest_us=%.1f at_once=%.2f share=%.2f elsewhere=%ld "
           "sync_us=%.2f listening=%.2f\n",
           is_get ? "get" : "put", names[kind], threads, bytes, volume / idle / 1e6, all, median(values, all) / ticks * 1e6, longest / ticks * 1e6,
           covered > 0 ? busy / covered : 0, sum > 0 ? (double)most * threads / (double)sum : 0, elsewhere,
           median(waits, rounds) / ticks * 1e6, listened / idle);
    fflush(stdout);
    free(spans), free(values), free(waits);
}

static void measure(void)
{
    double first = run(), second = run(), idle = first < second ? first : second;
    room = 0;
    if (rank == 0) {
        room = (long)rounds * PER_ROUND;
        for (int i = 0; i < threads; i++) {
            seen[i] = (seen_t){.spans = malloc((size_t)room * sizeof(span_t))};
            if (seen[i].spans == NULL) fail("no memory");
        }
    }
    MPI_T_event_registration handles[2];
    handles[0] = listen_to(is_get ? "osc_rdma_get_started" : "osc_rdma_put_started", on_started);
    handles[1] = listen_to(is_get ? "osc_rdma_get_complete" : "osc_rdma_put_complete", on_complete);
    double listened = run();
    for (int i = 0; i < 2; i++) MPI_T_event_handle_free(handles[i], NULL, NULL);
    if (rank == 0) {
        evaluate(idle, listened);
        for (int i = 0; i < threads; i++) free(seen[i].spans);
    }
}

static int list_of(const char *text, long *list, long most)
{
    int count = 0;
    for (char *end; count < LIST; text = end + 1) {
        list[count] = strtol(text, &end, 10);
        if (end == text || list[count] < 1 || list[count] > most) fail("a list has numbers above 0 with commas between, at most 64 threads");
        count++;
        if (*end != ',') break;
    }
    return count;
}

int main(int argc, char **argv)
{
    int provided, size, one;
    long team[LIST], lengths[LIST], mebibytes = 64;
    MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2) fail("it is a job of 2 ranks");
    if (provided != MPI_THREAD_MULTIPLE) fail("the library has no MPI_THREAD_MULTIPLE");
    int teams = list_of(argc > 1 ? argv[1] : "1,2,4,8", team, THREADS);
    int sizes = list_of(argc > 2 ? argv[2] : "8,4096,262144", lengths, 1 << 24);
    if (argc > 3) list_of(argv[3], &mebibytes, 1 << 14);
    MPI_Group world;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    one = 1 - rank;
    MPI_Group_incl(world, 1, &one, &peer);
    for (int s = 0; s < sizes; s++) {
        for (int t = 0; t < teams; t++) {
            bytes = (size_t)lengths[s], threads = (int)team[t];
            size_t area = ((bytes * PER_ROUND + PAGE - 1) / PAGE * PAGE) * (size_t)threads;
            double wanted = (double)mebibytes * 1048576 / ((double)bytes * PER_ROUND * threads);
            /* Short operations: as many as say something. */
            rounds = wanted > 200 ? 200 : wanted < 3 ? 3 : (int)wanted;
            void *base;
            if (MPI_Win_allocate((MPI_Aint)(rank == 1 ? area : 0), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win) != MPI_SUCCESS)
                fail("no window");
            local = malloc(area);
            ends = malloc((size_t)rounds * sizeof *ends);
            if (local == NULL || ends == NULL) fail("no memory");
            memset(local, 1, area);
            if (rank == 1) memset(base, 0, area);
            for (is_get = 0; is_get < 2; is_get++)
                for (kind = 0; kind < SYNCHRONISATIONS; kind++) measure();
            free(local), free(ends);
            MPI_Win_free(&win);
        }
    }
    MPI_Group_free(&peer);
    MPI_Group_free(&world);
    MPI_Finalize();
    MPI_T_finalize();
    return 0;
}
