/* Nonblocking collectives: several at once, completed in any order;
 * they go on while their rank waits for something else.
 * RANKS: 1 2 3 5
 */
#include "check.h"
#include <unistd.h>

static int rank, size;

static void several_at_once(void) {
    enum { BIG = 50000 };
    int sum[2], root[3] = {-1, -1, -1}, *all = malloc(sizeof(int) * size), *out = malloc(sizeof(int) * size);
    int *in = malloc(sizeof(int) * size), *data = malloc(sizeof(int) * BIG), prefix = -1, mine = rank + 1;
    MPI_Request requests[7];
    for (int i = 0; i < BIG; i++) data[i] = rank == size - 1 ? i : -1;
    for (int r = 0; r < size; r++) out[r] = 100 * rank + r;
    if (rank == 0) root[0] = 5, root[1] = 6, root[2] = 7;
    OK(MPI_Iallreduce(&mine, &sum[0], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Ibcast(data, BIG, MPI_INT, size - 1, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Iallreduce_c(&mine, &sum[1], 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[2]));
    OK(MPI_Ialltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD, &requests[3]));
    OK(MPI_Iallgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, &requests[4]));
    OK(MPI_Iscan(&mine, &prefix, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[5]));
    OK(MPI_Ibcast(root, 3, MPI_INT, 0, MPI_COMM_WORLD, &requests[6]));
    /* Ranks wait in different orders. */
    for (int k = 0; k < 7; k++) OK(MPI_Wait(&requests[(k * 3 + rank) % 7], MPI_STATUS_IGNORE));
    for (int k = 0; k < 7; k++) CHECK(requests[k] == MPI_REQUEST_NULL);
    SAME(sum[0], size * (size + 1) / 2);
    SAME(sum[1], size);
    for (int i = 0; i < BIG; i += 97) SAME(data[i], i);
    for (int r = 0; r < size; r++) SAME(in[r], 100 * r + rank);
    for (int r = 0; r < size; r++) SAME(all[r], r);
    SAME(prefix, mine * (mine + 1) / 2);
    SAME(root[2], 7);
    free(all), free(out), free(in), free(data);
}

/* Rank 0 waits for a message that its sender sends only when the barrier is over. */
static void goes_on_meanwhile(void) {
    MPI_Request barrier;
    int token = 0, flag = 0;
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &barrier));
    if (rank == 0 && size > 1) {
        OK(MPI_Recv(&token, 1, MPI_INT, size - 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        SAME(token, 77);
        OK(MPI_Wait(&barrier, MPI_STATUS_IGNORE));
    } else {
        while (!flag) OK(MPI_Test(&barrier, &flag, MPI_STATUS_IGNORE));
        token = 77;
        if (rank == size - 1 && size > 1) OK(MPI_Send(&token, 1, MPI_INT, 0, 4, MPI_COMM_WORLD));
    }
}

/* The others come late; a status is empty. */
static void late(void) {
    int value = rank == 0 ? 9 : 0, count = -1, flag = 0;
    MPI_Request request;
    MPI_Status status;
    OK(MPI_Ireduce(MPI_IN_PLACE, &value, 0, MPI_INT, MPI_SUM, 0, MPI_COMM_SELF, &request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    SAME(count, 0);
    SAME(status.MPI_SOURCE, MPI_ANY_SOURCE);
    OK(MPI_Ibcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, &request));
    while (!flag) OK(MPI_Testall(1, &request, &flag, MPI_STATUSES_IGNORE));
    SAME(value, 9);
}

static void between(void) {
    MPI_Comm half, inter;
    MPI_Request request;
    int sum = -1, expected = 0, other = 1 - rank % 2;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, other, 0, &inter));
    OK(MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter, &request));
    OK(MPI_Comm_free(&inter));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int r = other; r < size; r += 2) expected += r;
    SAME(sum, expected);
    OK(MPI_Comm_free(&half));
}

/* Two persistent operations, started in another order on every rank, three times. */
static void again_and_again(void) {
    int sum = -1, mine = 0, value = -1, flag;
    MPI_Request requests[2];
    OK(MPI_Allreduce_init(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Bcast_init(&value, 1, MPI_INT, size - 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE)); /* inactive */
    for (int round = 1; round <= 3; round++) {
        mine = rank * round;
        value = rank == size - 1 ? 10 * round : -1;
        OK(MPI_Start(&requests[rank % 2]));
        OK(MPI_Start(&requests[1 - rank % 2]));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        SAME(sum, round * size * (size - 1) / 2);
        SAME(value, 10 * round);
        CHECK(requests[0] != MPI_REQUEST_NULL);
        OK(MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE));
        SAME(flag, 1);
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
}

/* A duplicate that is asked for before the others ask: the first rank's message does not wait for it. */
static void duplicates(void) {
    MPI_Comm dup, other;
    MPI_Request requests[2];
    int token = 1, result, sum;
    if (rank) OK(MPI_Recv(&token, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Comm_idup(MPI_COMM_WORLD, &dup, &requests[0]));
    OK(MPI_Comm_idup(MPI_COMM_WORLD, &other, &requests[1]));
    if (rank + 1 < size) OK(MPI_Send(&token, 1, MPI_INT, rank + 1, 0, MPI_COMM_WORLD));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    OK(MPI_Comm_compare(dup, other, &result));
    SAME(result, MPI_CONGRUENT);
    OK(MPI_Allreduce(&token, &sum, 1, MPI_INT, MPI_SUM, dup));
    SAME(sum, size);
    OK(MPI_Barrier(other));
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_free(&other));
}

/* More than rings hold is begun while the others call nothing: a start never waits. */
static void far_ahead(void) {
    enum { CALLS = 600, BYTES = 3000 };
    MPI_Request *requests = malloc(sizeof *requests * CALLS);
    char *data = malloc((size_t)CALLS * BYTES);
    MPI_Win window;
    MPI_Aint bytes;
    volatile int *begun;
    int unit, *memory;
    OK(MPI_Win_allocate_shared(rank == 0 ? sizeof *memory : 0, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window));
    OK(MPI_Win_shared_query(window, 0, &bytes, &unit, &memory));
    begun = memory;
    if (rank == 0) *begun = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < CALLS; i++) memset(data + (size_t)i * BYTES, rank == 0 ? 1 + i % 100 : 0, BYTES);
    while (rank != 0 && !*begun) usleep(1000);
    for (int i = 0; i < CALLS; i++) {
        OK(MPI_Ibcast(data + (size_t)i * BYTES, BYTES, MPI_CHAR, 0, MPI_COMM_WORLD, &requests[i]));
        if (rank != 0 && i % 3 == 0) OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
    }
    if (rank == 0) *begun = 1;
    OK(MPI_Waitall(CALLS, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < CALLS; i++) {
        SAME(data[(size_t)i * BYTES], 1 + i % 100);
        SAME(data[(size_t)(i + 1) * BYTES - 1], 1 + i % 100);
    }
    OK(MPI_Win_free(&window));
    free(requests), free(data);
}

int main(void) {
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    for (int i = 0; i < 20; i++) several_at_once();
    goes_on_meanwhile();
    late();
    again_and_again();
    duplicates();
    far_ahead();
    if (size > 1) between();
    OK(MPI_Finalize());
    return verdict();
}
