/* Collective calls whose lengths or types differ: mistakes of unchecked.c. */
#include "unchecked.h"

void long_lengths_differ(void) {
    static int value[100000];
    MPI_Request request;
    MPI_Ibcast(value, 100000 - rank, MPI_INT, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void counts_differ(void) {
    int send[4] = {0}, recv[4], counts[2] = {2, 2}, more[2] = {1, 1}, displs[2] = {0, 2};
    MPI_Alltoallv(send, rank ? more : counts, displs, MPI_INT, recv, counts, displs, MPI_INT, MPI_COMM_WORLD);
}

void lists_differ(void) {
    enum { MANY = 10 };
    int own[MANY] = {0}, all[MANY], counts[MANY], displs[MANY];
    for (int i = 0; i < size; i++) counts[i] = i == 0 || rank == 0 ? 1 : 2, displs[i] = 2 * i;
    MPI_Allgatherv(own, counts[rank], MPI_INT, all, counts, displs, MPI_INT, MPI_COMM_WORLD);
}

void scattered_lists_differ(void) {
    int own[4] = {0}, sums[4], counts[2] = {2 - rank, 2 + rank};
    MPI_Reduce_scatter(own, sums, counts, MPI_INT, MPI_SUM, halo);
}

/* One call of each function, in which rank 1 sends rank 0 another type. */
void types_of_pieces_differ(void) {
    static int send[4], all[4];
    int ones[2] = {1, 1}, zeros[2] = {0, 0}, displs[2] = {0, 1}, bytes[2] = {0, 4}, sources[2] = {0, 1};
    MPI_Datatype other = rank ? MPI_FLOAT : MPI_INT, types[2] = {other, MPI_INT}, wanted[2] = {MPI_INT, MPI_INT};
    MPI_Request request;
    MPI_Comm ring;
    MPI_Gatherv(send, 1, other, all, ones, displs, MPI_INT, 0, halo);
    MPI_Scatterv(send, ones, displs, MPI_INT, all, 1, other, 0, halo);
    MPI_Allgatherv(send, 1, MPI_INT, all, ones, displs, other, halo);
    MPI_Alltoallv(send, ones, displs, other, all, ones, displs, MPI_INT, halo);
    MPI_Ialltoallw(send, ones, bytes, types, all, ones, bytes, wanted, halo, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Alltoall(send, 1, other, all, 1, MPI_INT, halo);
    MPI_Gather(send, 1, MPI_INT, all, 1, rank ? MPI_INT : MPI_FLOAT, 0, halo);
    MPI_Dist_graph_create_adjacent(halo, 2, sources, MPI_UNWEIGHTED, 2, sources, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
    MPI_Comm_set_name(ring, "graph");
    MPI_Neighbor_alltoallv(send, ones, zeros, other, all, ones, displs, MPI_INT, ring);
    MPI_Comm_free(&ring);
}

/* Types that differ and fit: other splits of counts and types, structures and their parts, bytes, nothing. */
void types_of_pieces_fit(void) {
    static int send[640], all[640];
    int ones[64], tens[64], displs[64], bytes[64], none[64];
    MPI_Datatype ten, gap, types[64], wanted[64], pair = pair_of(MPI_INT, MPI_FLOAT), other = pair_of(MPI_INT, MPI_FLOAT);
    MPI_Type_contiguous(10, MPI_INT, &ten);
    MPI_Type_commit(&ten);
    MPI_Type_vector(5, 1, 1, MPI_2INT, &gap);
    MPI_Type_commit(&gap);
    for (int i = 0; i < size; i++) {
        ones[i] = 1, tens[i] = 10, displs[i] = 10 * i, bytes[i] = 40 * i, none[i] = 0;
        types[i] = i % 2 ? ten : gap, wanted[i] = rank % 2 ? gap : ten;
    }
    MPI_Gatherv(send, 1, ten, all, tens, displs, MPI_INT, 0, halo);
    MPI_Scatterv(all, tens, displs, MPI_INT, send, 1, rank % 2 ? ten : gap, 0, halo);
    MPI_Allgatherv(send, rank % 2 ? 1 : 10, rank % 2 ? ten : MPI_INT, all, tens, displs, rank % 2 ? MPI_INT : MPI_UNSIGNED, halo);
    MPI_Alltoallw(send, ones, bytes, types, all, ones, bytes, wanted, halo);
    MPI_Alltoallv(send, none, displs, MPI_DOUBLE, all, none, displs, MPI_INT, halo);
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_INT, all, tens, displs, MPI_INT, halo);
    MPI_Alltoall(send, 4, MPI_BYTE, all, 4, MPI_BYTE, halo);
    MPI_Alltoall(send, 4, rank % 2 ? MPI_BYTE : MPI_PACKED, all, 1, MPI_INT, halo);
    MPI_Bcast(send, 1, rank % 2 ? pair : other, 0, halo);
    MPI_Type_free(&ten);
    MPI_Type_free(&gap);
    MPI_Type_free(&pair);
    MPI_Type_free(&other);
}

void mixtures_differ(void) {
    double data[4] = {0};
    MPI_Datatype pair = pair_of(rank ? MPI_INT : MPI_FLOAT, MPI_DOUBLE);
    MPI_Bcast(data, 2, pair, 0, halo);
    MPI_Type_free(&pair);
}

/* The pieces of a neighbour that a grid does not have are neither sent nor received: they may lie anywhere. */
void edges_of_grids_fit(void) {
    int ones[2] = {1, 1}, places[2] = {0, 1}, anywhere[2] = {0, 1}, nobody[4] = {0}, periodic = 0, below, above, send[2] = {0}, got[2];
    MPI_Comm line;
    MPI_Request request;
    MPI_Cart_create(halo, 1, &size, &periodic, 0, &line);
    MPI_Cart_shift(line, 0, 1, &below, &above);
    if (below == MPI_PROC_NULL) anywhere[0] = 1;
    if (above == MPI_PROC_NULL) anywhere[1] = 0;
    MPI_Neighbor_alltoallv(send, ones, places, MPI_INT, got, ones, anywhere, MPI_INT, line);
    MPI_Ineighbor_allgatherv(send, 1, MPI_INT, got, ones, anywhere, MPI_INT, line, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (size == 1) MPI_Neighbor_alltoall(nobody, 1, MPI_INT, nobody + 1, 1, MPI_INT, line);
    MPI_Comm_free(&line);
}
