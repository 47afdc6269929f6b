/* Collective operations that not all members call, or call differently. */
#include "mistakes.h"

/* As many collective calls as `number` says, of each kind that has a path of its own. */
static void rounds(MPI_Comm comm, int number)
{
    enum { MORE = 5000 };
    static int all[16 * MORE], own[MORE], sums[MORE];
    for (int i = 0; i < number; i++) {
        int many = i % 3 == 0 ? 1 : i % 3 == 1 ? 500 : MORE;
        switch (i % 4) {
        case 0: MPI_Barrier(comm); break;
        case 1: MPI_Allreduce(own, sums, many, MPI_INT, MPI_SUM, comm); break;
        case 2: MPI_Gather(own, many, MPI_INT, all, many, MPI_INT, 0, comm); break;
        default: MPI_Allgather(own, many, MPI_INT, all, many, MPI_INT, comm); break;
        }
    }
}

static void missing_in_barrier(void)
{
    if (rank != 2) MPI_Barrier(world);
    else receive(0, 3, world);
}

static void different_collectives(void)
{
    if (rank == 0) MPI_Barrier(world);
    else MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, world);
}

static void two_communicators(void)
{
    MPI_Comm a = named_dup("a"), b = named_dup("b");
    MPI_Barrier(a);
    MPI_Barrier(b);
    MPI_Barrier(rank == 0 ? a : b);
    MPI_Barrier(rank == 0 ? b : a);
}

static void early_finalize(void)
{
    if (rank != 1) MPI_Barrier(world);
}

static void bcast_of_the_root_alone(void)
{
    if (rank == 0) MPI_Bcast(&value, 1, MPI_INT, 0, world);
    MPI_Barrier(world);
    if (rank == 0) MPI_Barrier(world);
}

static void bcast_as_receive(void)
{
    if (rank == 0) MPI_Bcast(&value, 1, MPI_INT, 0, world);
    else receive(0, 0, world);
    MPI_Barrier(world);
}

static void bcast_to_receives(void)
{
    /* The root goes on to MPI_Finalize. */
    if (rank == 0) MPI_Bcast(&value, 1, MPI_INT, 0, world);
    else receive(0, 0, world);
}

static void waitany_collectives(void)
{
    /* Nothing of the first, and the second begun by rank 0 alone. */
    MPI_Request requests[2];
    MPI_Comm halo = named_dup("halo");
    int index, sum;
    if (rank == 0) {
        MPI_Ibarrier(halo, &requests[0]);
        MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, world, &requests[1]);
        MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    } else {
        receive(0, 3, halo);
    }
}

static void allreduce_counts(void)
{
    /* Rank 0 gives few elements, the others many: they do not meet. */
    static int many[1 << 20], sums[1 << 20];
    for (int i = 0; i < 3; i++) MPI_Barrier(world);
    MPI_Allreduce(many, sums, rank == 0 ? 1 : 1 << 20, MPI_INT, MPI_SUM, world);
}

static void short_operations(void)
{
    /* All on the fast path. */
    MPI_Comm halo = named_dup("halo");
    float real = 1, most;
    int sum;
    rounds(halo, 8);
    if (rank == 0) MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, halo);
    else if (rank == 1) MPI_Allreduce(&real, &most, 1, MPI_FLOAT, MPI_MAX, halo);
    else receive(0, 3, halo);
}

static void short_types(void)
{
    MPI_Comm halo = named_dup("halo");
    char twelve[12];
    int three[3];
    rounds(halo, 8);
    if (rank == 0) receive(1, 3, halo);
    else if (rank == 1) MPI_Bcast(three, 3, MPI_INT, 0, halo);
    else MPI_Bcast(twelve, 12, MPI_CHAR, 0, halo);
}

static void nonblocking_collective(void)
{
    MPI_Request request;
    if (rank == 0) {
        MPI_Ibarrier(world, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        receive(0, 1, world);
    }
}

static void nonblocking_missing(void)
{
    /* The third barrier: rank 1 begins it and waits for a message, rank 2 never begins it. */
    MPI_Request requests[2];
    MPI_Comm halo = named_dup("halo");
    rounds(halo, 5);
    MPI_Ibarrier(halo, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    if (rank == 2) receive(0, 3, halo);
    MPI_Ibarrier(halo, &requests[0]);
    if (rank == 1) receive(2, 3, halo);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

static void nonblocking_different(void)
{
    /* By messages, as below. */
    MPI_Request request;
    int all[2];
    if (rank == 0) MPI_Ibcast(&value, 1, MPI_INT, 1, world, &request);
    else MPI_Igather(&value, 1, MPI_INT, all, 1, MPI_INT, 1, world, &request);
    MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
}

static void nonblocking_roots(void)
{
    MPI_Request request;
    double many[16] = {0};
    MPI_Ibcast(many, 16, MPI_DOUBLE, 1 - rank, world, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void nonblocking_and_blocking(void)
{
    int index;
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0) MPI_Ibarrier(world, &request);
    else MPI_Barrier(world);
    MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE);
}

static void persistent_missing(void)
{
    MPI_Request request;
    MPI_Bcast_init(&value, 1, MPI_INT, 0, world, MPI_INFO_NULL, &request);
    for (int i = 0; i < 3; i++) {
        if (i == 2 && rank == 0) receive(1, 3, world);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
}

static void neighbours_differ(void)
{
    /* Rank 0 has rank 1 as a source; rank 1 sends to nobody. */
    MPI_Comm graph;
    int one = 1;
    MPI_Dist_graph_create_adjacent(world, rank == 0, &one, MPI_UNWEIGHTED, 0, &one, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    MPI_Comm_set_name(graph, "graph");
    MPI_Neighbor_alltoall(&value, 1, MPI_INT, &one, 1, MPI_INT, graph);
    MPI_Barrier(world);
}

static void neighbour_missing(void)
{
    MPI_Comm ring;
    int periodic = 1, both[2];
    MPI_Cart_create(world, 1, &size, &periodic, 0, &ring);
    MPI_Comm_set_name(ring, "ring");
    if (rank == 1) receive(0, 3, ring);
    MPI_Neighbor_allgather(&value, 1, MPI_INT, both, 1, MPI_INT, ring);
}

static void ibarrier_and_receive(void)
{
    /* What rank 0 waits for comes behind the barrier, which rank 0 has not begun. */
    MPI_Request request;
    if (rank == 0) receive(1, 3, world);
    MPI_Ibarrier(world, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 1) send(0, 3, world);
}

static void ibarrier_and_finalize(void)
{
    MPI_Request request;
    if (rank == 1) {
        MPI_Ibarrier(world, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void bcast_roots(void)
{
    /* Both send, and the elements are many. Members that share memory would notice; messages do not. */
    static int large[1 << 20];
    MPI_Comm halo = named_dup("halo");
    rounds(halo, 5);
    MPI_Bcast(large, 1 << 20, MPI_INT, rank, halo);
}

static void gather_roots(void)
{
    /* Rank 1 sends its part to one of the roots, and goes on to another call. */
    int all[3], counts[] = {1, 1, 1}, places[] = {0, 1, 2};
    MPI_Comm halo = named_dup("halo");
    rounds(halo, 5);
    MPI_Gatherv(&value, 1, MPI_INT, all, counts, places, MPI_INT, rank == 2 ? 2 : 0, halo);
    MPI_Barrier(halo);
}

static void bcast_missing(void)
{
    MPI_Comm halo = named_dup("halo");
    rounds(halo, 16);
    if (rank == 1) receive(0, 3, halo);
    MPI_Bcast(&value, 1, MPI_INT, 1, halo);
}

static void reduce_missing(void)
{
    MPI_Comm halo = named_dup("halo");
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
    MPI_Type_commit(&pair);
    double pairs[8] = {0};
    rounds(halo, 3);
    MPI_Bcast(pairs, 4, pair, 0, halo);
    if (rank == 0) receive(1, 3, halo);
    static double many[20000], sums[20000];
    MPI_Reduce(many, sums, 20000, MPI_DOUBLE, MPI_MAX, 0, halo);
}

static void gather_and_receive(void)
{
    int parts[8];
    if (rank == 1) MPI_Recv(parts, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, world, MPI_STATUS_IGNORE);
    MPI_Gather(&rank, 1, MPI_INT, parts, 1, MPI_INT, 0, world);
}

static void gather_without_two(void)
{
    int parts[8];
    if (rank == 1 || rank == 2) MPI_Recv(parts, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, world, MPI_STATUS_IGNORE);
    MPI_Gather(&rank, 1, MPI_INT, parts, 1, MPI_INT, 0, world);
}

static void bcast_of_another_root(void)
{
    /* Rank 1 waits for rank 2, which has its data of rank 0. */
    MPI_Bcast(&value, 1, MPI_INT, rank == 1 ? 2 : 0, world);
}

static void two_communicators_of_one_name(void)
{
    MPI_Comm one = named_dup("halo"), other = named_dup("halo");
    MPI_Barrier(rank ? other : one);
}

static void bcast_as_receive_from_any(void)
{
    if (rank == 0) MPI_Bcast(&value, 1, MPI_INT, 0, world);
    else MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, world, MPI_STATUS_IGNORE);
}

/* Each rank receives from the one that it sends to. */
static void neighbours_turned_round(void)
{
    MPI_Comm graph;
    int values[1];
    MPI_Dist_graph_create_adjacent(world, 1, &next, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    MPI_Comm_set_name(graph, "graph");
    MPI_Neighbor_allgather(&value, 1, MPI_INT, values, 1, MPI_INT, graph);
}

const struct mistake mistakes_collectives[] = {
    {"bcast-as-receive-from-any", bcast_as_receive_from_any},
    {"neighbours-turned-round", neighbours_turned_round},
    {"two-communicators-of-one-name", two_communicators_of_one_name},
    {"bcast-of-another-root", bcast_of_another_root},
    {"missing-in-barrier", missing_in_barrier},
    {"different-collectives", different_collectives},
    {"two-communicators", two_communicators},
    {"early-finalize", early_finalize},
    {"bcast-of-the-root-alone", bcast_of_the_root_alone},
    {"bcast-as-receive", bcast_as_receive},
    {"bcast-to-receives", bcast_to_receives},
    {"waitany-collectives", waitany_collectives},
    {"allreduce-counts", allreduce_counts},
    {"short-operations", short_operations},
    {"short-types", short_types},
    {"nonblocking-collective", nonblocking_collective},
    {"nonblocking-missing", nonblocking_missing},
    {"nonblocking-different", nonblocking_different},
    {"nonblocking-roots", nonblocking_roots},
    {"nonblocking-and-blocking", nonblocking_and_blocking},
    {"persistent-missing", persistent_missing},
    {"neighbours-differ", neighbours_differ},
    {"neighbour-missing", neighbour_missing},
    {"ibarrier-and-receive", ibarrier_and_receive},
    {"ibarrier-and-finalize", ibarrier_and_finalize},
    {"bcast-roots", bcast_roots},
    {"gather-roots", gather_roots},
    {"bcast-missing", bcast_missing},
    {"reduce-missing", reduce_missing},
    {"gather-and-receive", gather_and_receive},
    {"gather-without-two", gather_without_two},
    {NULL, NULL},
};
