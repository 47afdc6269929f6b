/* Threads that wait, and threads beside the one that calls MPI. */
#include "mistakes.h"
#include <pthread.h>
#include <unistd.h>

static void *send_later(void *unused)
{
    (void)unused;
    sleep(3);
    send(1, 5, MPI_COMM_WORLD);
    return NULL;
}

static void *idle(void *unused) { return pause(), unused; }

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int signalled;

/* As the threads of libraries do that have nothing to do. */
static void *wait_for_condition(void *unused)
{
    pthread_mutex_lock(&mutex);
    while (!signalled) pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void *send_when_signalled(void *unused)
{
    wait_for_condition(NULL);
    send(1, 5, MPI_COMM_WORLD);
    return unused;
}

static void *receive_from_the_other(void *unused)
{
    receive(1 - rank, 5, MPI_COMM_WORLD);
    return unused;
}

static void *receive_nine(void *unused)
{
    receive(1 - rank, 9, MPI_COMM_WORLD);
    return unused;
}

/* What two threads of rank 1 wait for. */
static void *send_both_later(void *unused)
{
    sleep(3);
    send(1, 7, MPI_COMM_WORLD);
    send(1, 9, MPI_COMM_WORLD);
    return unused;
}

static void *signal_later(void *unused)
{
    sleep(3);
    pthread_mutex_lock(&mutex);
    signalled = 1;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
    return unused;
}

void start_idle(void)
{
    pthread_t other;
    pthread_create(&other, NULL, idle, NULL);
}

void start_waiting(void)
{
    pthread_t other;
    pthread_create(&other, NULL, wait_for_condition, NULL);
}

static void thread(void)
{
    /* No mistake: all main threads wait, and a thread of rank 0 sends what they wait for. */
    pthread_t helper;
    if (rank == 0) pthread_create(&helper, NULL, send_later, NULL);
    if (rank == 1) receive(0, 5, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) pthread_join(helper, NULL);
}

static void thread_chain(void)
{
    /* No mistake: as above, but another thread wakes the one that sends. */
    pthread_t helpers[2];
    if (rank == 0) pthread_create(&helpers[0], NULL, send_when_signalled, NULL);
    if (rank == 0) pthread_create(&helpers[1], NULL, signal_later, NULL);
    if (rank == 1) receive(0, 5, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < 2; i++) pthread_join(helpers[i], NULL);
}

static void thread_that_is_joined(void)
{
    pthread_t helper;
    pthread_create(&helper, NULL, receive_from_the_other, NULL);
    pthread_join(helper, NULL);
}

static void threads_that_wait(void)
{
    /* Two threads of each rank wait, and a third for the second. */
    pthread_t helper, third;
    pthread_create(&helper, NULL, receive_nine, NULL);
    pthread_create(&third, NULL, wait_for_condition, NULL);
    receive(1 - rank, 7, MPI_COMM_WORLD);
}

static void threads_and_one_that_sends(void)
{
    /* No mistake: two threads of each rank wait, and a third one of rank 0 sends what those of rank 1 wait for, which
     * answer. */
    pthread_t helper, sender;
    if (rank == 0) pthread_create(&sender, NULL, send_both_later, NULL);
    pthread_create(&helper, NULL, receive_nine, NULL);
    receive(1 - rank, 7, MPI_COMM_WORLD);
    pthread_join(helper, NULL);
    if (rank == 1) send(0, 7, MPI_COMM_WORLD), send(0, 9, MPI_COMM_WORLD);
    if (rank == 0) pthread_join(sender, NULL);
}

static void thread_in_a_barrier(void)
{
    /* One thread of rank 1 is in a collective call, the other in a receive. */
    pthread_t helper;
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    pthread_create(&helper, NULL, receive_nine, NULL);
    if (rank == 1) MPI_Barrier(other);
    pthread_join(helper, NULL);
}

static void *send_behind_the_mutex(void *unused)
{
    pthread_mutex_lock(&mutex);
    send(1, 7, MPI_COMM_WORLD);
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void thread_behind_a_mutex(void)
{
    /* Rank 0 receives the answer to what another thread of it would send, had it the mutex. */
    pthread_t helper;
    if (rank == 0) {
        pthread_mutex_lock(&mutex);
        pthread_create(&helper, NULL, send_behind_the_mutex, NULL);
        receive(1, 9, MPI_COMM_WORLD);
        pthread_mutex_unlock(&mutex);
        pthread_join(helper, NULL);
    } else {
        receive(0, 7, MPI_COMM_WORLD);
        send(0, 9, MPI_COMM_WORLD);
    }
}

const struct mistake mistakes_threads[] = {
    {"thread-behind-a-mutex", thread_behind_a_mutex},
    {"thread", thread},
    {"thread-chain", thread_chain},
    {"thread-that-is-joined", thread_that_is_joined},
    {"threads-that-wait", threads_that_wait},
    {"threads-and-one-that-sends", threads_and_one_that_sends},
    {"thread-in-a-barrier", thread_in_a_barrier},
    {NULL, NULL},
};
