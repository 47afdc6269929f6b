/* The variables of the message queues, exactly: lengths over all communicators and of one, watermarks of each handle
 * from its own start, bytes held, and how many entries each search compared.
 * RANKS: 1
 */
#include "check.h"

#define DEEP 5

static MPI_T_pvar_session session;

static MPI_T_pvar_handle handle_of(const char *name, int class, MPI_Comm comm) {
    int index = -1, count = 0, continuous = 0;
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    MPI_Datatype type;
    OK(MPI_T_pvar_get_index(name, class, &index));
    OK(MPI_T_pvar_get_info(index, NULL, NULL, NULL, NULL, &type, NULL, NULL, NULL, NULL, NULL, &continuous, NULL));
    if (strstr(name, "recvq_length")) CHECK(type == MPI_UNSIGNED);
    OK(MPI_T_pvar_handle_alloc(session, index, &comm, &handle, &count));
    if (!continuous) OK(MPI_T_pvar_start(session, handle));
    return handle;
}

static unsigned long long number(MPI_T_pvar_handle handle) {
    unsigned long long value = 4711;
    OK(MPI_T_pvar_read(session, handle, &value));
    return value;
}

/* A length is an MPI_UNSIGNED, and no more is written. */
static unsigned length(MPI_T_pvar_handle handle) {
    unsigned value[2] = {4711, 4711};
    OK(MPI_T_pvar_read(session, handle, value));
    SAME(value[1], 4711);
    return value[0];
}

static double seconds(MPI_T_pvar_handle handle) {
    double value = -1;
    OK(MPI_T_pvar_read(session, handle, &value));
    return value;
}

int main(int argc, char **argv) {
    int provided, c = 0;
    char large[1000] = {0};
    MPI_Comm other;
    MPI_Request requests[DEEP], late;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &other));
    OK(MPI_T_pvar_session_create(&session));
    MPI_T_pvar_handle posted = handle_of("posted_recvq_length", MPI_T_PVAR_CLASS_LEVEL, 0),
                      unexpected = handle_of("unexpected_recvq_length", MPI_T_PVAR_CLASS_LEVEL, 0),
                      held = handle_of("unexpected_recvq_buffer_size", MPI_T_PVAR_CLASS_LEVEL, 0),
                      own = handle_of("comm_posted_recvq_length", MPI_T_PVAR_CLASS_LEVEL, MPI_COMM_SELF),
                      others = handle_of("comm_posted_recvq_length", MPI_T_PVAR_CLASS_LEVEL, other),
                      others_unex = handle_of("comm_unexpected_recvq_length", MPI_T_PVAR_CLASS_LEVEL, other),
                      size = handle_of("comm_size", MPI_T_PVAR_CLASS_SIZE, other),
                      high = handle_of("posted_recvq_length", MPI_T_PVAR_CLASS_HIGHWATERMARK, 0),
                      low = handle_of("unexpected_recvq_length", MPI_T_PVAR_CLASS_LOWWATERMARK, 0),
                      attempts = handle_of("posted_recvq_match_attempts", MPI_T_PVAR_CLASS_COUNTER, 0),
                      unex_attempts = handle_of("unexpected_recvq_match_attempts", MPI_T_PVAR_CLASS_COUNTER, 0),
                      failed = handle_of("time_failed_matching_postedq", MPI_T_PVAR_CLASS_TIMER, 0),
                      matching = handle_of("time_matching_unexpectedq", MPI_T_PVAR_CLASS_TIMER, 0);
    SAME(number(size), 1);
    SAME(length(posted), 0);

    /* Posted: five receives, met youngest first, so that each search compares all that are left. */
    for (int tag = 0; tag < DEEP; tag++) MPI_Irecv(&c, 1, MPI_INT, 0, tag, MPI_COMM_SELF, &requests[tag]);
    MPI_Irecv(&c, 1, MPI_INT, 0, 0, other, &late);
    SAME(length(posted), DEEP + 1);
    SAME(length(own), DEEP);
    SAME(length(others), 1);
    MPI_T_pvar_handle later = handle_of("posted_recvq_length", MPI_T_PVAR_CLASS_HIGHWATERMARK, 0),
                      least = handle_of("posted_recvq_length", MPI_T_PVAR_CLASS_LOWWATERMARK, 0);
    SAME(length(later), DEEP + 1);
    for (int tag = DEEP; tag-- > 0;) MPI_Send(&c, 1, MPI_INT, 0, tag, MPI_COMM_SELF);
    MPI_Waitall(DEEP, requests, MPI_STATUSES_IGNORE);
    SAME(length(own), 0);
    SAME(number(attempts), DEEP * (DEEP + 1) / 2);
    SAME(number(unex_attempts), 0);
    CHECK(seconds(failed) == 0);
    MPI_T_pvar_handle last = handle_of("posted_recvq_length", MPI_T_PVAR_CLASS_HIGHWATERMARK, 0);
    SAME(length(last), 1);
    SAME(length(high), DEEP + 1);
    SAME(length(least), 1);
    MPI_Send(&c, 1, MPI_INT, 0, 0, other);
    MPI_Wait(&late, MPI_STATUS_IGNORE);
    SAME(length(least), 0);
    SAME(length(posted), 0);
    unsigned most[2] = {DEEP + 9, 4711};
    OK(MPI_T_pvar_write(session, high, most));
    SAME(length(high), DEEP + 9);
    most[0] = 0;
    OK(MPI_T_pvar_readreset(session, high, most));
    SAME(most[0], DEEP + 9);
    SAME(most[1], 4711);
    SAME(length(high), 0);
    SAME(length(later), DEEP + 1);
    SAME(length(last), 1);
    SAME(number(attempts), DEEP * (DEEP + 1) / 2 + 1);

    /* Unexpected: five messages, taken youngest first; one holds memory. */
    OK(MPI_T_pvar_reset(session, attempts));
    for (int tag = 0; tag < DEEP; tag++) MPI_Send(large, tag == 0 ? 1000 : 4, MPI_CHAR, 0, tag, other);
    SAME(length(unexpected), DEEP);
    SAME(length(others_unex), DEEP);
    CHECK(number(held) >= 1000);
    SAME(length(low), 0);
    OK(MPI_T_pvar_reset(session, low));
    SAME(length(low), DEEP);
    for (int tag = DEEP; tag-- > 1;) MPI_Recv(large, 1000, MPI_CHAR, 0, tag, other, MPI_STATUS_IGNORE);
    SAME(length(low), 1);
    SAME(number(unex_attempts), DEEP + 4 + 3 + 2);
    int flag;
    MPI_Message none;
    MPI_Improbe(0, 99, other, &flag, &none, MPI_STATUS_IGNORE);
    CHECK(!flag);
    /* It looks, makes progress, and looks again. */
    SAME(number(unex_attempts), DEEP + 4 + 3 + 2 + 2);
    SAME(number(attempts), 0);
    CHECK(seconds(failed) > 0 && seconds(failed) < 60);
    CHECK(seconds(matching) > 0 && seconds(matching) < 60);
    MPI_Recv(large, 1000, MPI_CHAR, 0, 0, other, MPI_STATUS_IGNORE);
    SAME(number(held), 0);
    /* Stopped, nothing is counted. */
    unsigned long long before = number(unex_attempts);
    OK(MPI_T_pvar_stop(session, unex_attempts));
    OK(MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES));
    MPI_Send(large, 4, MPI_CHAR, 0, 1, other);
    MPI_Recv(large, 4, MPI_CHAR, 0, 1, other, MPI_STATUS_IGNORE);
    SAME(number(unex_attempts), before);

    /* A communicator that is gone takes its variables along. */
    unsigned long long value;
    OK(MPI_Comm_free(&other));
    SAME(MPI_T_pvar_read(session, others, &value), MPI_T_ERR_INVALID_HANDLE);
    OK(MPI_T_pvar_handle_free(session, &others));
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return verdict();
}
