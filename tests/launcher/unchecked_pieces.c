/* Collective calls whose lengths differ: mistakes of unchecked.c. */
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
