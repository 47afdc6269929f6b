/* Collective operations on no elements, or with nobody, without addresses: in every form.
 * RANKS: 1 2 4
 */
#include "check.h"

static const int zeros[4];
static MPI_Datatype types[4];
static MPI_Comm ring;

#define W MPI_COMM_WORLD
#define FORMS(call, icall, init)                          \
    do {                                                               \
        MPI_Request request;                                           \
        OK(call);                                                      \
        OK(icall);                                                     \
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));                     \
        OK(init);                                                      \
        for (int again = 0; again < 3; again++) {                      \
            OK(MPI_Start(&request));                                   \
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));                 \
        }                                                              \
        OK(MPI_Request_free(&request));                                \
    } while (0)
#define ALL(name, ...)                                                                  \
    FORMS(MPI_##name(__VA_ARGS__), MPI_I##name(__VA_ARGS__, &request), MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &request))
/* The nonblocking forms have another spelling. */
#define MPI_IBcast MPI_Ibcast
#define MPI_IGather MPI_Igather
#define MPI_IGatherv MPI_Igatherv
#define MPI_IScatter MPI_Iscatter
#define MPI_IScatterv MPI_Iscatterv
#define MPI_IAllgather MPI_Iallgather
#define MPI_IAllgatherv MPI_Iallgatherv
#define MPI_IAlltoall MPI_Ialltoall
#define MPI_IAlltoallv MPI_Ialltoallv
#define MPI_IAlltoallw MPI_Ialltoallw
#define MPI_IReduce MPI_Ireduce
#define MPI_IAllreduce MPI_Iallreduce
#define MPI_IReduce_scatter MPI_Ireduce_scatter
#define MPI_IReduce_scatter_block MPI_Ireduce_scatter_block
#define MPI_IScan MPI_Iscan
#define MPI_IExscan MPI_Iexscan
#define MPI_INeighbor_allgather MPI_Ineighbor_allgather
#define MPI_INeighbor_allgatherv MPI_Ineighbor_allgatherv
#define MPI_INeighbor_alltoall MPI_Ineighbor_alltoall

static void with(MPI_Datatype type, MPI_Datatype of_operands)
{
    for (int i = 0; i < 4; i++) types[i] = type;
    for (int root = 0, size; MPI_Comm_size(W, &size), root < size; root++) {
        ALL(Bcast, NULL, 0, type, root, W);
        ALL(Gather, NULL, 0, type, NULL, 0, type, root, W);
        ALL(Gatherv, NULL, 0, type, NULL, zeros, zeros, type, root, W);
        ALL(Scatter, NULL, 0, type, NULL, 0, type, root, W);
        ALL(Scatterv, NULL, zeros, zeros, type, NULL, 0, type, root, W);
        ALL(Reduce, NULL, NULL, 0, of_operands, MPI_SUM, root, W);
    }
    ALL(Allgather, NULL, 0, type, NULL, 0, type, W);
    ALL(Allgatherv, NULL, 0, type, NULL, zeros, zeros, type, W);
    ALL(Alltoall, NULL, 0, type, NULL, 0, type, W);
    ALL(Alltoallv, NULL, zeros, zeros, type, NULL, zeros, zeros, type, W);
    ALL(Alltoallw, NULL, zeros, zeros, types, NULL, zeros, zeros, types, W);
    ALL(Allreduce, NULL, NULL, 0, of_operands, MPI_SUM, W);
    ALL(Reduce_scatter, NULL, NULL, zeros, of_operands, MPI_SUM, W);
    ALL(Reduce_scatter_block, NULL, NULL, 0, of_operands, MPI_SUM, W);
    ALL(Scan, NULL, NULL, 0, of_operands, MPI_SUM, W);
    ALL(Exscan, NULL, NULL, 0, of_operands, MPI_SUM, W);
    ALL(Neighbor_allgather, NULL, 0, type, NULL, 0, type, ring);
    ALL(Neighbor_alltoall, NULL, 0, type, NULL, 0, type, ring);
}

/* A rank that has no neighbours on a side passes no buffer there, whatever its count:
 * rank 0 sends to all others, who send to nobody. */
static void without_neighbours(void)
{
    MPI_Comm alone, tree;
    MPI_Request request;
    int rank, size, root = 0, others[4], mine[4], got, one = 1, place = 0;
    OK(MPI_Dist_graph_create_adjacent(W, 0, NULL, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &alone));
    OK(MPI_Comm_set_errhandler(alone, MPI_ERRORS_RETURN));
    ALL(Neighbor_allgather, NULL, 1, MPI_INT, NULL, 1, MPI_INT, alone);
    ALL(Neighbor_allgatherv, NULL, 1, MPI_INT, NULL, NULL, NULL, MPI_INT, alone);
    ALL(Neighbor_alltoall, NULL, 1, MPI_INT, NULL, 1, MPI_INT, alone);
    CLASS(MPI_Neighbor_alltoall(NULL, -1, MPI_INT, NULL, 1, MPI_INT, alone), MPI_ERR_COUNT);
    CLASS(MPI_Neighbor_allgather(NULL, 1, MPI_DATATYPE_NULL, NULL, 1, MPI_INT, alone), MPI_ERR_TYPE);
    OK(MPI_Comm_free(&alone));

    OK(MPI_Comm_rank(W, &rank));
    OK(MPI_Comm_size(W, &size));
    for (int i = 1; i < size; i++) others[i - 1] = i;
    for (int i = 0; i < 4; i++) mine[i] = 10 + i;
    int sources = rank > 0, destinations = rank > 0 ? 0 : size - 1;
    OK(MPI_Dist_graph_create_adjacent(W, sources, &root, MPI_UNWEIGHTED, destinations, others, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                      &tree));
    OK(MPI_Comm_set_errhandler(tree, MPI_ERRORS_RETURN));
    int *send = rank > 0 ? NULL : mine, *receive = rank > 0 ? &got : NULL;
    for (int form = 0; form < 5; form++) {
        got = 7;
        switch (form) {
            case 0: OK(MPI_Neighbor_allgather(send, 1, MPI_INT, receive, 1, MPI_INT, tree)); break;
            case 1: OK(MPI_Neighbor_allgatherv(send, 1, MPI_INT, receive, &one, &place, MPI_INT, tree)); break;
            case 2: OK(MPI_Neighbor_alltoall(send, 1, MPI_INT, receive, 1, MPI_INT, tree)); break;
            case 3:
                OK(MPI_Ineighbor_allgather(send, 1, MPI_INT, receive, 1, MPI_INT, tree, &request));
                OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
                break;
            default:
                OK(MPI_Neighbor_alltoall_init(send, 1, MPI_INT, receive, 1, MPI_INT, tree, MPI_INFO_NULL, &request));
                OK(MPI_Start(&request));
                OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
                OK(MPI_Request_free(&request));
        }
        SAME(got, rank == 0 ? 7 : form == 2 || form == 4 ? 9 + rank : 10);
    }
    OK(MPI_Comm_free(&tree));
}

int main(void)
{
    int size, periodic = 1;
    MPI_Datatype gaps, nothing;
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_size(W, &size));
    OK(MPI_Cart_create(W, 1, &size, &periodic, 0, &ring));
    OK(MPI_Type_vector(2, 1, 3, MPI_INT, &gaps));
    OK(MPI_Type_commit(&gaps));
    OK(MPI_Type_contiguous(0, MPI_INT, &nothing));
    OK(MPI_Type_commit(&nothing));
    with(MPI_INT, MPI_INT);
    with(gaps, MPI_DOUBLE);
    with(nothing, MPI_SHORT);
    without_neighbours();
    OK(MPI_Type_free(&gaps));
    OK(MPI_Type_free(&nothing));
    OK(MPI_Comm_free(&ring));
    OK(MPI_Finalize());
    return verdict();
}
