/* Control variables: what they are, every way to be refused, and that they steer: the copy engine of the next large
 * message and the protocol of the next small one are what was written.
 * RANKS: 2
 */
#define _GNU_SOURCE
#include "check.h"
#include <sys/uio.h>
#include <unistd.h>

static MPI_T_cvar_handle handle_of(const char *name) {
    int index = -1, count = 0;
    MPI_T_cvar_handle handle;
    OK(MPI_T_cvar_get_index(name, &index));
    OK(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count));
    CHECK(count >= 1);
    return handle;
}

static unsigned long number(const char *name) {
    MPI_T_cvar_handle handle = handle_of(name);
    unsigned long value = 0;
    OK(MPI_T_cvar_read(handle, &value));
    OK(MPI_T_cvar_handle_free(&handle));
    CHECK(handle == MPI_T_CVAR_HANDLE_NULL);
    return value;
}

static int write_number(const char *name, unsigned long value) {
    MPI_T_cvar_handle handle = handle_of(name);
    int code = MPI_T_cvar_write(handle, &value);
    OK(MPI_T_cvar_handle_free(&handle));
    return code;
}

static int write_int(const char *name, int value) {
    MPI_T_cvar_handle handle = handle_of(name);
    int code = MPI_T_cvar_write(handle, &value);
    OK(MPI_T_cvar_handle_free(&handle));
    return code;
}

/* The messages that rank 0 has sent by one protocol. */
static unsigned long long sent(const char *protocol) {
    static MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
    static struct { const char *name; MPI_T_pvar_handle handle; } known[8];
    int i = 0, index, count;
    unsigned long long value = 0;
    if (session == MPI_T_PVAR_SESSION_NULL) OK(MPI_T_pvar_session_create(&session));
    while (known[i].name && strcmp(known[i].name, protocol)) i++;
    if (!known[i].name) {
        OK(MPI_T_pvar_get_index(protocol, MPI_T_PVAR_CLASS_COUNTER, &index));
        OK(MPI_T_pvar_handle_alloc(session, index, NULL, &known[i].handle, &count));
        OK(MPI_T_pvar_start(session, known[i].handle));
        known[i].name = protocol;
    }
    OK(MPI_T_pvar_read(session, known[i].handle, &value));
    return value;
}

static char *buffer;
static int rank;

static void transfer(int bytes) {
    if (rank == 0) {
        MPI_Send(buffer, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(NULL, 0, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(buffer, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(NULL, 0, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
    }
}

/* Whether this machine lets rank 1 read the memory of rank 0;
 * where it is forbidden, pieces are the engine that is left. */
static int engines_may_cross(void) {
    struct { char *address; pid_t owner; } there = {buffer, getpid()};
    int crosses = 0;
    if (rank == 0) {
        MPI_Send(&there, sizeof there, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
        MPI_Recv(&crosses, 1, MPI_INT, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(&there, sizeof there, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        struct iovec local = {buffer, 1}, remote = {there.address, 1};
        crosses = process_vm_readv(there.owner, &local, 1, &remote, 1, 0) == 1;
        MPI_Send(&crosses, 1, MPI_INT, 0, 4, MPI_COMM_WORLD);
    }
    return crosses;
}

static void describe(void) {
    int n = 0, verbosity, bind, scope, index, len;
    char name[128], text[1024];
    MPI_Datatype datatype;
    MPI_T_enum type;
    OK(MPI_T_cvar_get_num(&n));
    for (int i = 0; i < n; i++) {
        len = sizeof name;
        int text_len = sizeof text;
        OK(MPI_T_cvar_get_info(i, name, &len, &verbosity, &datatype, &type, text, &text_len, &bind, &scope));
        CHECK(len > 1 && text_len > 1);
        OK(MPI_T_cvar_get_index(name, &index));
        SAME(index, i);
        SAME(bind, MPI_T_BIND_NO_OBJECT);
        CHECK(verbosity >= MPI_T_VERBOSITY_USER_BASIC && verbosity <= MPI_T_VERBOSITY_MPIDEV_ALL);
        CHECK(scope >= MPI_T_SCOPE_CONSTANT && scope <= MPI_T_SCOPE_ALL_EQ);
        CHECK(datatype == MPI_INT || datatype == MPI_UNSIGNED_LONG || datatype == MPI_CHAR);
        MPI_T_cvar_handle handle;
        int count = 0;
        char value[1024];
        OK(MPI_T_cvar_handle_alloc(i, NULL, &handle, &count));
        SAME(count, datatype == MPI_CHAR ? 256 : 1);
        OK(MPI_T_cvar_read(handle, value));
        /* What nobody may change says so. */
        if (scope == MPI_T_SCOPE_CONSTANT || scope == MPI_T_SCOPE_READONLY)
            SAME(MPI_T_cvar_write(handle, value), MPI_T_ERR_CVAR_SET_NEVER);
        OK(MPI_T_cvar_handle_free(&handle));
    }
}

static void refuse(void) {
    int n, index;
    long stack[4] = {0};
    MPI_T_cvar_handle handle, null = MPI_T_CVAR_HANDLE_NULL, wild = (MPI_T_cvar_handle)stack;
    OK(MPI_T_cvar_get_num(&n));
    SAME(MPI_T_cvar_get_num(NULL), MPI_T_ERR_INVALID);
    SAME(MPI_T_cvar_get_info(n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    SAME(MPI_T_cvar_get_info(-1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    OK(MPI_T_cvar_get_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    SAME(MPI_T_cvar_get_index("no such variable", &index), MPI_T_ERR_INVALID_NAME);
    SAME(MPI_T_cvar_get_index(NULL, &index), MPI_T_ERR_INVALID);
    SAME(MPI_T_cvar_get_index("eager_limit", NULL), MPI_T_ERR_INVALID);
    SAME(MPI_T_cvar_handle_alloc(n, NULL, &handle, &index), MPI_T_ERR_INVALID_INDEX);
    SAME(MPI_T_cvar_handle_alloc(-1, NULL, &handle, &index), MPI_T_ERR_INVALID_INDEX);
    SAME(MPI_T_cvar_handle_alloc(0, NULL, NULL, &index), MPI_T_ERR_INVALID);
    SAME(MPI_T_cvar_handle_alloc(0, NULL, &handle, NULL), MPI_T_ERR_INVALID);
    SAME(MPI_T_cvar_handle_free(&null), MPI_T_ERR_INVALID_HANDLE);
    SAME(MPI_T_cvar_handle_free(&wild), MPI_T_ERR_INVALID_HANDLE);
    SAME(MPI_T_cvar_handle_free(NULL), MPI_T_ERR_INVALID);
    SAME(MPI_T_cvar_read(null, stack), MPI_T_ERR_INVALID_HANDLE);
    SAME(MPI_T_cvar_write(wild, stack), MPI_T_ERR_INVALID_HANDLE);
    handle = handle_of("eager_limit");
    SAME(MPI_T_cvar_read(handle, NULL), MPI_T_ERR_INVALID);
    SAME(MPI_T_cvar_write(handle, NULL), MPI_T_ERR_INVALID);
    MPI_T_cvar_handle stale = handle;
    OK(MPI_T_cvar_handle_free(&handle));
    SAME(MPI_T_cvar_read(stale, stack), MPI_T_ERR_INVALID_HANDLE);
    SAME(MPI_T_cvar_handle_free(&stale), MPI_T_ERR_INVALID_HANDLE);
    /* Values that a variable cannot have, and variables that cannot be set any more. */
    SAME(write_number("eager_limit", ~0ul), MPI_T_ERR_INVALID);
    SAME(write_number("yields", 1001), MPI_T_ERR_INVALID);
    SAME(write_int("copy_engine", 99), MPI_T_ERR_INVALID);
    SAME(write_int("copy_engine", -1), MPI_T_ERR_INVALID);
    SAME(write_number("ring_cells", 512), MPI_T_ERR_CVAR_SET_NEVER);
    SAME(write_int("sender_fences", 1), MPI_T_ERR_CVAR_SET_NEVER);
    SAME(write_int("sender_fences", -1), MPI_T_ERR_CVAR_SET_NEVER);
}

int main(int argc, char **argv) {
    int provided;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    buffer = calloc(1 << 20, 1);
    describe();
    refuse();

    /* Announced messages alone are copied by an engine. The receiver chooses it; the sender counts by it. */
    OK(write_number("train_limit", 0));
    int crosses = engines_may_cross();
    const char *counters[] = {"messages_sent_chunked", crosses ? "messages_sent_read" : "messages_sent_chunked",
                              crosses ? "messages_sent_halves" : "messages_sent_chunked"};
    for (int engine = 1; engine <= 3; engine++) {
        OK(write_int("copy_engine", engine));
        MPI_Barrier(MPI_COMM_WORLD);
        unsigned long long before = rank == 0 ? sent(counters[engine - 1]) : 0;
        transfer(1 << 20);
        if (rank == 0) SAME(sent(counters[engine - 1]) - before, 1);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    /* By the thresholds: reading from 100,000 bytes on, halves never. */
    OK(write_int("copy_engine", 0));
    OK(write_number("copy_read_from", 100000));
    OK(write_number("copy_halves_from", 4294967295ul));
    for (int large = 0; large < 2; large++) {
        unsigned long long before = rank == 0 ? sent(counters[large]) : 0;
        transfer(large ? 100000 : 99999);
        if (rank == 0) SAME(sent(counters[large]) - before, 1);
    }
    /* The eager limit is the sender's. */
    unsigned long limit = number("eager_limit");
    CHECK(limit >= 4096);
    unsigned long long eager = sent("messages_sent_eager");
    if (rank == 0) {
        MPI_Send(buffer, 4000, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        SAME(sent("messages_sent_eager") - eager, 1);
        OK(write_number("eager_limit", 100));
        SAME(number("eager_limit"), 100);
        MPI_Send(buffer, 4000, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        SAME(sent("messages_sent_eager") - eager, 1);
    } else {
        MPI_Recv(buffer, 4000, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(buffer, 4000, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        SAME(number("eager_limit"), limit);
    }
    OK(MPI_Finalize());
    /* What may be changed at any time may be changed now too; the values stay. */
    OK(write_number("yields", 3));
    SAME(number("yields"), 3);
    OK(MPI_T_finalize());
    return verdict();
}
