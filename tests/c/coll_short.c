/* Blocking collectives of not many bytes have a fast path, and those of few bytes one of their own. Members meet
 * whether they take it or not: first all do, then those of odd rank take the slow path because a tool listens there.
 * What is wrong is found out all the same.
 * RANKS: 1 2 3 5
 */
#include "mpi_t_event.h"

enum { MOST = 16400 };
static int rank, size;
static const int counts[] = {0, 1, 2, 7, 29, 30, 31, 60, 61, 300, 1030, 4099};
enum { COUNTS = sizeof counts / sizeof *counts };

/* Value i of rank r: sums, products of few and bits of them are exact in every type. */
static int value(int r, int i) { return (r + 2 * i) % 5 + 1; }

#define REDUCES(TYPE, DATATYPE)                                                                                        \
    /* Value i of the first `ranks` ranks, reduced. */                                                                 \
    static TYPE reduced_##DATATYPE(MPI_Op op, int ranks, int i)                                                         \
    {                                                                                                                  \
        TYPE all = (TYPE)value(0, i);                                                                                  \
        for (int r = 1; r < ranks; r++) {                                                                              \
            TYPE v = (TYPE)value(r, i);                                                                                \
            all = (TYPE)(op == MPI_SUM ? all + v : op == MPI_PROD ? all * v : v > all ? v : all);                      \
        }                                                                                                              \
        return all;                                                                                                    \
    }                                                                                                                  \
    static void prefixes_##DATATYPE(MPI_Comm comm, int n, const TYPE *own, MPI_Op op)                                  \
    {                                                                                                                  \
        TYPE got[MOST], below[MOST];                                                                                   \
        memset(got, 0x55, sizeof got);                                                                                 \
        OK(MPI_Scan(own, got, n, DATATYPE, op, comm));                                                                 \
        for (int i = 0; i < n; i++) CHECK(got[i] == reduced_##DATATYPE(op, rank + 1, i));                               \
        for (int i = 0; i < n; i++) below[i] = (TYPE)77;                                                               \
        OK(MPI_Exscan(own, below, n, DATATYPE, op, comm));                                                             \
        for (int i = 0; i < n; i++) CHECK(below[i] == (rank ? reduced_##DATATYPE(op, rank, i) : (TYPE)77));             \
        for (int i = 0; i < n; i++) got[i] = own[i];                                                                   \
        OK(MPI_Scan(MPI_IN_PLACE, got, n, DATATYPE, op, comm));                                                        \
        for (int i = 0; i < n; i++) CHECK(got[i] == reduced_##DATATYPE(op, rank + 1, i));                               \
        for (int i = 0; i < n; i++) got[i] = own[i];                                                                   \
        OK(MPI_Exscan(MPI_IN_PLACE, got, n, DATATYPE, op, comm));                                                      \
        for (int i = 0; i < n; i++) CHECK(got[i] == (rank ? reduced_##DATATYPE(op, rank, i) : own[i]));                 \
    }                                                                                                                  \
    static void folds_##DATATYPE(MPI_Comm comm, int n)                                                                 \
    {                                                                                                                  \
        TYPE own[MOST], got[MOST], sum[MOST], product[MOST], most[MOST], other[MOST];                                  \
        for (int i = 0; i < n; i++) {                                                                                  \
            own[i] = (TYPE)value(rank, i), sum[i] = 0, product[i] = 1, most[i] = 0;                                    \
            for (int r = 0; r < size; r++) {                                                                           \
                TYPE v = (TYPE)value(r, i);                                                                            \
                sum[i] += v, product[i] *= v;                                                                          \
                if (v > most[i]) most[i] = v;                                                                          \
            }                                                                                                          \
        }                                                                                                              \
        struct { MPI_Op op; TYPE *known; } cases[] = {{MPI_SUM, sum}, {MPI_PROD, product}, {MPI_MAX, most}};           \
        for (int c = 0; c < 3; c++) {                                                                                  \
            int root = (n + c) % size;                                                                                 \
            memset(got, 0x55, sizeof got);                                                                             \
            OK(MPI_Allreduce(own, got, n, DATATYPE, cases[c].op, comm));                                               \
            for (int i = 0; i < n; i++) CHECK(got[i] == cases[c].known[i]);                                            \
            for (int i = 0; i < n; i++) got[i] = own[i];                                                               \
            OK(MPI_Allreduce_c(MPI_IN_PLACE, got, n, DATATYPE, cases[c].op, comm));                                    \
            for (int i = 0; i < n; i++) CHECK(got[i] == cases[c].known[i]);                                            \
            for (int i = 0; i < n; i++) got[i] = own[i];                                                               \
            const void *from = rank == root && n % 2 ? MPI_IN_PLACE : own;                                             \
            OK(MPI_Reduce(from, rank == root ? got : NULL, n, DATATYPE, cases[c].op, root, comm));                     \
            for (int i = 0; i < n; i++) CHECK(got[i] == (rank == root ? cases[c].known[i] : own[i]));                  \
            prefixes_##DATATYPE(comm, n, own, cases[c].op);                                                            \
            TYPE blocks[8 * MOST];                                                                                     \
            for (int i = 0; i < size * n; i++) blocks[i] = (TYPE)value(rank, i);                                       \
            memset(got, 0x55, sizeof got);                                                                             \
            OK(MPI_Reduce_scatter_block(blocks, got, n, DATATYPE, cases[c].op, comm));                                 \
            int each[8];                                                                                               \
            for (int r = 0; r < size; r++) each[r] = n;                                                                \
            memset(other, 0x55, sizeof other);                                                                         \
            OK(MPI_Reduce_scatter(blocks, other, each, DATATYPE, cases[c].op, comm));                                  \
            OK(MPI_Reduce_scatter_block(MPI_IN_PLACE, blocks, n, DATATYPE, cases[c].op, comm));                        \
            for (int i = 0; i < n; i++) {                                                                              \
                TYPE known = reduced_##DATATYPE(cases[c].op, size, rank * n + i);                                       \
                CHECK(got[i] == known && other[i] == known && blocks[i] == known);                                     \
            }                                                                                                          \
        }                                                                                                              \
    }
REDUCES(int, MPI_INT)
REDUCES(double, MPI_DOUBLE)
REDUCES(long double, MPI_LONG_DOUBLE)
REDUCES(signed char, MPI_SIGNED_CHAR)

static void moves(MPI_Comm comm, int n)
{
    int own[MOST], all[8 * MOST], back[8 * MOST];
    for (int root = 0; root < size; root++) {
        for (int i = 0; i < n; i++) own[i] = rank == root ? value(root, i) : -1;
        OK(MPI_Bcast(own, n, MPI_INT, root, comm));
        for (int i = 0; i < n; i++) SAME(own[i], value(root, i));
    }
    for (int i = 0; i < n; i++) own[i] = 100 * rank + i;
    memset(all, -1, sizeof all);
    OK(MPI_Allgather(own, n, MPI_INT, all, n, MPI_INT, comm));
    for (int r = 0; r < size; r++) for (int i = 0; i < n; i++) SAME(all[r * n + i], 100 * r + i);
    SAME(all[size * n], -1);
    for (int r = 0; r < size; r++) for (int i = 0; i < n; i++) if (r != rank) all[r * n + i] = -1;
    OK(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, n, MPI_INT, comm));
    for (int r = 0; r < size; r++) for (int i = 0; i < n; i++) SAME(all[r * n + i], 100 * r + i);
    for (int r = 0; r < size; r++) for (int i = 0; i < n; i++) all[r * n + i] = 10000 * rank + 100 * r + i;
    memset(back, -1, sizeof back);
    /* The same bytes by another type on the other side. */
    OK(MPI_Alltoall(all, n, MPI_INT, back, 4 * n, MPI_BYTE, comm));
    for (int r = 0; r < size; r++) for (int i = 0; i < n; i++) SAME(back[r * n + i], 10000 * r + 100 * rank + i);
    SAME(back[size * n], -1);
    for (int root = 0; root < size; root++) {
        for (int i = 0; i < n; i++) own[i] = 100 * rank + i;
        memset(all, -1, sizeof all);
        if (rank == root && n % 2) {
            memcpy(all + root * n, own, sizeof *own * (size_t)n);
            OK(MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, n, MPI_INT, root, comm));
        } else {
            OK(MPI_Gather(own, 4 * n, MPI_BYTE, rank == root ? all : NULL, n, MPI_INT, root, comm));
        }
        for (int r = 0; r < size; r++) for (int i = 0; i < n; i++) SAME(all[r * n + i], rank == root ? 100 * r + i : -1);
        SAME(all[size * n], -1);
        memset(back, -1, sizeof back);
        if (rank == root && n % 2)
            OK(MPI_Scatter(all, n, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, root, comm));
        else
            OK(MPI_Scatter(rank == root ? all : NULL, 4 * n, MPI_BYTE, back, n, MPI_INT, root, comm));
        for (int i = 0; i < n; i++) SAME(back[i], rank == root && n % 2 ? -1 : 100 * rank + i);
        SAME(back[n], -1);
    }
    OK(MPI_Barrier(comm));
}

static void every_operation(MPI_Comm comm)
{
    for (int c = 0; c < COUNTS; c++) {
        moves(comm, counts[c]);
        folds_MPI_INT(comm, counts[c]);
        folds_MPI_DOUBLE(comm, counts[c]);
        folds_MPI_LONG_DOUBLE(comm, counts[c]);
        folds_MPI_SIGNED_CHAR(comm, 4 * counts[c]);
    }
}

/* Each is refused before anybody is met, by the rank that makes the mistake and by all alike. */
static void what_is_wrong(MPI_Comm comm)
{
    int a[16] = {0}, b[16] = {0};
    OK(MPI_Barrier(comm));
    CLASS(MPI_Bcast(a, 1, MPI_INT, size, comm), MPI_ERR_ROOT);
    CLASS(MPI_Bcast(a, -1, MPI_INT, 0, comm), MPI_ERR_COUNT);
    CLASS(MPI_Bcast(a, 1, MPI_DATATYPE_NULL, 0, comm), MPI_ERR_TYPE);
    CLASS(MPI_Bcast(NULL, 1, MPI_INT, 0, comm), MPI_ERR_BUFFER);
    CLASS(MPI_Allreduce(a, a, 1, MPI_INT, MPI_SUM, comm), MPI_ERR_BUFFER);
    CLASS(MPI_Allreduce(a, b, 1, MPI_INT, MPI_OP_NULL, comm), MPI_ERR_OP);
    CLASS(MPI_Allreduce(a, b, 1, MPI_INT, MPI_REPLACE, comm), MPI_ERR_OP);
    CLASS(MPI_Allreduce(a, b, 1, MPI_DOUBLE, MPI_BAND, comm), MPI_ERR_OP);
    CLASS(MPI_Allreduce(a, b, 1, MPI_INT, MPI_MINLOC, comm), MPI_ERR_OP);
    CLASS(MPI_Reduce(a, a, 1, MPI_INT, MPI_SUM, rank, comm), MPI_ERR_BUFFER);
    CLASS(MPI_Reduce(a, b, 1, MPI_INT, MPI_SUM, -7, comm), MPI_ERR_ROOT);
    CLASS(MPI_Alltoall(a, 1, MPI_INT, a, 1, MPI_INT, comm), MPI_ERR_BUFFER);
    CLASS(MPI_Allgather(a + rank, 1, MPI_INT, a, 1, MPI_INT, comm), MPI_ERR_BUFFER);
    CLASS(MPI_Gather(a, 1, MPI_INT, b, 1, MPI_INT, size, comm), MPI_ERR_ROOT);
    CLASS(MPI_Gather(a + rank, 1, MPI_INT, a, 1, MPI_INT, rank, comm), MPI_ERR_BUFFER);
    CLASS(MPI_Scatter(a, 1, MPI_INT, a + rank, 1, MPI_INT, rank, comm), MPI_ERR_BUFFER);
    CLASS(MPI_Scatter(a, 1, MPI_INT, b, 1, MPI_INT, -1, comm), MPI_ERR_ROOT);
    CLASS(MPI_Scan(a, a, 1, MPI_INT, MPI_SUM, comm), MPI_ERR_BUFFER);
    CLASS(MPI_Scan(a, b, 1, MPI_DOUBLE, MPI_BAND, comm), MPI_ERR_OP);
    CLASS(MPI_Exscan(a, b, 1, MPI_INT, MPI_REPLACE, comm), MPI_ERR_OP);
    CLASS(MPI_Reduce_scatter_block(a, a, 1, MPI_INT, MPI_SUM, comm), MPI_ERR_BUFFER);
    CLASS(MPI_Reduce_scatter_block(a, b, 1, MPI_INT, MPI_MINLOC, comm), MPI_ERR_OP);
    CLASS(MPI_Barrier(MPI_COMM_NULL), MPI_ERR_COMM);
    every_operation(comm);
}

static void on_event(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    (void)instance, (void)handle, (void)level;
    ++*(int *)data;
}

int main(int argc, char **argv)
{
    int level, heard = 0;
    MPI_Comm dup;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &level));
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN));
    every_operation(dup);
    what_is_wrong(dup);
    MPI_T_event_registration handle = NULL;
    if (rank % 2) handle = listen_to(type_of("PERUSAL_COLL_BEGIN"), &dup, 0, on_event, &heard);
    every_operation(dup);
    what_is_wrong(dup);
    CHECK(rank % 2 ? heard > 100 : heard == 0);
    if (handle) OK(MPI_T_event_handle_free(handle, NULL, NULL));
    every_operation(dup);
    OK(MPI_Comm_free(&dup));
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return verdict();
}
