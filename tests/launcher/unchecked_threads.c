/* Threads that call MPI where they must not: mistakes of unchecked.c. */
#include "unchecked.h"
#include <pthread.h>
#include <string.h>

/* How far the threads have come: one is in MPI, the other has called MPI, too. */
static volatile int inside, called;

int level_of(const char *mistake) {
    if (strcmp(mistake, "called-by-another-thread") == 0) return MPI_THREAD_FUNNELED;
    if (strcmp(mistake, "called-at-once") == 0) return MPI_THREAD_SERIALIZED;
    if (strcmp(mistake, "collective-at-once") == 0) return MPI_THREAD_MULTIPLE;
    if (strcmp(mistake, "awaited-by-two") == 0) return MPI_THREAD_MULTIPLE;
    return MPI_THREAD_SINGLE;
}

static void in_a_thread(void *(*function)(void *), void (*meanwhile)(void)) {
    pthread_t other;
    pthread_create(&other, NULL, function, NULL);
    meanwhile();
    pthread_join(other, NULL);
}

static void nothing(void) {}

static void *meets_itself(void *unused) {
    int alone;
    MPI_Comm_size(MPI_COMM_SELF, &alone);
    MPI_Barrier(MPI_COMM_SELF);
    return unused;
}

void called_by_another_thread(void) { in_a_thread(meets_itself, nothing); }

/* An operation, or an attribute that is copied, keeps its thread in MPI until the other thread has called, too. */
static void linger(void) {
    inside = 1;
    while (!called) continue;
}

static void lingering(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)in, (void)inout, (void)count, (void)type;
    linger();
}

static int lingers(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    (void)comm, (void)key, (void)extra, (void)in, (void)out;
    linger();
    *flag = 0;
    return MPI_SUCCESS;
}

static void *reduces(void *unused) {
    int one = 1, other = 2;
    MPI_Op op;
    MPI_Op_create(lingering, 1, &op);
    MPI_Reduce_local(&one, &other, 1, MPI_INT, op);
    MPI_Op_free(&op);
    return unused;
}

static void *duplicates(void *unused) {
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_SELF, &copy);
    MPI_Comm_free(&copy);
    return unused;
}

static void meet_oneself(void) {
    while (!inside) continue;
    MPI_Barrier(MPI_COMM_SELF);
    called = 1;
}

/* A request that both threads have, and one that keeps the thread that waits for both of them in MPI until the other
 * thread has called, too. */
static MPI_Request of_both;
static int got;

static int query(void *extra, MPI_Status *status) {
    (void)extra;
    MPI_Status_set_elements(status, MPI_INT, 0);
    MPI_Status_set_cancelled(status, 0);
    linger();
    return MPI_SUCCESS;
}

static int nothing_to_free(void *extra) { return (void)extra, MPI_SUCCESS; }
static int nothing_to_cancel(void *extra, int complete) { return (void)extra, (void)complete, MPI_SUCCESS; }

static void *waits(void *unused) {
    MPI_Request requests[2] = {of_both, MPI_REQUEST_NULL};
    int number, indices[2];
    MPI_Grequest_start(query, nothing_to_free, nothing_to_cancel, NULL, &requests[1]);
    MPI_Grequest_complete(requests[1]);
    MPI_Waitsome(2, requests, &number, indices, MPI_STATUSES_IGNORE);
    return unused;
}

static void test_too(void) {
    int flag;
    while (!inside) continue;
    MPI_Test(&of_both, &flag, MPI_STATUS_IGNORE);
    called = 1;
}

void awaited_by_two(void) {
    int value = 7;
    MPI_Irecv(&got, 1, MPI_INT, rank, 7, halo, &of_both);
    in_a_thread(waits, test_too);
    MPI_Send(&value, 1, MPI_INT, rank, 7, halo);
    MPI_Wait(&of_both, MPI_STATUS_IGNORE);
}

void called_at_once(void) { in_a_thread(reduces, meet_oneself); }

void collective_at_once(void) {
    int key;
    MPI_Comm_create_keyval(lingers, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    in_a_thread(duplicates, meet_oneself);
    MPI_Comm_delete_attr(MPI_COMM_SELF, key);
    MPI_Comm_free_keyval(&key);
}
