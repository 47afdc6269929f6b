/* Partitioned messages: partitions that become ready in any order, from several threads; other partitions at the
 * receiver; derived types; buffers of private and of shared memory; several requests at once; oneself; nobody;
 * lengths that differ; misuse.
 * RANKS: 1 2 3
 * FLAGS: -pthread
 */
#include "check.h"
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

enum { ROUNDS = 20, ITEMS = 960, TAG = 2147483647 };

static int rank, size;

static int value(int round, int i) { return round * 100000 + i; }

/* `parts` of the sender, `own` of the receiver: the data goes round a ring of ranks. */
static void ring(int *out, int *in, int parts, int own, MPI_Datatype type)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size, flag, step = type == MPI_INT ? 1 : 2;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    OK(MPI_Psend_init(out, parts, ITEMS / parts, type, next, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Precv_init(in, own, ITEMS / own, type, before, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    for (int round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < ITEMS; i++) out[i * step] = value(round, i), in[i * step] = -1;
        OK(MPI_Startall(2, requests));
        if (size == 1) {
            OK(MPI_Parrived(requests[1], 0, &flag));
            SAME(flag, 0);
        }
        switch (round % 4) {
        case 0: OK(MPI_Pready_range(0, parts - 1, requests[0])); break;
        case 1:
            for (int i = parts - 1; i >= 0; i--) OK(MPI_Pready(i, requests[0]));
            break;
        case 2: {
            int *list = malloc(parts * sizeof *list);
            for (int i = 0; i < parts; i++) list[i] = (i + parts / 2) % parts;
            OK(MPI_Pready_list(parts, list, requests[0]));
            free(list);
            break;
        }
        default:
            for (int i = 0; i < parts; i++) {
                OK(MPI_Pready(i, requests[0]));
                OK(MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE));
                CHECK(!flag || i == parts - 1);
                if (flag) break;
            }
        }
        if (round % 3) {
            for (int i = own - 1; i >= 0; i--) {
                for (flag = 0; !flag;) OK(MPI_Parrived(requests[1], i, &flag));
                for (int at = i * (ITEMS / own); at < (i + 1) * (ITEMS / own); at++) SAME(in[at * step], value(round, at));
            }
        }
        OK(MPI_Waitall(2, requests, statuses));
        int count = -1;
        OK(MPI_Get_count(&statuses[1], type, &count));
        if (round % 4 != 3) {
            SAME(count, ITEMS);
            SAME(statuses[1].MPI_SOURCE, before);
            SAME(statuses[1].MPI_TAG, TAG);
        }
        for (int i = 0; i < ITEMS; i++) SAME(in[i * step], value(round, i));
        OK(MPI_Parrived(requests[1], own - 1, &flag));
        SAME(flag, 1);
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
    SAME(requests[0] == MPI_REQUEST_NULL, 1);
}

/* Threads that say so at once. */
enum { THREADS = 4, EACH = 8, LARGE = 4096 };
static MPI_Request shared;
static char *large;

static void *work(void *argument)
{
    int me = (int)(long)argument;
    for (int i = 0; i < EACH; i++) {
        int partition = i * THREADS + me;
        memset(large + (size_t)partition * LARGE, partition + 1, LARGE);
        OK(MPI_Pready(partition, shared));
    }
    return NULL;
}

static void threads(void)
{
    int parts = THREADS * EACH, next = (rank + 1) % size, before = (rank + size - 1) % size, arrived = 0, flag;
    char *in = malloc((size_t)parts * LARGE);
    MPI_Request receive;
    pthread_t others[THREADS];
    large = malloc((size_t)parts * LARGE);
    OK(MPI_Precv_init(in, parts / 2, 2 * LARGE, MPI_CHAR, before, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
    OK(MPI_Psend_init(large, parts, LARGE, MPI_CHAR, next, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &shared));
    for (int round = 0; round < 30; round++) {
        memset(in, 0, (size_t)parts * LARGE);
        OK(MPI_Start(&shared));
        for (long i = 0; i < THREADS; i++) pthread_create(&others[i], NULL, work, (void *)i);
        OK(MPI_Start(&receive));
        if (round % 2) {
            for (arrived = 0; arrived < parts / 2;) {
                OK(MPI_Parrived(receive, arrived, &flag));
                if (!flag) continue;
                SAME(in[(size_t)arrived * 2 * LARGE], 2 * arrived + 1);
                SAME(in[(size_t)(arrived + 1) * 2 * LARGE - 1], 2 * arrived + 2);
                arrived++;
            }
        }
        OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
        for (int i = 0; i < parts; i++) SAME(in[(size_t)i * LARGE + LARGE / 2], i + 1);
        for (int i = 0; i < THREADS; i++) pthread_join(others[i], NULL);
        OK(MPI_Wait(&shared, MPI_STATUS_IGNORE));
    }
    OK(MPI_Request_free(&receive));
    OK(MPI_Request_free(&shared));
    free(in), free(large);
}

/* Requests with the same envelope find each other in the order of their making; those of other tags, whenever. */
static void several(void)
{
    enum { N = 6 };
    int out[N][4], in[N][4], next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Request requests[2 * N];
    for (int i = 0; i < N; i++)
        OK(MPI_Psend_init(out[i], 2, 2, MPI_INT, next, i / 2, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i]));
    for (int i = N - 2; i >= 0; i -= 2)
        for (int k = 0; k < 2; k++)
            OK(MPI_Precv_init(in[i + k], 1, 4, MPI_INT, before, i / 2, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[N + i + k]));
    for (int round = 0; round < 3; round++) {
        OK(MPI_Startall(2 * N, requests));
        for (int i = N - 1; i >= 0; i--) {
            for (int k = 0; k < 4; k++) out[i][k] = value(round, 10 * i + k);
            OK(MPI_Pready_range(0, 1, requests[i]));
        }
        /* Messages with the same tag are others. */
        int token = rank, got = -1;
        OK(MPI_Sendrecv(&token, 1, MPI_INT, next, 0, &got, 1, MPI_INT, before, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        SAME(got, before);
        OK(MPI_Waitall(2 * N, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < N; i++)
            for (int k = 0; k < 4; k++) SAME(in[i][k], value(round, 10 * i + k));
    }
    for (int i = 0; i < 2 * N; i++) OK(MPI_Request_free(&requests[i]));
}

static void unusual(void)
{
    int data[8] = {0}, room[8], flag, count;
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Request send, receive;
    MPI_Status status;
    /* Nobody. */
    OK(MPI_Psend_init(data, 2, 4, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(room, 2, 4, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
    OK(MPI_Start(&send));
    OK(MPI_Start(&receive));
    OK(MPI_Pready_range(0, 1, send));
    OK(MPI_Parrived(receive, 1, &flag));
    SAME(flag, 1);
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&receive, &status));
    SAME(status.MPI_SOURCE, MPI_PROC_NULL);
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
    /* More partitions than there may be memory for: a mark that nobody sets costs none. */
    int class = MPI_Psend_init(data, INT_MAX, 1, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
    if (class == MPI_SUCCESS) {
        OK(MPI_Start(&send));
        OK(MPI_Pready(INT_MAX - 1, send));
        CLASS(MPI_Pready(INT_MAX - 1, send), MPI_ERR_ARG);
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
        OK(MPI_Request_free(&send));
    } else {
        CLASS(class, MPI_ERR_NO_MEM);
    }
    CLASS(MPI_Precv_init(room, INT_MAX, 1, MPI_CHAR, before, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &receive), MPI_ERR_NO_MEM);
    /* Nothing: empty partitions. */
    for (int parts = 1; parts < 4; parts += 2) {
        OK(MPI_Psend_init(data, parts, 0, MPI_INT, next, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
        OK(MPI_Precv_init(room, 3, 0, MPI_INT, before, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
        for (int round = 0; round < 2; round++) {
            OK(MPI_Start(&receive));
            OK(MPI_Start(&send));
            for (int i = 0; i < parts; i++) OK(MPI_Pready(i, send));
            OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
            OK(MPI_Wait(&receive, &status));
            OK(MPI_Get_count(&status, MPI_INT, &count));
            SAME(count, 0);
        }
        OK(MPI_Request_free(&receive));
        OK(MPI_Request_free(&send));
    }
    /* Fewer than there is room for; and more. */
    for (int more = 0; more < 2; more++) {
        int sent = more ? 8 : 3, taken = more ? 4 : 8;
        for (int i = 0; i < 8; i++) data[i] = i + 50, room[i] = -1;
        OK(MPI_Psend_init(data, sent, 1, MPI_INT, next, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
        OK(MPI_Precv_init(room, taken / 2, 2, MPI_INT, before, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
        OK(MPI_Start(&receive));
        OK(MPI_Start(&send));
        OK(MPI_Pready_range(0, sent - 1, send));
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
        for (int i = 0; i < taken / 2; i++)
            for (flag = 0; !flag;) OK(MPI_Parrived(receive, i, &flag));
        CLASS(MPI_Wait(&receive, &status), more ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
        OK(MPI_Get_count(&status, MPI_INT, &count));
        SAME(count, more ? 4 : 3);
        for (int i = 0; i < 8; i++) SAME(room[i], i < count ? i + 50 : -1);
        OK(MPI_Request_free(&receive));
        OK(MPI_Request_free(&send));
    }
    /* Misuse. */
    CLASS(MPI_Psend_init(data, -1, 1, MPI_INT, next, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send), MPI_ERR_ARG);
    CLASS(MPI_Psend_init(data, 0, 1, MPI_INT, next, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send), MPI_ERR_ARG);
    CLASS(MPI_Psend_init(data, 1, -1, MPI_INT, next, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send), MPI_ERR_COUNT);
    CLASS(MPI_Psend_init(NULL, 1, 1, MPI_INT, next, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send), MPI_ERR_BUFFER);
    CLASS(MPI_Psend_init(data, 1, 1, MPI_INT, size, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send), MPI_ERR_RANK);
    CLASS(MPI_Psend_init(data, 1, 1, MPI_INT, next, -1, MPI_COMM_WORLD, MPI_INFO_NULL, &send), MPI_ERR_TAG);
    CLASS(MPI_Psend_init(data, 2147483647, (MPI_Count)1 << 40, MPI_INT, next, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send), MPI_ERR_COUNT);
    CLASS(MPI_Precv_init(room, 1, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &receive), MPI_ERR_RANK);
    CLASS(MPI_Precv_init(room, 1, 1, MPI_INT, before, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &receive), MPI_ERR_TAG);
    OK(MPI_Psend_init(data, 2, 1, MPI_INT, next, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(room, 2, 1, MPI_INT, before, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
    CLASS(MPI_Pready(0, send), MPI_ERR_REQUEST);
    OK(MPI_Start(&send));
    CLASS(MPI_Start(&send), MPI_ERR_REQUEST);
    OK(MPI_Start(&receive));
    CLASS(MPI_Pready(2, send), MPI_ERR_ARG);
    CLASS(MPI_Pready(-1, send), MPI_ERR_ARG);
    CLASS(MPI_Pready_range(1, 0, send), MPI_ERR_ARG);
    OK(MPI_Pready(1, send));
    CLASS(MPI_Pready(1, send), MPI_ERR_ARG);
    CLASS(MPI_Pready(0, receive), MPI_ERR_REQUEST);
    CLASS(MPI_Parrived(send, 0, &flag), MPI_ERR_REQUEST);
    CLASS(MPI_Parrived(receive, 2, &flag), MPI_ERR_ARG);
    CLASS(MPI_Cancel(&send), MPI_ERR_REQUEST);
    OK(MPI_Pready(0, send));
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
}

int main(int argc, char **argv)
{
    static int out[2 * ITEMS], in[2 * ITEMS];
    int provided, *given;
    MPI_Datatype second;
    MPI_Init_thread(&argc, &argv, getenv("SINGLE") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    errors_return();
    ring(out, in, 8, 8, MPI_INT);
    ring(out, in, 1, 24, MPI_INT);
    ring(out, in, 20, 3, MPI_INT);
    OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &second));
    OK(MPI_Type_commit(&second));
    ring(out, in, 12, 5, second);
    OK(MPI_Type_free(&second));
    /* From some size on this is memory that all ranks map. */
    OK(MPI_Alloc_mem(1 << 22, MPI_INFO_NULL, &given));
    ring(out, given, 16, 6, MPI_INT);
    OK(MPI_Free_mem(given));
    several();
    unusual();
    if (provided == MPI_THREAD_MULTIPLE) threads();
    MPI_Finalize();
    return verdict();
}
