/* Performance variables: every class is there, what may be done with a handle is what its variable says,
 * and every way to be refused.
 * RANKS: 1
 */
#include "pvars.h"

#define WILD ((void *)&stack)
static long stack[4];

static unsigned long long number(MPI_T_pvar_handle handle) {
    unsigned long long value = 4711;
    OK(MPI_T_pvar_read(session, handle, &value));
    return value;
}

/* Reads, starts, stops, writes, resets each variable: each is as its description says. */
static void each(int initialised) {
    int n, seen[16] = {0};
    OK(MPI_T_pvar_get_num(&n));
    for (int i = 0; i < n; i++) {
        char name[128], text[1024];
        int len = sizeof name, text_len = sizeof text, verbosity, class, bind, readonly, continuous, atomic, index, count;
        MPI_Datatype datatype;
        MPI_T_enum type;
        MPI_Comm comm = MPI_COMM_SELF;
        MPI_T_pvar_handle handle;
        union { int i; unsigned n[2]; unsigned long long u; double d; } value, other;
        OK(MPI_T_pvar_get_info(i, name, &len, &verbosity, &class, &datatype, &type, text, &text_len, &bind, &readonly,
                               &continuous, &atomic));
        CHECK(len > 1 && text_len > 1);
        CHECK(class >= MPI_T_PVAR_CLASS_STATE && class <= MPI_T_PVAR_CLASS_GENERIC);
        CHECK(verbosity >= MPI_T_VERBOSITY_USER_BASIC && verbosity <= MPI_T_VERBOSITY_MPIDEV_ALL);
        CHECK(datatype == MPI_INT || datatype == MPI_UNSIGNED || datatype == MPI_UNSIGNED_LONG_LONG || datatype == MPI_DOUBLE);
        int narrow = datatype == MPI_INT || datatype == MPI_UNSIGNED;
        seen[class]++;
        OK(MPI_T_pvar_get_index(name, class, &index));
        SAME(index, i);
        /* rma_counters.c has those of windows. */
        if ((bind == MPI_T_BIND_MPI_COMM && !initialised) || bind == MPI_T_BIND_MPI_WIN) {
            SAME(MPI_T_pvar_handle_alloc(session, i, &comm, &handle, &count), MPI_T_ERR_INVALID_HANDLE);
            continue;
        }
        OK(MPI_T_pvar_handle_alloc(session, i, &comm, &handle, &count));
        SAME(count, 1);
        SAME(MPI_T_pvar_start(session, handle), continuous ? MPI_T_ERR_PVAR_NO_STARTSTOP : MPI_SUCCESS);
        SAME(MPI_T_pvar_start(session, handle), continuous ? MPI_T_ERR_PVAR_NO_STARTSTOP : MPI_SUCCESS);
        /* As many bytes are written as the datatype has. */
        value.n[1] = 4711;
        OK(MPI_T_pvar_read(session, handle, &value));
        CHECK((value.n[1] == 4711) == narrow);
        if (class == MPI_T_PVAR_CLASS_PERCENTAGE) CHECK(value.d >= 0 && value.d <= 1);
        SAME(MPI_T_pvar_stop(session, handle), continuous ? MPI_T_ERR_PVAR_NO_STARTSTOP : MPI_SUCCESS);
        SAME(MPI_T_pvar_stop(session, handle), continuous ? MPI_T_ERR_PVAR_NO_STARTSTOP : MPI_SUCCESS);
        SAME(MPI_T_pvar_reset(session, handle), readonly ? MPI_T_ERR_PVAR_NO_WRITE : MPI_SUCCESS);
        SAME(MPI_T_pvar_readreset(session, handle, &value), atomic ? MPI_SUCCESS : MPI_T_ERR_PVAR_NO_ATOMIC);
        if (datatype == MPI_DOUBLE) value.d = 2.5; else value.u = 25;
        SAME(MPI_T_pvar_write(session, handle, &value), readonly ? MPI_T_ERR_PVAR_NO_WRITE : MPI_SUCCESS);
        other.u = 0;
        if (!readonly) {
            OK(MPI_T_pvar_read(session, handle, &other));
            if (datatype == MPI_DOUBLE) CHECK(other.d > 2.4999 && other.d < 2.5001); else SAME(other.u, 25);
            OK(MPI_T_pvar_readreset(session, handle, &other));
            if (datatype == MPI_DOUBLE) CHECK(other.d > 2.4999 && other.d < 2.5001); else SAME(other.u, 25);
            SAME(MPI_T_pvar_write(session, handle, NULL), MPI_T_ERR_INVALID);
            SAME(MPI_T_pvar_readreset(session, handle, NULL), MPI_T_ERR_INVALID);
        }
        if (!readonly && datatype == MPI_DOUBLE) {
            value.d = -1;
            SAME(MPI_T_pvar_write(session, handle, &value), MPI_T_ERR_INVALID);
        }
        SAME(MPI_T_pvar_read(session, handle, NULL), MPI_T_ERR_INVALID);
        OK(MPI_T_pvar_handle_free(session, &handle));
        CHECK(handle == MPI_T_PVAR_HANDLE_NULL);
    }
    for (int class = MPI_T_PVAR_CLASS_STATE; class <= MPI_T_PVAR_CLASS_GENERIC; class++) CHECK(seen[class] > 0);
}

static void refuse(void) {
    int n, index, count;
    unsigned long long value;
    MPI_T_pvar_session other, null = MPI_T_PVAR_SESSION_NULL, wild = WILD;
    MPI_T_pvar_handle handle, none = MPI_T_PVAR_HANDLE_NULL, all = MPI_T_PVAR_ALL_HANDLES, strange = WILD;
    OK(MPI_T_pvar_get_num(&n));
    SAME(MPI_T_pvar_get_num(NULL), MPI_T_ERR_INVALID);
    SAME(MPI_T_pvar_get_info(n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    SAME(MPI_T_pvar_get_info(-1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    OK(MPI_T_pvar_get_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    SAME(MPI_T_pvar_get_index("sleeps", MPI_T_PVAR_CLASS_TIMER, &index), MPI_T_ERR_INVALID_NAME);
    SAME(MPI_T_pvar_get_index("nothing", MPI_T_PVAR_CLASS_TIMER, &index), MPI_T_ERR_INVALID_NAME);
    SAME(MPI_T_pvar_get_index("sleeps", 77, &index), MPI_T_ERR_INVALID_NAME);
    SAME(MPI_T_pvar_get_index(NULL, MPI_T_PVAR_CLASS_TIMER, &index), MPI_T_ERR_INVALID);
    SAME(MPI_T_pvar_get_index("sleeps", MPI_T_PVAR_CLASS_COUNTER, NULL), MPI_T_ERR_INVALID);
    SAME(MPI_T_pvar_session_create(NULL), MPI_T_ERR_INVALID);
    SAME(MPI_T_pvar_session_free(NULL), MPI_T_ERR_INVALID);
    SAME(MPI_T_pvar_session_free(&null), MPI_T_ERR_INVALID_SESSION);
    SAME(MPI_T_pvar_session_free(&wild), MPI_T_ERR_INVALID_SESSION);
    SAME(MPI_T_pvar_handle_alloc(session, n, NULL, &handle, &count), MPI_T_ERR_INVALID_INDEX);
    SAME(MPI_T_pvar_handle_alloc(session, -1, NULL, &handle, &count), MPI_T_ERR_INVALID_INDEX);
    SAME(MPI_T_pvar_handle_alloc(wild, 0, NULL, &handle, &count), MPI_T_ERR_INVALID_SESSION);
    SAME(MPI_T_pvar_handle_alloc(null, 0, NULL, &handle, &count), MPI_T_ERR_INVALID_SESSION);
    SAME(MPI_T_pvar_handle_alloc(session, 0, NULL, NULL, &count), MPI_T_ERR_INVALID);
    SAME(MPI_T_pvar_handle_alloc(session, 0, NULL, &handle, NULL), MPI_T_ERR_INVALID);
    OK(MPI_T_pvar_get_index("comm_size", MPI_T_PVAR_CLASS_SIZE, &index));
    MPI_Comm nothing = MPI_COMM_NULL;
    SAME(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count), MPI_T_ERR_INVALID);
    SAME(MPI_T_pvar_handle_alloc(session, index, &nothing, &handle, &count), MPI_T_ERR_INVALID_HANDLE);

    /* A handle belongs to its session. */
    OK(MPI_T_pvar_session_create(&other));
    handle = handle_of("sleeps", MPI_T_PVAR_CLASS_COUNTER);
    MPI_T_pvar_handle mine = handle;
    MPI_T_pvar_handle bad[] = {none, strange, NULL};
    bad[2] = handle;
    for (int i = 0; i < 3; i++) {
        MPI_T_pvar_session where = i == 2 ? other : session;
        MPI_T_pvar_handle copy = bad[i];
        SAME(MPI_T_pvar_start(where, bad[i]), MPI_T_ERR_INVALID_HANDLE);
        SAME(MPI_T_pvar_stop(where, bad[i]), MPI_T_ERR_INVALID_HANDLE);
        SAME(MPI_T_pvar_read(where, bad[i], &value), MPI_T_ERR_INVALID_HANDLE);
        SAME(MPI_T_pvar_write(where, bad[i], &value), MPI_T_ERR_INVALID_HANDLE);
        SAME(MPI_T_pvar_reset(where, bad[i]), MPI_T_ERR_INVALID_HANDLE);
        SAME(MPI_T_pvar_readreset(where, bad[i], &value), MPI_T_ERR_INVALID_HANDLE);
        SAME(MPI_T_pvar_handle_free(where, &copy), MPI_T_ERR_INVALID_HANDLE);
    }
    SAME(MPI_T_pvar_start(wild, handle), MPI_T_ERR_INVALID_SESSION);
    SAME(MPI_T_pvar_stop(wild, handle), MPI_T_ERR_INVALID_SESSION);
    SAME(MPI_T_pvar_read(wild, handle, &value), MPI_T_ERR_INVALID_SESSION);
    SAME(MPI_T_pvar_write(wild, handle, &value), MPI_T_ERR_INVALID_SESSION);
    SAME(MPI_T_pvar_reset(wild, handle), MPI_T_ERR_INVALID_SESSION);
    SAME(MPI_T_pvar_reset(wild, all), MPI_T_ERR_INVALID_SESSION);
    SAME(MPI_T_pvar_start(wild, all), MPI_T_ERR_INVALID_SESSION);
    SAME(MPI_T_pvar_readreset(wild, handle, &value), MPI_T_ERR_INVALID_SESSION);
    SAME(MPI_T_pvar_handle_free(wild, &handle), MPI_T_ERR_INVALID_SESSION);
    SAME(MPI_T_pvar_handle_free(session, NULL), MPI_T_ERR_INVALID);
    /* What cannot be done to all handles at once. */
    SAME(MPI_T_pvar_read(session, all, &value), MPI_T_ERR_INVALID_HANDLE);
    SAME(MPI_T_pvar_write(session, all, &value), MPI_T_ERR_INVALID_HANDLE);
    SAME(MPI_T_pvar_readreset(session, all, &value), MPI_T_ERR_INVALID_HANDLE);
    SAME(MPI_T_pvar_handle_free(session, &all), MPI_T_ERR_INVALID_HANDLE);
    OK(MPI_T_pvar_handle_free(session, &handle));
    SAME(MPI_T_pvar_read(session, mine, &value), MPI_T_ERR_INVALID_HANDLE);
    /* A session takes its handles along. */
    MPI_T_pvar_session keep = session;
    session = other;
    handle = handle_of("sleeps", MPI_T_PVAR_CLASS_COUNTER);
    session = keep;
    MPI_T_pvar_session gone = other;
    OK(MPI_T_pvar_session_free(&other));
    CHECK(other == MPI_T_PVAR_SESSION_NULL);
    SAME(MPI_T_pvar_read(gone, handle, &value), MPI_T_ERR_INVALID_SESSION);
    SAME(MPI_T_pvar_read(session, handle, &value), MPI_T_ERR_INVALID_HANDLE);
}

static void talk(int messages) {
    char c = 0;
    for (int i = 0; i < messages; i++) {
        MPI_Request request;
        MPI_Irecv(&c, 1, MPI_CHAR, 0, 1, MPI_COMM_SELF, &request);
        MPI_Send(&c, 1, MPI_CHAR, 0, 1, MPI_COMM_SELF);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

/* A handle counts from its own start, while it is started. */
static void count(void) {
    MPI_T_pvar_handle a = handle_of("messages_sent", MPI_T_PVAR_CLASS_COUNTER),
                      b = handle_of("messages_sent", MPI_T_PVAR_CLASS_COUNTER),
                      bytes = handle_of("bytes_sent", MPI_T_PVAR_CLASS_AGGREGATE);
    talk(3);
    SAME(number(a), 0);
    OK(MPI_T_pvar_start(session, a));
    talk(2);
    OK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    talk(5);
    SAME(number(a), 7);
    SAME(number(b), 5);
    SAME(number(bytes), 5);
    OK(MPI_T_pvar_stop(session, a));
    talk(1);
    SAME(number(a), 7);
    SAME(number(b), 6);
    OK(MPI_T_pvar_start(session, a));
    talk(1);
    SAME(number(a), 8);
    OK(MPI_T_pvar_reset(session, a));
    SAME(number(a), 0);
    SAME(number(b), 7);
    unsigned long long value = 100;
    OK(MPI_T_pvar_write(session, b, &value));
    talk(4);
    SAME(number(a), 4);
    OK(MPI_T_pvar_readreset(session, b, &value));
    SAME(value, 104);
    talk(1);
    SAME(number(b), 1);
    OK(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES));
    SAME(number(a), 0);
    SAME(number(bytes), 0);
    OK(MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES));
    talk(1);
    SAME(number(b), 0);
}

int main(int argc, char **argv) {
    int provided;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_pvar_session_create(&session));
    each(0);
    refuse();
    MPI_T_pvar_handle early = handle_of("messages_sent", MPI_T_PVAR_CLASS_COUNTER);
    OK(MPI_T_pvar_start(session, early));
    SAME(number(early), 0);
    OK(MPI_Init(&argc, &argv));
    each(1);
    refuse();
    talk(2);
    SAME(number(early), 2);
    OK(MPI_T_pvar_stop(session, early));
    count();
    OK(MPI_Finalize());
    OK(MPI_T_pvar_start(session, early));
    each(0);
    OK(MPI_T_pvar_session_free(&session));
    OK(MPI_T_finalize());
    return verdict();
}
