/* Control variables steer: how a collective goes, how a rank waits, which way a large message takes, and which buffer
 * an event handle has are what was written, from the next operation on.
 * Where it takes a moment of the other rank's to see it, it is tried again.
 * RANKS: 2
 * ENV: PERUSAL_COPY_ENGINE=auto
 */
#include "mpi_t_counter.h"
#include "mpi_t_event.h"
#include <unistd.h>

/* Beside something that computes a rank tries only at each 256th wait whether giving its CPU away has become worth
 * while. */
enum { TRIES = 600 };
static int rank, counted, flagged, in_memory, linear, two_proc, chain, doubling, algorithm_element;
static int last_algorithm, copies;

static void write_cvar(const char *name, unsigned long value)
{
    int index = -1, count, choice = (int)value;
    MPI_Datatype type;
    MPI_T_cvar_handle handle;
    OK(MPI_T_cvar_get_index(name, &index));
    OK(MPI_T_cvar_get_info(index, NULL, NULL, NULL, &type, NULL, NULL, NULL, NULL, NULL));
    OK(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count));
    if (type == MPI_INT) OK(MPI_T_cvar_write(handle, &choice));
    else OK(MPI_T_cvar_write(handle, &value));
    OK(MPI_T_cvar_handle_free(&handle));
}

/* All ranks agree whether rank 0 has seen enough. */
static int agreed(int enough)
{
    OK(MPI_Bcast(&enough, 1, MPI_INT, 0, MPI_COMM_WORLD));
    return enough;
}

static void on_end(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    (void)handle, (void)level, (void)data;
    OK(MPI_T_event_read(instance, algorithm_element, &last_algorithm));
}

/* The number that the description of a type's algorithms gives a name. */
static int number_of(const char *name, int type)
{
    static char text[MPI_MAX_INFO_VAL];
    int len = sizeof text, there = 0;
    MPI_Info info;
    OK(MPI_T_event_get_info(type, NULL, NULL, NULL, NULL, NULL, NULL, NULL, &info, NULL, NULL, NULL));
    OK(MPI_Info_get_string(info, "perusal_element_algorithm", &len, text, &there));
    OK(MPI_Info_free(&info));
    CHECK(there);
    char *at = strstr(text, name);
    CHECK(at != NULL);
    if (!at) return -1;
    at--; /* "12 name" */
    while (at > text && at[-1] >= '0' && at[-1] <= '9') at--;
    return atoi(at);
}

static int is_shared(void) { return last_algorithm == counted || last_algorithm == flagged; }

static void collective(int which, MPI_Comm comm)
{
    int one = rank, sum = -1, both[2], mine[2] = {rank, rank};
    switch (which) {
    case 0: OK(MPI_Barrier(comm)); break;
    case 1: OK(MPI_Bcast(&one, 1, MPI_INT, 1, comm)); SAME(one, 1); break;
    case 2: OK(MPI_Allgather(&one, 1, MPI_INT, both, 1, MPI_INT, comm)); SAME(both[1], 1); break;
    case 3: OK(MPI_Alltoall(mine, 1, MPI_INT, both, 1, MPI_INT, comm)); SAME(both[1], 1); break;
    case 4: OK(MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM, 0, comm)); SAME(sum, rank == 0 ? 1 : -1); break;
    case 5: OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm)); SAME(sum, 1); break;
    }
}

static const char *collectives[] = {"coll_barrier", "coll_bcast", "coll_allgather", "coll_alltoall", "coll_reduce", "coll_allreduce"};

static void collectives_go_as_the_variable_says(void)
{
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int which = 0; which < 6; which++)
        for (int way = 3; way >= 0; way--) {
            write_cvar(collectives[which], (unsigned long)way);
            collective(which, comm);
            if (way == 3) SAME(last_algorithm, flagged);
            if (way == 2) SAME(last_algorithm, counted);
            if (way == 1) CHECK(!is_shared());
            if (way == 0) CHECK(is_shared());
        }
    OK(MPI_Comm_free(&comm));
    /* A communicator that never gets shared memory. */
    write_cvar("coll_shared", 0);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    collective(0, comm);
    CHECK(!is_shared());
    OK(MPI_Comm_free(&comm));
    write_cvar("coll_shared", 1);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    collective(0, comm);
    CHECK(is_shared());
    OK(MPI_Comm_free(&comm));
}

/* Without shared memory two ranks reduce by a message of each, and scan by one, unless somebody has asked for an
 * algorithm. */
static void two_ranks_reduce_as_a_pair_where_nothing_is_asked_for(void)
{
    enum { RECURSIVE_DOUBLING = 4 };
    static const char *variables[] = {"coll_allreduce", "coll_scan", "coll_scan"};
    MPI_Comm comm;
    write_cvar("coll_shared", 0);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int asked_for = 1; asked_for >= 0; asked_for--)
        for (int which = 0; which < 3; which++) {
            int one = rank + 1, sum = -1;
            write_cvar(variables[which], asked_for ? RECURSIVE_DOUBLING : 0);
            if (which == 0) OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
            if (which == 1) OK(MPI_Scan(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
            if (which == 2) OK(MPI_Exscan(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
            int results[3][2] = {{3, 3}, {1, 3}, {-1, 1}};
            SAME(sum, results[which][rank]);
            SAME(last_algorithm, asked_for ? doubling : which == 0 ? two_proc : chain);
        }
    OK(MPI_Comm_free(&comm));
    write_cvar("coll_shared", 1);
}

static void an_alltoall_is_shared_up_to_the_block_that_was_written(void)
{
    enum { BLOCK = 50000 };
    static const struct { unsigned long most; int algorithm; } ways[] = {{BLOCK, 1}, {BLOCK - 1, 0}, {BLOCK, 1}};
    static char mine[2 * BLOCK], theirs[2 * BLOCK];
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    /* In one round more would go this way in any case. */
    write_cvar("coll_piece", 4096);
    /* In one step it would be, too: from 8 KiB on with processors whose rings are not filled past the cache. */
    write_cvar("coll_direct_from", 4294967295);
    for (int i = 0; i < 3; i++) {
        write_cvar("coll_alltoall_most", ways[i].most);
        memset(mine, 'a' + rank, sizeof mine);
        OK(MPI_Alltoall(mine, BLOCK, MPI_CHAR, theirs, BLOCK, MPI_CHAR, comm));
        SAME(theirs[0] + theirs[BLOCK - 1], 2 * 'a');
        SAME(theirs[BLOCK] + theirs[2 * BLOCK - 1], 2 * 'b');
        SAME(last_algorithm, ways[i].algorithm ? in_memory : linear);
    }
    OK(MPI_Comm_free(&comm));
}

/* How often rank 0 slept and gave its CPU away while it waited for a message that came after a while. */
static void wait_a_while(int milliseconds, MPI_T_pvar_handle sleeps, MPI_T_pvar_handle yields, unsigned long long times[2])
{
    int value = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    times[0] = read_of(sleeps), times[1] = read_of(yields);
    if (rank == 1) {
        usleep((unsigned)milliseconds * 1000);
        OK(MPI_Send(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD));
    } else {
        OK(MPI_Recv(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    times[0] = read_of(sleeps) - times[0], times[1] = read_of(yields) - times[1];
}

static void a_rank_waits_as_the_variables_say(void)
{
    static const struct {
        unsigned long spin_us, yields, nap_ms;
        int milliseconds;
        unsigned long long least_sleeps, most_sleeps, least_yields, most_yields;
    } ways[] = {
        {1000000, 0, 100, 20, 0, 0, 0, 0},         /* polls */
        {0, 0, 10000, 60, 1, 2, 0, 0},             /* sleeps, and is woken */
        {0, 0, 5, 60, 5, 1000, 0, 0},              /* looks up from its sleep */
        {0, 1000, 100, 2, 0, 1000, 1, 1000000},     /* gives its CPU away first */
    };
    MPI_T_pvar_handle sleeps = counter("sleeps"), yields = counter("yields");
    for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++) {
        unsigned long long times[2];
        int enough = 0, tries = 0;
        write_cvar("spin_us", ways[i].spin_us);
        write_cvar("yields", ways[i].yields);
        write_cvar("nap_ms", ways[i].nap_ms);
        while (!enough && tries++ < TRIES) {
            wait_a_while(ways[i].milliseconds, sleeps, yields, times);
            enough = agreed(times[0] >= ways[i].least_sleeps && times[0] <= ways[i].most_sleeps &&
                            times[1] >= ways[i].least_yields && times[1] <= ways[i].most_yields);
        }
        if (!enough && rank == 0) fprintf(stderr, "way %u: %llu sleeps and %llu yields\n", i, times[0], times[1]);
        CHECK(enough);
    }
    write_cvar("spin_us", 50);
    write_cvar("yields", 0);
    write_cvar("nap_ms", 100);
}

static void shared_memory_is_copied_straight_from_the_size_that_was_written(void)
{
    static const unsigned long from[] = {60000, 60001, 4294967295ul};
    MPI_T_pvar_handle direct = counter("messages_sent_direct");
    for (int i = 0; i < 3; i++) {
        void *memory;
        write_cvar("copy_direct_from", 1);
        OK(MPI_Alloc_mem(1 << 20, MPI_INFO_NULL, &memory));
        write_cvar("copy_direct_from", from[i]);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        unsigned long long before = read_of(direct);
        if (rank == 0) OK(MPI_Send(memory, 60000, MPI_CHAR, 1, 1, MPI_COMM_WORLD));
        else OK(MPI_Recv(memory, 60000, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        if (rank == 0) SAME(read_of(direct) - before, i == 0);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Free_mem(memory));
    }
}

static void on_copy(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    (void)instance, (void)handle, (void)level, (void)data;
    copies++;
}

/* Of a copy from shared memory to shared memory the sender does a part, if it comes before the receiver is done. */
static void a_copy_is_shared_from_the_size_that_was_written(void)
{
    enum { SIZE = 32 << 20 }; /* Longer than a turn of one of two that share a CPU. */
    static const struct { unsigned long from; int shared; } ways[] = {{SIZE, 1}, {SIZE + 1, 0}, {SIZE, 1}, {4294967295ul, 0}};
    MPI_T_event_registration handle = listen_to(type_of("PERUSAL_COPY_BEGIN"), NULL, 0, on_copy, NULL);
    void *memory;
    write_cvar("copy_direct_from", 1);
    OK(MPI_Alloc_mem(SIZE, MPI_INFO_NULL, &memory));
    for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++) {
        int enough = 0, tries = 0;
        write_cvar("copy_share_from", ways[i].from);
        while (!enough && tries++ < (ways[i].shared ? TRIES : 3)) {
            OK(MPI_Barrier(MPI_COMM_WORLD));
            copies = 0;
            if (rank == 0) OK(MPI_Send(memory, SIZE, MPI_CHAR, 1, 1, MPI_COMM_WORLD));
            else OK(MPI_Recv(memory, SIZE, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            if (rank == 1) SAME(copies, 1);
            enough = agreed(copies == 1) && ways[i].shared;
            if (rank == 0 && !ways[i].shared) SAME(copies, 0);
        }
        if (ways[i].shared) CHECK(enough);
    }
    OK(MPI_Free_mem(memory));
    OK(MPI_T_event_handle_free(handle, NULL, NULL));
}

static void a_handle_without_a_hint_has_the_buffer_that_was_written(void)
{
    for (unsigned long entries = 0; entries < 9; entries += 4) {
        MPI_T_event_registration handle;
        MPI_Info info;
        char text[32], wanted[32];
        int flag = 0, len = sizeof text;
        snprintf(wanted, sizeof wanted, "%lu", entries);
        write_cvar("event_buffer", entries);
        /* What is said of the type stays. */
        OK(MPI_T_event_get_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, &info, NULL, NULL, NULL));
        OK(MPI_Info_get_string(info, "perusal_event_buffer", &len, text, &flag));
        CHECK(flag && strcmp(text, "0") == 0);
        OK(MPI_Info_free(&info));
        len = sizeof text;
        OK(MPI_T_event_handle_alloc(0, NULL, MPI_INFO_NULL, &handle));
        OK(MPI_T_event_handle_get_info(handle, &info));
        OK(MPI_Info_get_string(info, "perusal_event_buffer", &len, text, &flag));
        CHECK(flag && strcmp(text, wanted) == 0);
        OK(MPI_Info_free(&info));
        OK(MPI_T_event_handle_free(handle, NULL, NULL));
    }
    write_cvar("event_buffer", 0);
}

int main(int argc, char **argv)
{
    initialise_tools();
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    OK(MPI_T_pvar_session_create(&session));
    a_handle_without_a_hint_has_the_buffer_that_was_written();
    a_rank_waits_as_the_variables_say();
    shared_memory_is_copied_straight_from_the_size_that_was_written();
    a_copy_is_shared_from_the_size_that_was_written();
    int end = type_of("PERUSAL_COLL_END_all");
    algorithm_element = element_of(end, "algorithm");
    counted = number_of("shared_count", end);
    flagged = number_of("shared_flags", end);
    in_memory = number_of("shared_memory", end);
    linear = number_of("linear", end);
    two_proc = number_of("two_proc", end);
    chain = number_of("chain", end);
    doubling = number_of("recursive_doubling", end);
    MPI_T_event_registration handle = listen_to(end, NULL, 0, on_end, NULL);
    collectives_go_as_the_variable_says();
    two_ranks_reduce_as_a_pair_where_nothing_is_asked_for();
    an_alltoall_is_shared_up_to_the_block_that_was_written();
    OK(MPI_T_event_handle_free(handle, NULL, NULL));
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return verdict();
}
