/* The nonblocking forms of collectives of not many bytes, those whose pieces differ in length, and those among
 * neighbours have a fast path, too. Members meet whether they take it or not: first all do, then those of odd rank take
 * the slow path because a tool listens there. What is wrong is found out all the same.
 * RANKS: 1 2 3 5
 */
#include "mpi_t_event.h"

enum { MOST = 4100, RANKS = 8 };
static int rank, size;
static const int counts[] = {0, 1, 3, 29, 31, 200, 1030, 4099};
enum { COUNTS = sizeof counts / sizeof *counts };

/* What rank r has at place i for rank `to`. */
static int value(int r, int to, int i) { return 1000000 * r + 10000 * to + i; }

/* How many elements rank r has for rank `to`: some none. */
static int length(int n, int r, int to) { return n * ((r + 2 * to) % 3) / 2; }

/* All nonblocking operations at once, each with its own buffers. */
struct moved {
    int bcast[MOST], gather[RANKS * MOST], scatter[MOST], allgather[RANKS * MOST], alltoall[RANKS * MOST];
    int reduce[MOST], allreduce[MOST], block[MOST], scan[MOST], exscan[MOST];
};

static void together(MPI_Comm comm, int n, int root)
{
    static int own[MOST], all[RANKS * MOST];
    static struct moved got;
    MPI_Request requests[11];
    memset(&got, -1, sizeof got);
    for (int i = 0; i < n; i++) own[i] = value(rank, 0, i), got.bcast[i] = rank == root ? value(root, 0, i) : -1;
    for (int r = 0; r < size; r++) for (int i = 0; i < n; i++) all[r * n + i] = value(rank, r, i);
    OK(MPI_Ibcast(got.bcast, n, MPI_INT, root, comm, requests));
    OK(MPI_Iallreduce(own, got.allreduce, n, MPI_INT, MPI_SUM, comm, requests + 1));
    OK(MPI_Igather(own, 4 * n, MPI_BYTE, rank == root ? got.gather : NULL, n, MPI_INT, root, comm, requests + 2));
    OK(MPI_Iscatter(rank == root ? all : NULL, n, MPI_INT, got.scatter, n, MPI_INT, root, comm, requests + 3));
    OK(MPI_Ibarrier(comm, requests + 4));
    OK(MPI_Iallgather(own, n, MPI_INT, got.allgather, n, MPI_INT, comm, requests + 5));
    OK(MPI_Ialltoall(all, n, MPI_INT, got.alltoall, n, MPI_INT, comm, requests + 6));
    OK(MPI_Ireduce(own, rank == root ? got.reduce : NULL, n, MPI_INT, MPI_MAX, root, comm, requests + 7));
    OK(MPI_Ireduce_scatter_block(all, got.block, n, MPI_INT, MPI_SUM, comm, requests + 8));
    OK(MPI_Iscan(own, got.scan, n, MPI_INT, MPI_SUM, comm, requests + 9));
    OK(MPI_Iexscan(own, got.exscan, n, MPI_INT, MPI_SUM, comm, requests + 10));
    /* A blocking one overtakes them. */
    OK(MPI_Barrier(comm));
    if (n % 2) {
        for (int r = 10; r >= 0; r--) OK(MPI_Wait(requests + r, MPI_STATUS_IGNORE));
    } else {
        OK(MPI_Waitall(11, requests, MPI_STATUSES_IGNORE));
    }
    int below = rank * (rank - 1) / 2, sum = size * (size - 1) / 2;
    for (int i = 0; i < n; i++) {
        SAME(got.bcast[i], value(root, 0, i));
        SAME(got.scatter[i], value(root, rank, i));
        SAME(got.allreduce[i], 1000000 * sum + size * i);
        SAME(got.reduce[i], rank == root ? value(size - 1, 0, i) : -1);
        SAME(got.block[i], 1000000 * sum + size * (10000 * rank + i));
        SAME(got.scan[i], 1000000 * (below + rank) + (rank + 1) * i);
        SAME(got.exscan[i], rank ? 1000000 * below + rank * i : -1);
        for (int r = 0; r < size; r++) {
            SAME(got.gather[r * n + i], rank == root ? value(r, 0, i) : -1);
            SAME(got.allgather[r * n + i], value(r, 0, i));
            SAME(got.alltoall[r * n + i], value(r, rank, i));
        }
    }
    SAME(got.bcast[n], -1);
    SAME(got.gather[size * n], -1);
    SAME(got.allgather[size * n], -1);
    SAME(got.alltoall[size * n], -1);
}

/* Begins an operation, or performs it and makes a request of nothing. */
#define EITHER(BEGUN, PERFORM, BEGIN)                                       \
    do {                                                                    \
        request = MPI_REQUEST_NULL;                                         \
        if (BEGUN) OK(BEGIN); else OK(PERFORM);                             \
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));                          \
    } while (0)

/* Pieces of different lengths, with a gap of one element between them but in the last allgather. */
static void varied(MPI_Comm comm, int n, int begun)
{
    static int own[RANKS * (MOST + 1)], got[RANKS * (MOST + 1)];
    int to[RANKS], from[RANKS], to_at[RANKS], from_at[RANKS], to_bytes[RANKS], from_bytes[RANKS], at = 0, end = 0;
    MPI_Datatype types[RANKS];
    MPI_Request request;
    for (int r = 0; r < size; r++) {
        to[r] = length(n, rank, r), to_at[r] = at, at += to[r] + 1;
        from[r] = length(n, r, rank), from_at[r] = end, end += from[r] + 1;
        to_bytes[r] = 4 * to_at[r], from_bytes[r] = 4 * from_at[r], types[r] = MPI_INT;
        for (int i = 0; i < to[r]; i++) own[to_at[r] + i] = value(rank, r, i);
    }
#define EXPECT_ALL                                                                                         \
    for (int r = 0; r < size; r++) {                                                                       \
        for (int i = 0; i < from[r]; i++) SAME(got[from_at[r] + i], value(r, rank, i));                    \
        SAME(got[from_at[r] + from[r]], -1);                                                               \
    }
    memset(got, -1, sizeof got);
    EITHER(begun, MPI_Alltoallv(own, to, to_at, MPI_INT, got, from, from_at, MPI_INT, comm),
           MPI_Ialltoallv(own, to, to_at, MPI_INT, got, from, from_at, MPI_INT, comm, &request));
    EXPECT_ALL
    memset(got, -1, sizeof got);
    EITHER(begun, MPI_Alltoallw(own, to, to_bytes, types, got, from, from_bytes, types, comm),
           MPI_Ialltoallw(own, to, to_bytes, types, got, from, from_bytes, types, comm, &request));
    EXPECT_ALL
    for (int root = 0; root < size; root++) {
        int here = rank == root;
        /* What each has for the root. */
        memset(got, -1, sizeof got);
        for (int r = 0; r < size; r++) from[r] = length(n, r, root);
        const int *mine = own + to_at[root];
        if (here && n % 2) {
            memcpy(got + from_at[root], mine, sizeof *mine * (size_t)from[root]);
            mine = MPI_IN_PLACE;
        }
        EITHER(begun, MPI_Gatherv(mine, to[root], MPI_INT, here ? got : NULL, from, from_at, MPI_INT, root, comm),
               MPI_Igatherv(mine, to[root], MPI_INT, here ? got : NULL, from, from_at, MPI_INT, root, comm, &request));
        if (here) { EXPECT_ALL }
        /* And back. */
        static int back[MOST];
        memset(back, -1, sizeof back);
        int *room = here && n % 3 == 0 ? MPI_IN_PLACE : back;
        EITHER(begun, MPI_Scatterv(here ? got : NULL, from, from_at, MPI_INT, room, to[root], MPI_INT, root, comm),
               MPI_Iscatterv(here ? got : NULL, from, from_at, MPI_INT, room, to[root], MPI_INT, root, comm, &request));
        for (int i = 0; i < to[root]; i++) SAME(back[i], room == back ? value(rank, root, i) : -1);
        SAME(back[to[root]], -1);
    }
    for (int apart = 0; apart < 2; apart++) {
        for (int r = 0, next = 0; r < size; r++) from[r] = length(n, r, 0), from_at[r] = next, next += from[r] + apart;
        memset(got, -1, sizeof got);
        const int *mine = own + to_at[0];
        if (n % 2) {
            memcpy(got + from_at[rank], mine, sizeof *mine * (size_t)from[rank]);
            mine = MPI_IN_PLACE;
        }
        EITHER(begun, MPI_Allgatherv(mine, to[0], MPI_INT, got, from, from_at, MPI_INT, comm),
               MPI_Iallgatherv(mine, to[0], MPI_INT, got, from, from_at, MPI_INT, comm, &request));
        for (int r = 0; r < size; r++) {
            for (int i = 0; i < from[r]; i++) SAME(got[from_at[r] + i], value(r, 0, i));
            if (apart || r == size - 1) SAME(got[from_at[r] + from[r]], -1);
        }
    }
}

/* A ring, in which a rank can be its own neighbour, or another's twice; open, it has an edge. */
static void neighbours(MPI_Comm comm, int n, int begun)
{
    static int own[2 * (MOST + 1)], got[2 * (MOST + 1)];
    int down, up;
    MPI_Request request;
    MPI_Cart_shift(comm, 0, 1, &down, &up);
    for (int side = 0; side < 2; side++) for (int i = 0; i < n; i++) own[side * n + i] = value(rank, side, i);
    memset(got, -1, sizeof got);
    EITHER(begun, MPI_Neighbor_allgather(own, n, MPI_INT, got, n, MPI_INT, comm),
           MPI_Ineighbor_allgather(own, n, MPI_INT, got, n, MPI_INT, comm, &request));
    for (int i = 0; i < n; i++) {
        SAME(got[i], down == MPI_PROC_NULL ? -1 : value(down, 0, i));
        SAME(got[n + i], up == MPI_PROC_NULL ? -1 : value(up, 0, i));
    }
    memset(got, -1, sizeof got);
    EITHER(begun, MPI_Neighbor_alltoall(own, n, MPI_INT, got, n, MPI_INT, comm),
           MPI_Ineighbor_alltoall(own, n, MPI_INT, got, n, MPI_INT, comm, &request));
    /* From below comes what was sent up. */
    for (int i = 0; i < n; i++) {
        SAME(got[i], down == MPI_PROC_NULL ? -1 : value(down, 1, i));
        SAME(got[n + i], up == MPI_PROC_NULL ? -1 : value(up, 0, i));
    }
    /* Half as much goes down, to the end of the receiver's buffer. */
    int to[2] = {n / 2, n}, to_at[2] = {0, n}, from[2] = {n, n / 2}, from_at[2] = {n + 1, 0};
    MPI_Aint to_bytes[2] = {0, 4 * n}, from_bytes[2] = {4 * (n + 1), 0};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    for (int w = 0; w < 2; w++) {
        memset(got, -1, sizeof got);
        if (w)
            EITHER(begun, MPI_Neighbor_alltoallw(own, to, to_bytes, types, got, from, from_bytes, types, comm),
                   MPI_Ineighbor_alltoallw(own, to, to_bytes, types, got, from, from_bytes, types, comm, &request));
        else
            EITHER(begun, MPI_Neighbor_alltoallv(own, to, to_at, MPI_INT, got, from, from_at, MPI_INT, comm),
                   MPI_Ineighbor_alltoallv(own, to, to_at, MPI_INT, got, from, from_at, MPI_INT, comm, &request));
        for (int i = 0; i < n; i++) SAME(got[n + 1 + i], down == MPI_PROC_NULL ? -1 : value(down, 1, i));
        for (int i = 0; i < n / 2; i++) SAME(got[i], up == MPI_PROC_NULL ? -1 : value(up, 0, i));
    }
    int both[2] = {n, n};
    memset(got, -1, sizeof got);
    EITHER(begun, MPI_Neighbor_allgatherv(own, n, MPI_INT, got, both, from_at, MPI_INT, comm),
           MPI_Ineighbor_allgatherv(own, n, MPI_INT, got, both, from_at, MPI_INT, comm, &request));
    for (int i = 0; i < n; i++) {
        SAME(got[n + 1 + i], down == MPI_PROC_NULL ? -1 : value(down, 0, i));
        SAME(got[i], up == MPI_PROC_NULL ? -1 : value(up, 0, i));
    }
}

static void every_operation(MPI_Comm comm, MPI_Comm ring, MPI_Comm row)
{
    for (int c = 0; c < COUNTS; c++) {
        for (int root = 0; root < size; root++) together(comm, counts[c], root);
        for (int begun = 0; begun < 2; begun++) {
            varied(comm, counts[c], begun);
            neighbours(ring, counts[c], begun);
            neighbours(row, counts[c], begun);
        }
    }
}

/* Each is refused before anybody is met, by all alike; but for the last. */
static void what_is_wrong(MPI_Comm comm, MPI_Comm ring)
{
    int a[16] = {0}, b[16] = {0}, some[RANKS] = {1, 1, 1, 1, 1, 1, 1, 1}, less[RANKS] = {-1, -1, -1, -1, -1, -1, -1, -1}, at[RANKS] = {0, 1, 2, 3, 4, 5, 6, 7};
    MPI_Request request;
    CLASS(MPI_Ibcast(a, 1, MPI_INT, size, comm, &request), MPI_ERR_ROOT);
    CLASS(MPI_Ibcast(a, -1, MPI_INT, 0, comm, &request), MPI_ERR_COUNT);
    CLASS(MPI_Iallreduce(a, a, 1, MPI_INT, MPI_SUM, comm, &request), MPI_ERR_BUFFER);
    CLASS(MPI_Iallreduce(a, b, 1, MPI_DOUBLE, MPI_BAND, comm, &request), MPI_ERR_OP);
    CLASS(MPI_Ialltoall(a, 1, MPI_DATATYPE_NULL, b, 1, MPI_INT, comm, &request), MPI_ERR_TYPE);
    CLASS(MPI_Gatherv(a, 1, MPI_INT, b, less, at, MPI_INT, rank, comm), MPI_ERR_COUNT);
    CLASS(MPI_Gatherv(b + rank, 1, MPI_INT, b, some, at, MPI_INT, rank, comm), MPI_ERR_BUFFER);
    CLASS(MPI_Scatterv(a, some, at, MPI_INT, a + rank, 1, MPI_INT, rank, comm), MPI_ERR_BUFFER);
    CLASS(MPI_Scatterv(a, some, at, MPI_INT, b, 1, MPI_INT, -1, comm), MPI_ERR_ROOT);
    CLASS(MPI_Allgatherv(b + rank, 1, MPI_INT, b, some, at, MPI_INT, comm), MPI_ERR_BUFFER);
    CLASS(MPI_Alltoallv(a, some, at, MPI_INT, a, some, at, MPI_INT, comm), MPI_ERR_BUFFER);
    CLASS(MPI_Alltoallv(a, some, NULL, MPI_INT, b, some, at, MPI_INT, comm), MPI_ERR_ARG);
    CLASS(MPI_Neighbor_allgather(a, 1, MPI_INT, b, -1, MPI_INT, ring), MPI_ERR_COUNT);
    CLASS(MPI_Neighbor_alltoall(a, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, ring), MPI_ERR_BUFFER);
    CLASS(MPI_Neighbor_alltoall(a, 1, MPI_INT, b, 1, MPI_INT, comm), MPI_ERR_TOPOLOGY);
    CLASS(MPI_Barrier(comm), MPI_SUCCESS);
    /* A root with less room than it sends itself. */
    CLASS(MPI_Gatherv(a, rank ? 1 : 2, MPI_INT, b, some, at, MPI_INT, 0, comm), rank ? MPI_SUCCESS : MPI_ERR_TRUNCATE);
}

static void on_event(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    (void)instance, (void)handle, (void)level;
    ++*(int *)data;
}

int main(int argc, char **argv)
{
    int level, heard = 0;
    MPI_Comm dup, ring, row;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &level));
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN));
    OK(MPI_Cart_create(dup, 1, &size, (int[]) {1}, 0, &ring));
    OK(MPI_Cart_create(dup, 1, &size, (int[]) {0}, 0, &row));
    every_operation(dup, ring, row);
    what_is_wrong(dup, ring);
    MPI_T_event_registration handle = NULL;
    if (rank % 2) handle = listen_to(type_of("PERUSAL_COLL_BEGIN"), &dup, 0, on_event, &heard);
    every_operation(dup, ring, row);
    what_is_wrong(dup, ring);
    CHECK(rank % 2 ? heard > 100 : heard == 0);
    if (handle) OK(MPI_T_event_handle_free(handle, NULL, NULL));
    every_operation(dup, ring, row);
    OK(MPI_Comm_free(&ring));
    OK(MPI_Comm_free(&row));
    OK(MPI_Comm_free(&dup));
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return verdict();
}
