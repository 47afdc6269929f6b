/* So many elements that their bytes cannot be counted are an error of class MPI_ERR_COUNT, whatever the function:
 * nothing wraps around to a small number of bytes.
 * RANKS: 1 2
 */
#include "check.h"

#define COMM MPI_COMM_WORLD

static int buf[4], other[4], size, rank;
static MPI_Request r;
static char packed[64];
static MPI_Count position;

static void messages(MPI_Count n)
{
    int peer = (rank + 1) % size;
    MPI_Status *no = MPI_STATUS_IGNORE;
    CLASS(MPI_Send_c(buf, n, MPI_INT, peer, 0, COMM), MPI_ERR_COUNT);
    CLASS(MPI_Bsend_c(buf, n, MPI_INT, peer, 0, COMM), MPI_ERR_COUNT);
    CLASS(MPI_Ssend_c(buf, n, MPI_INT, peer, 0, COMM), MPI_ERR_COUNT);
    CLASS(MPI_Rsend_c(buf, n, MPI_INT, peer, 0, COMM), MPI_ERR_COUNT);
    CLASS(MPI_Isend_c(buf, n, MPI_INT, peer, 0, COMM, &r), MPI_ERR_COUNT);
    CLASS(MPI_Ibsend_c(buf, n, MPI_INT, peer, 0, COMM, &r), MPI_ERR_COUNT);
    CLASS(MPI_Issend_c(buf, n, MPI_INT, peer, 0, COMM, &r), MPI_ERR_COUNT);
    CLASS(MPI_Irsend_c(buf, n, MPI_INT, peer, 0, COMM, &r), MPI_ERR_COUNT);
    CLASS(MPI_Send_init_c(buf, n, MPI_INT, peer, 0, COMM, &r), MPI_ERR_COUNT);
    CLASS(MPI_Bsend_init_c(buf, n, MPI_INT, peer, 0, COMM, &r), MPI_ERR_COUNT);
    CLASS(MPI_Ssend_init_c(buf, n, MPI_INT, peer, 0, COMM, &r), MPI_ERR_COUNT);
    CLASS(MPI_Rsend_init_c(buf, n, MPI_INT, peer, 0, COMM, &r), MPI_ERR_COUNT);
    CLASS(MPI_Recv_c(buf, n, MPI_INT, peer, 0, COMM, no), MPI_ERR_COUNT);
    CLASS(MPI_Irecv_c(buf, n, MPI_INT, peer, 0, COMM, &r), MPI_ERR_COUNT);
    CLASS(MPI_Recv_init_c(buf, n, MPI_INT, peer, 0, COMM, &r), MPI_ERR_COUNT);
    CLASS(MPI_Sendrecv_c(buf, n, MPI_INT, peer, 0, other, 1, MPI_INT, peer, 0, COMM, no), MPI_ERR_COUNT);
    CLASS(MPI_Sendrecv_c(buf, 1, MPI_INT, peer, 0, other, n, MPI_INT, peer, 0, COMM, no), MPI_ERR_COUNT);
    CLASS(MPI_Isendrecv_c(buf, n, MPI_INT, peer, 0, other, 1, MPI_INT, peer, 0, COMM, &r), MPI_ERR_COUNT);
    CLASS(MPI_Isendrecv_c(buf, 1, MPI_INT, peer, 0, other, n, MPI_INT, peer, 0, COMM, &r), MPI_ERR_COUNT);
    CLASS(MPI_Sendrecv_replace_c(buf, n, MPI_INT, peer, 0, peer, 0, COMM, no), MPI_ERR_COUNT);
    CLASS(MPI_Isendrecv_replace_c(buf, n, MPI_INT, peer, 0, peer, 0, COMM, &r), MPI_ERR_COUNT);
}

static void local(MPI_Count n)
{
    MPI_Count bytes;
    MPI_Datatype made;
    MPI_Count lengths[2] = {n, n}, at[2] = {0, 8};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    CLASS(MPI_Pack_c(buf, n, MPI_INT, packed, 64, &position, COMM), MPI_ERR_COUNT);
    CLASS(MPI_Unpack_c(packed, 64, &position, buf, n, MPI_INT, COMM), MPI_ERR_COUNT);
    CLASS(MPI_Pack_external_c("external32", buf, n, MPI_INT, packed, 64, &position), MPI_ERR_COUNT);
    CLASS(MPI_Unpack_external_c("external32", packed, 64, &position, buf, n, MPI_INT), MPI_ERR_COUNT);
    CLASS(MPI_Pack_size_c(n, MPI_INT, COMM, &bytes), MPI_ERR_COUNT);
    CLASS(MPI_Pack_external_size_c("external32", n, MPI_INT, &bytes), MPI_ERR_COUNT);
    CLASS(MPI_Reduce_local_c(buf, other, n, MPI_INT, MPI_SUM), MPI_ERR_COUNT);
    CLASS(MPI_Type_contiguous_c(n, MPI_INT, &made), MPI_ERR_COUNT);
    CLASS(MPI_Type_vector_c(n, 1, 1, MPI_INT, &made), MPI_ERR_COUNT);
    CLASS(MPI_Type_vector_c(1, n, 1, MPI_INT, &made), MPI_ERR_COUNT);
    CLASS(MPI_Type_vector_c(n, n, 1, MPI_INT, &made), MPI_ERR_COUNT);
    CLASS(MPI_Type_create_hvector_c(n, 1, 0, MPI_INT, &made), MPI_ERR_COUNT);
    CLASS(MPI_Type_indexed_c(2, lengths, at, MPI_INT, &made), MPI_ERR_COUNT);
    CLASS(MPI_Type_create_hindexed_c(2, lengths, at, MPI_INT, &made), MPI_ERR_COUNT);
    CLASS(MPI_Type_create_indexed_block_c(2, n, at, MPI_INT, &made), MPI_ERR_COUNT);
    CLASS(MPI_Type_create_hindexed_block_c(2, n, at, MPI_INT, &made), MPI_ERR_COUNT);
    CLASS(MPI_Type_create_struct_c(2, lengths, at, types, &made), MPI_ERR_COUNT);
    /* An array as long as this is none. */
    CLASS(MPI_Type_create_indexed_block_c(n, 1, at, MPI_INT, &made), MPI_ERR_COUNT);
}

/* Each in its three forms: blocking, nonblocking, persistent. */
#define FORMS(name, ...)                                                                    \
    do {                                                                                    \
        CLASS(MPI_##name##_c(__VA_ARGS__, COMM), MPI_ERR_COUNT);                            \
        CLASS(MPI_I##name##_c(__VA_ARGS__, COMM, &r), MPI_ERR_COUNT);                       \
        CLASS(MPI_##name##_init_c(__VA_ARGS__, COMM, MPI_INFO_NULL, &r), MPI_ERR_COUNT);    \
    } while (0)
#define MPI_IBcast_c MPI_Ibcast_c
#define MPI_IGather_c MPI_Igather_c
#define MPI_IGatherv_c MPI_Igatherv_c
#define MPI_IScatter_c MPI_Iscatter_c
#define MPI_IScatterv_c MPI_Iscatterv_c
#define MPI_IAllgather_c MPI_Iallgather_c
#define MPI_IAllgatherv_c MPI_Iallgatherv_c
#define MPI_IAlltoall_c MPI_Ialltoall_c
#define MPI_IAlltoallv_c MPI_Ialltoallv_c
#define MPI_IAlltoallw_c MPI_Ialltoallw_c
#define MPI_IReduce_c MPI_Ireduce_c
#define MPI_IAllreduce_c MPI_Iallreduce_c
#define MPI_IReduce_scatter_c MPI_Ireduce_scatter_c
#define MPI_IReduce_scatter_block_c MPI_Ireduce_scatter_block_c
#define MPI_IScan_c MPI_Iscan_c
#define MPI_IExscan_c MPI_Iexscan_c

static void collectives(MPI_Count n)
{
    MPI_Count counts[2] = {n, n};
    MPI_Aint at[2] = {0, 0};
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    FORMS(Bcast, buf, n, MPI_INT, 0);
    FORMS(Gather, buf, n, MPI_INT, other, n, MPI_INT, 0);
    FORMS(Gatherv, buf, n, MPI_INT, other, counts, at, MPI_INT, 0);
    FORMS(Scatter, buf, n, MPI_INT, other, n, MPI_INT, 0);
    FORMS(Scatterv, buf, counts, at, MPI_INT, other, n, MPI_INT, 0);
    FORMS(Allgather, buf, 1, MPI_INT, other, n, MPI_INT);
    FORMS(Allgather, buf, n, MPI_INT, other, 1, MPI_INT);
    FORMS(Allgatherv, buf, 1, MPI_INT, other, counts, at, MPI_INT);
    FORMS(Alltoall, buf, n, MPI_INT, other, 1, MPI_INT);
    FORMS(Alltoall, buf, 1, MPI_INT, other, n, MPI_INT);
    FORMS(Alltoallv, buf, counts, at, MPI_INT, other, counts, at, MPI_INT);
    FORMS(Alltoallw, buf, counts, at, types, other, counts, at, types);
    FORMS(Reduce, buf, other, n, MPI_INT, MPI_SUM, 0);
    FORMS(Allreduce, buf, other, n, MPI_INT, MPI_SUM);
    FORMS(Allreduce, MPI_IN_PLACE, other, n, MPI_INT, MPI_SUM);
    FORMS(Reduce_scatter, buf, other, counts, MPI_INT, MPI_SUM);
    FORMS(Reduce_scatter_block, buf, other, n, MPI_INT, MPI_SUM);
    FORMS(Scan, buf, other, n, MPI_INT, MPI_SUM);
    FORMS(Exscan, buf, other, n, MPI_INT, MPI_SUM);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(COMM, &rank);
    MPI_Comm_size(COMM, &size);
    errors_return();
    /* Of 4 bytes each: 2^63, 2^63 + 4, 0 and 4 modulo 2^64. */
    MPI_Count counts[] = {(MPI_Count)1 << 61, ((MPI_Count)1 << 61) + 1, (MPI_Count)1 << 62, ((MPI_Count)1 << 62) + 1};
    for (int i = 0; i < 4; i++) {
        messages(counts[i]);
        local(counts[i]);
        collectives(counts[i]);
    }
    /* What each sends can be counted, but not what all send. */
    MPI_Count part = ((MPI_Count)1 << 61) / size, blocks[2] = {part, part};
    MPI_Aint at[2] = {0, 0}, far[2] = {(MPI_Aint)1 << 61, (MPI_Aint)1 << 61};
    FORMS(Allgather, buf, 1, MPI_INT, other, part, MPI_INT);
    FORMS(Allgatherv, buf, 1, MPI_INT, other, blocks, at, MPI_INT);
    FORMS(Alltoall, buf, 1, MPI_INT, other, part, MPI_INT);
    FORMS(Reduce_scatter_block, buf, other, part, MPI_INT, MPI_SUM);
    blocks[0] = blocks[1] = 1;
    CLASS(MPI_Allgatherv_c(buf, 1, MPI_INT, other, blocks, far, MPI_INT, COMM), MPI_ERR_ARG);
    /* Little data may lie far apart, too. */
    MPI_Datatype sparse;
    OK(MPI_Type_create_resized_c(MPI_INT, 0, (MPI_Count)1 << 40, &sparse));
    OK(MPI_Type_commit(&sparse));
    CLASS(MPI_Send_c(buf, (MPI_Count)1 << 23, sparse, 0, 0, COMM), MPI_ERR_COUNT);
    CLASS(MPI_Bcast_c(buf, (MPI_Count)1 << 23, sparse, 0, COMM), MPI_ERR_COUNT);
    OK(MPI_Type_free(&sparse));
    /* All works on. */
    int one = 1, sum = 0;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, COMM));
    SAME(sum, size);
    MPI_Finalize();
    return verdict();
}
