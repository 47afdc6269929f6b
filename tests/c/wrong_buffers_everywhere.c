/* No function that is given a buffer touches NULL, or MPI_IN_PLACE where that is not allowed, whatever the type of its
 * elements: plain, a pair with and without gaps, derived. The error's class is MPI_ERR_BUFFER.
 * Types with absolute addresses lie at MPI_BOTTOM.
 * RANKS: 1
 */
#include "check.h"

#define COMM MPI_COMM_WORLD
#define WRONG(call) CLASS(call, MPI_ERR_BUFFER)

static double good[16], other[16];
static MPI_Request r;

static void messages(void *none, MPI_Datatype t)
{
    MPI_Status *no = MPI_STATUS_IGNORE;
    MPI_Message message;
    WRONG(MPI_Send(none, 1, t, 0, 0, COMM));
    WRONG(MPI_Bsend(none, 1, t, 0, 0, COMM));
    WRONG(MPI_Ssend(none, 1, t, 0, 0, COMM));
    WRONG(MPI_Rsend(none, 1, t, 0, 0, COMM));
    WRONG(MPI_Isend(none, 1, t, 0, 0, COMM, &r));
    WRONG(MPI_Ibsend(none, 1, t, 0, 0, COMM, &r));
    WRONG(MPI_Issend(none, 1, t, 0, 0, COMM, &r));
    WRONG(MPI_Irsend(none, 1, t, 0, 0, COMM, &r));
    WRONG(MPI_Send_init(none, 1, t, 0, 0, COMM, &r));
    WRONG(MPI_Bsend_init(none, 1, t, 0, 0, COMM, &r));
    WRONG(MPI_Ssend_init(none, 1, t, 0, 0, COMM, &r));
    WRONG(MPI_Rsend_init(none, 1, t, 0, 0, COMM, &r));
    WRONG(MPI_Recv(none, 1, t, 0, 0, COMM, no));
    WRONG(MPI_Irecv(none, 1, t, 0, 0, COMM, &r));
    WRONG(MPI_Recv_init(none, 1, t, 0, 0, COMM, &r));
    WRONG(MPI_Sendrecv(none, 1, t, 0, 0, good, 1, t, 0, 0, COMM, no));
    WRONG(MPI_Sendrecv(good, 1, t, 0, 0, none, 1, t, 0, 0, COMM, no));
    WRONG(MPI_Isendrecv(none, 1, t, 0, 0, good, 1, t, 0, 0, COMM, &r));
    WRONG(MPI_Isendrecv(good, 1, t, 0, 0, none, 1, t, 0, 0, COMM, &r));
    WRONG(MPI_Sendrecv_replace(none, 1, t, 0, 0, 0, 0, COMM, no));
    WRONG(MPI_Isendrecv_replace(none, 1, t, 0, 0, 0, 0, COMM, &r));
    OK(MPI_Isend(good, 1, t, 0, 0, COMM, &r));
    OK(MPI_Mprobe(0, 0, COMM, &message, no));
    WRONG(MPI_Mrecv(none, 1, t, &message, no));
    MPI_Request matched;
    WRONG(MPI_Imrecv(none, 1, t, &message, &matched));
    OK(MPI_Mrecv(other, 1, t, &message, no));
    OK(MPI_Wait(&r, no));
}

static void packing(void *none, MPI_Datatype t)
{
    char packed[64];
    int position = 0;
    MPI_Aint at = 0;
    WRONG(MPI_Pack(none, 1, t, packed, 64, &position, COMM));
    WRONG(MPI_Pack(good, 1, t, none, 64, &position, COMM));
    WRONG(MPI_Unpack(packed, 64, &position, none, 1, t, COMM));
    WRONG(MPI_Unpack(none, 64, &position, good, 1, t, COMM));
    WRONG(MPI_Pack_external("external32", none, 1, t, packed, 64, &at));
    WRONG(MPI_Pack_external("external32", good, 1, t, none, 64, &at));
    WRONG(MPI_Unpack_external("external32", packed, 64, &at, none, 1, t));
    WRONG(MPI_Unpack_external("external32", none, 64, &at, good, 1, t));
    SAME(position, 0);
    SAME(at, 0);
}

/* Each in its three forms: blocking, nonblocking, persistent. */
#define FORMS(name, small, ...)                                                             \
    do {                                                                                    \
        WRONG(MPI_##name(__VA_ARGS__, COMM));                                               \
        WRONG(MPI_I##small(__VA_ARGS__, COMM, &r));                                         \
        WRONG(MPI_##name##_init(__VA_ARGS__, COMM, MPI_INFO_NULL, &r));                     \
    } while (0)

/* `none` where it is wrong both as NULL and as MPI_IN_PLACE. */
static void collectives(void *none, MPI_Datatype t, MPI_Op op)
{
    int n[1] = {1}, at[1] = {0};
    MPI_Datatype types[1] = {t};
    FORMS(Bcast, bcast, none, 1, t, 0);
    FORMS(Gather, gather, good, 1, t, none, 1, t, 0);
    FORMS(Gatherv, gatherv, good, 1, t, none, n, at, t, 0);
    FORMS(Scatter, scatter, none, 1, t, good, 1, t, 0);
    FORMS(Scatterv, scatterv, none, n, at, t, good, 1, t, 0);
    FORMS(Allgather, allgather, good, 1, t, none, 1, t);
    FORMS(Allgatherv, allgatherv, good, 1, t, none, n, at, t);
    FORMS(Alltoall, alltoall, good, 1, t, none, 1, t);
    FORMS(Alltoallv, alltoallv, good, n, at, t, none, n, at, t);
    FORMS(Alltoallw, alltoallw, good, n, at, types, none, n, at, types);
    if (op == MPI_OP_NULL) return;
    FORMS(Reduce, reduce, good, none, 1, t, op, 0);
    FORMS(Allreduce, allreduce, good, none, 1, t, op);
    FORMS(Reduce_scatter, reduce_scatter, good, none, n, t, op);
    FORMS(Reduce_scatter_block, reduce_scatter_block, good, none, 1, t, op);
    FORMS(Scan, scan, good, none, 1, t, op);
    WRONG(MPI_Reduce_local(none, good, 1, t, op));
    WRONG(MPI_Reduce_local(good, none, 1, t, op));
}

/* Where MPI_IN_PLACE has a meaning, NULL has none. */
static void operands(MPI_Datatype t, MPI_Op op)
{
    int n[1] = {1}, at[1] = {0};
    MPI_Datatype types[1] = {t};
    FORMS(Gather, gather, NULL, 1, t, good, 1, t, 0);
    FORMS(Gatherv, gatherv, NULL, 1, t, good, n, at, t, 0);
    FORMS(Scatter, scatter, good, 1, t, NULL, 1, t, 0);
    FORMS(Scatterv, scatterv, good, n, at, t, NULL, 1, t, 0);
    FORMS(Allgather, allgather, NULL, 1, t, good, 1, t);
    FORMS(Allgatherv, allgatherv, NULL, 1, t, good, n, at, t);
    FORMS(Alltoall, alltoall, NULL, 1, t, good, 1, t);
    FORMS(Alltoallv, alltoallv, NULL, n, at, t, good, n, at, t);
    FORMS(Alltoallw, alltoallw, NULL, n, at, types, good, n, at, types);
    if (op == MPI_OP_NULL) return;
    FORMS(Reduce, reduce, NULL, good, 1, t, op, 0);
    FORMS(Allreduce, allreduce, NULL, good, 1, t, op);
    FORMS(Reduce_scatter, reduce_scatter, NULL, good, n, t, op);
    FORMS(Reduce_scatter_block, reduce_scatter_block, NULL, good, 1, t, op);
    FORMS(Scan, scan, NULL, good, 1, t, op);
    FORMS(Exscan, exscan, NULL, good, 1, t, op);
}

static void neighbours(void *none, MPI_Datatype t)
{
    int dims[1] = {1}, periods[1] = {1}, n[2] = {1, 1}, at[2] = {0, 1};
    MPI_Aint bytes[2] = {0, 32};
    MPI_Datatype types[2] = {t, t};
    MPI_Comm grid;
    OK(MPI_Cart_create(COMM, 1, dims, periods, 0, &grid));
    WRONG(MPI_Neighbor_allgather(none, 1, t, good, 1, t, grid));
    WRONG(MPI_Neighbor_allgather(good, 1, t, none, 1, t, grid));
    WRONG(MPI_Neighbor_allgatherv(good, 1, t, none, n, at, t, grid));
    WRONG(MPI_Neighbor_alltoall(none, 1, t, good, 1, t, grid));
    WRONG(MPI_Neighbor_alltoall(good, 1, t, none, 1, t, grid));
    WRONG(MPI_Neighbor_alltoallv(none, n, at, t, good, n, at, t, grid));
    WRONG(MPI_Neighbor_alltoallv(good, n, at, t, none, n, at, t, grid));
    WRONG(MPI_Neighbor_alltoallw(none, n, bytes, types, good, n, bytes, types, grid));
    WRONG(MPI_Neighbor_alltoallw(good, n, bytes, types, none, n, bytes, types, grid));
    WRONG(MPI_Ineighbor_allgather(none, 1, t, good, 1, t, grid, &r));
    WRONG(MPI_Ineighbor_alltoall(good, 1, t, none, 1, t, grid, &r));
    WRONG(MPI_Neighbor_alltoallw_init(good, n, bytes, types, none, n, bytes, types, grid, MPI_INFO_NULL, &r));
    OK(MPI_Comm_free(&grid));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    errors_return();
    MPI_Datatype derived, shifted;
    OK(MPI_Type_contiguous(2, MPI_INT, &derived));
    OK(MPI_Type_commit(&derived));
    int length = 1;
    MPI_Aint offset = 24;
    OK(MPI_Type_create_hindexed(1, &length, &offset, MPI_INT, &shifted));
    OK(MPI_Type_commit(&shifted));
    MPI_Datatype types[] = {MPI_INT, MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_SHORT_INT, derived, shifted};
    MPI_Op ops[] = {MPI_SUM, MPI_MINLOC, MPI_MAXLOC, MPI_MINLOC, MPI_OP_NULL, MPI_OP_NULL};
    void *none[] = {NULL, MPI_IN_PLACE};
    for (int i = 0; i < 6; i++) {
        for (int j = 0; j < 2; j++) {
            messages(none[j], types[i]);
            packing(none[j], types[i]);
            collectives(none[j], types[i], ops[i]);
            neighbours(none[j], types[i]);
        }
        operands(types[i], ops[i]);
    }
    WRONG(MPI_Buffer_attach(MPI_IN_PLACE, 100));

    /* Nothing is nowhere. */
    char none_packed[1];
    int position = 0, at[1] = {0}, no[1] = {0};
    OK(MPI_Pack(NULL, 0, MPI_FLOAT_INT, none_packed, 1, &position, COMM));
    OK(MPI_Sendrecv_replace(NULL, 0, MPI_FLOAT_INT, 0, 0, 0, 0, COMM, MPI_STATUS_IGNORE));
    OK(MPI_Bcast(NULL, 0, MPI_DOUBLE_INT, 0, COMM));
    OK(MPI_Alltoallv(NULL, no, at, MPI_SHORT_INT, NULL, no, at, MPI_SHORT_INT, COMM));

    /* A type with absolute addresses is at home at MPI_BOTTOM. */
    int from = 5, to = 0;
    MPI_Aint places[2];
    MPI_Datatype absolute[2];
    OK(MPI_Get_address(&from, &places[0]));
    OK(MPI_Get_address(&to, &places[1]));
    for (int i = 0; i < 2; i++) {
        OK(MPI_Type_create_hindexed(1, &length, &places[i], MPI_INT, &absolute[i]));
        OK(MPI_Type_commit(&absolute[i]));
    }
    OK(MPI_Sendrecv(MPI_BOTTOM, 1, absolute[0], 0, 0, MPI_BOTTOM, 1, absolute[1], 0, 0, COMM, MPI_STATUS_IGNORE));
    SAME(to, 5);
    from = 6;
    OK(MPI_Allgather(MPI_BOTTOM, 1, absolute[0], MPI_BOTTOM, 1, absolute[1], COMM));
    SAME(to, 6);
    from = 7;
    int n[1] = {1}, zero[1] = {0};
    OK(MPI_Alltoallw(MPI_BOTTOM, n, zero, &absolute[0], MPI_BOTTOM, n, zero, &absolute[1], COMM));
    SAME(to, 7);
    for (int i = 0; i < 2; i++) OK(MPI_Type_free(&absolute[i]));
    OK(MPI_Type_free(&derived));
    OK(MPI_Type_free(&shifted));
    MPI_Finalize();
    return verdict();
}
