/* Where there is no memory for a temporary copy of the data the call fails with MPI_ERR_NO_MEM,
 * before it sends anything: the job goes on.
 * RANKS: 1 2
 * ENV: PERUSAL_COLL_ALLGATHER=linear
 */
#include "check.h"

#define COMM MPI_COMM_WORLD

static void keep(void *in, void *inout, int *n, MPI_Datatype *type) { (void)in; (void)inout; (void)n; (void)type; }

static void ends_with(MPI_Request *r, int expected)
{
    CLASS(MPI_Wait(r, MPI_STATUS_IGNORE), expected);
    CHECK(*r == MPI_REQUEST_NULL);
}

int main(int argc, char **argv)
{
    int rank, size, buf[4] = {1, 2, 3, 4}, other[4] = {0};
    MPI_Request r;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(COMM, &rank);
    MPI_Comm_size(COMM, &size);
    errors_return();
    int peer = (rank + 1) % size;
    /* All elements lie at one place, so that little memory holds more of them than a copy has room for. */
    const MPI_Count many = (MPI_Count)1 << 50;
    MPI_Datatype pile;
    OK(MPI_Type_create_resized(MPI_INT, 0, 0, &pile));
    OK(MPI_Type_commit(&pile));
    MPI_Op op;
    OK(MPI_Op_create(keep, 1, &op));

    CLASS(MPI_Sendrecv_replace_c(buf, many, pile, peer, 0, peer, 0, COMM, MPI_STATUS_IGNORE), MPI_ERR_NO_MEM);
    CLASS(MPI_Isendrecv_replace_c(buf, many, pile, peer, 0, peer, 0, COMM, &r), MPI_ERR_NO_MEM);
    /* A rank that is alone needs no copy of what is there already. */
    int unless_alone = size > 1 ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    CLASS(MPI_Bcast_c(buf, many, pile, 0, COMM), unless_alone);
    CLASS(MPI_Gather_c(buf, many, pile, other, many, pile, 0, COMM), MPI_ERR_NO_MEM);
    CLASS(MPI_Allgather_c(buf, many, pile, other, many, pile, COMM), MPI_ERR_NO_MEM);
    CLASS(MPI_Reduce_c(buf, other, many, pile, op, 0, COMM), MPI_ERR_NO_MEM);
    CLASS(MPI_Allreduce_c(buf, other, many, pile, op, COMM), MPI_ERR_NO_MEM);
    CLASS(MPI_Reduce_scatter_block_c(buf, other, many, pile, op, COMM), MPI_ERR_NO_MEM);
    CLASS(MPI_Scan_c(buf, other, many, pile, op, COMM), MPI_ERR_NO_MEM);
    CLASS(MPI_Exscan_c(buf, other, many, pile, op, COMM), unless_alone);
    CLASS(MPI_Allgather_c(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, other, many, pile, COMM), unless_alone);
    CLASS(MPI_Reduce_c(rank == 0 ? MPI_IN_PLACE : buf, other, many, pile, op, 0, COMM), unless_alone);
    CLASS(MPI_Allreduce_c(MPI_IN_PLACE, other, many, pile, op, COMM), unless_alone);
    CLASS(MPI_Reduce_scatter_block_c(MPI_IN_PLACE, other, many, pile, op, COMM), unless_alone);
    CLASS(MPI_Scan_c(MPI_IN_PLACE, other, many, pile, op, COMM), unless_alone);
    OK(MPI_Ibcast_c(buf, many, pile, 0, COMM, &r));
    ends_with(&r, unless_alone);
    OK(MPI_Iallreduce_c(buf, other, many, pile, op, COMM, &r));
    ends_with(&r, MPI_ERR_NO_MEM);
    OK(MPI_Iallgather_c(buf, many, pile, other, many, pile, COMM, &r));
    ends_with(&r, MPI_ERR_NO_MEM);

    /* A message in an automatic buffer. */
    OK(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
    CLASS(MPI_Bsend_c(buf, many, pile, peer, 0, COMM), MPI_ERR_NO_MEM);
    void *at;
    int bytes;
    OK(MPI_Buffer_detach(&at, &bytes));

    /* Arrays of which there is no copy. */
    MPI_Datatype made;
    MPI_Count place = 0;
    CLASS(MPI_Type_create_indexed_block_c(many, 1, &place, MPI_INT, &made), MPI_ERR_NO_MEM);
    CLASS(MPI_Type_create_hindexed_c(many, &place, &place, MPI_INT, &made), MPI_ERR_NO_MEM);

    OK(MPI_Op_free(&op));
    OK(MPI_Type_free(&pile));
    /* All works on. */
    int sum = 0;
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, COMM));
    SAME(sum, size * (size - 1) / 2);
    OK(MPI_Sendrecv_replace(&rank, 1, MPI_INT, peer, 0, peer, 0, COMM, MPI_STATUS_IGNORE));
    SAME(rank, peer);
    MPI_Finalize();
    return verdict();
}
