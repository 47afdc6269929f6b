/* A pattern of messages in which all is known that does not depend on time: for tests of traces.
 *
 *   trace_pattern            the pattern, for four ranks
 *   trace_pattern kill N     rank 1 sends N messages to rank 0 and kills itself
 *   trace_pattern full N     the pattern, but no file may grow further; then N messages from rank 1 to rank 0
 *   trace_pattern threads    two threads of each of two ranks exchange messages at once
 */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int rank, size;
static char buffer[1 << 20];

static void send(int bytes, int to, int tag, MPI_Comm comm) { MPI_Send(buffer, bytes, MPI_BYTE, to, tag, comm); }
static void receive(int from, int tag, MPI_Comm comm)
{
    MPI_Recv(buffer, sizeof buffer, MPI_BYTE, from, tag, comm, MPI_STATUS_IGNORE);
}

/* Rank r sends r messages of 100 r bytes, and one that says that this is all. Rank 0 has seen all of them before it
 * receives the first: its unexpected queue has had 1 + 2 + 3 messages and 3. */
static void unexpected(void)
{
    if (rank > 0) {
        for (int i = 0; i < rank; i++) send(100 * rank, 0, 10 + rank, MPI_COMM_WORLD);
        send(0, 0, 99, MPI_COMM_WORLD);
        return;
    }
    for (int from = 1; from < size; from++) MPI_Probe(from, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int from = size - 1; from > 0; from--) {
        receive(from, 99, MPI_COMM_WORLD);
        for (int i = 0; i < from; i++) receive(i % 2 ? MPI_ANY_SOURCE : from, 10 + from, MPI_COMM_WORLD);
    }
}

/* Rank 0 posts five receives for each of the others before it lets them send: its posted queue has had 15. */
static void posted(void)
{
    enum { EACH = 5 };
    if (rank > 0) {
        receive(0, 50, MPI_COMM_WORLD);
        for (int i = 0; i < EACH; i++) send(8, 0, 200 + i, MPI_COMM_WORLD);
        return;
    }
    MPI_Request requests[3 * EACH];
    char data[3 * EACH][8];
    int posted = 0;
    for (int from = 1; from < size; from++)
        for (int i = 0; i < EACH; i++, posted++)
            MPI_Irecv(data[posted], 8, MPI_BYTE, from, 200 + i, MPI_COMM_WORLD, &requests[posted]);
    for (int to = 1; to < size; to++) send(0, to, 50, MPI_COMM_WORLD);
    MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE);
}

/* A large message, one on each of two communicators, collectives, and a message for which rank 3 waits long enough to
 * sleep, on however busy a machine. */
static void others(void)
{
    if (rank == 1) send(sizeof buffer, 2, 300, MPI_COMM_WORLD);
    if (rank == 2) receive(1, 300, MPI_COMM_WORLD);
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_set_name(half, rank % 2 ? "the odd ones" : "the even ones");
    if (rank < 2) send(16, 1, 400, half);
    if (rank >= 2) receive(0, 400, half);
    MPI_Bcast(buffer, 64, MPI_BYTE, 0, half);
    MPI_Comm_free(&half);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Request barrier;
    MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
    MPI_Wait(&barrier, MPI_STATUS_IGNORE);
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &barrier);
    MPI_Start(&barrier);
    MPI_Wait(&barrier, MPI_STATUS_IGNORE);
    MPI_Request_free(&barrier);
    if (rank == 3) {
        MPI_Request request;
        MPI_Irecv(buffer, 4, MPI_BYTE, 0, 500, MPI_COMM_WORLD, &request);
        send(0, 0, 501, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (rank == 0) {
        receive(3, 501, MPI_COMM_WORLD);
        usleep(300000);
        send(4, 3, 500, MPI_COMM_WORLD);
    }
}

static void stream(int count, int fatal)
{
    for (int i = 0; i < count && rank == 1; i++) send(8, 0, i, MPI_COMM_WORLD);
    for (int i = 0; i < count && rank == 0; i++) receive(1, i, MPI_COMM_WORLD);
    if (fatal && rank == 1) kill(getpid(), SIGKILL);
    if (fatal) receive(1, 1, MPI_COMM_WORLD);
}

static void *exchange(void *comm)
{
    char out[8] = {0}, in[8];
    for (int i = 0; i < 2000; i++)
        MPI_Sendrecv(out, 8, MPI_BYTE, 1 - rank, i, in, 8, MPI_BYTE, 1 - rank, i, *(MPI_Comm *)comm, MPI_STATUS_IGNORE);
    return NULL;
}

static void threads(void)
{
    pthread_t thread[2];
    MPI_Comm comm[2];
    for (int i = 0; i < 2; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
    for (int i = 0; i < 2; i++) pthread_create(&thread[i], NULL, exchange, &comm[i]);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < 2; i++) MPI_Comm_free(&comm[i]);
}

int main(int argc, char **argv)
{
    int level;
    MPI_Init_thread(&argc, &argv, argc > 1 && !strcmp(argv[1], "threads") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1 && !strcmp(argv[1], "threads")) {
        threads();
    } else if (argc > 2) {
        if (!strcmp(argv[1], "full")) {
            struct rlimit none = {4096, 4096};
            setrlimit(RLIMIT_FSIZE, &none);
        }
        stream(atoi(argv[2]), !strcmp(argv[1], "kill"));
    } else {
        unexpected();
        posted();
        others();
    }
    MPI_Finalize();
    return 0;
}
