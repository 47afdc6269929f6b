/* Collectives that move data, against arithmetic: every root, dense and strided, in place, zero counts,
 * both widths of counts.
 * RANKS: 1 2 3 4 5
 */
#include "check.h"
#include <stdlib.h>

static int rank, size;

/* What rank r has at place i. */
static int value(int r, int i) { return 1000 * r + i; }

static int *ints(int n) {
    int *data = malloc(sizeof(int) * (n + 1));
    for (int i = 0; i <= n; i++) data[i] = -1;
    return data;
}

static int *own(int n) {
    int *data = ints(n);
    for (int i = 0; i < n; i++) data[i] = value(rank, i);
    return data;
}

static void bcast(int count, int root) {
    int *data = rank == root ? own(count) : ints(count);
    OK(MPI_Bcast(data, count, MPI_INT, root, MPI_COMM_WORLD));
    for (int i = 0; i < count; i++) SAME(data[i], value(root, i));
    SAME(data[count], -1);
    free(data);
    long long wide = rank == root ? 1LL << 40 : 0;
    OK(MPI_Bcast_c(&wide, 1, MPI_LONG_LONG, root, MPI_COMM_WORLD));
    SAME(wide >> 40, 1);
}

static void gather_and_scatter(int root) {
    MPI_Datatype strided; /* an int in every second place */
    OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &strided));
    OK(MPI_Type_commit(&strided));
    int *send = own(2), *all = ints(4 * size), *back = ints(2);
    OK(MPI_Gather(send, 2, MPI_INT, all, 2, strided, root, MPI_COMM_WORLD));
    if (rank == root)
        for (int i = 0; i < 4 * size; i++) SAME(all[i], i % 2 ? -1 : value(i / 4, i % 4 / 2));
    OK(MPI_Scatter(all, 2, strided, back, 2, MPI_INT, root, MPI_COMM_WORLD));
    SAME(back[0], value(rank, 0));
    SAME(back[1], value(rank, 1));

    /* In place at the root, and with MPI_Count. */
    int *dense = ints(2 * size);
    if (rank == root) dense[2 * root] = value(root, 0), dense[2 * root + 1] = value(root, 1);
    OK(MPI_Gather_c(rank == root ? MPI_IN_PLACE : send, 2, MPI_INT, dense, 2, MPI_INT, root, MPI_COMM_WORLD));
    if (rank == root)
        for (int i = 0; i < 2 * size; i++) SAME(dense[i], value(i / 2, i % 2));
    back[0] = back[1] = -1;
    OK(MPI_Scatter_c(dense, 2, MPI_INT, rank == root ? MPI_IN_PLACE : back, 2, MPI_INT, root, MPI_COMM_WORLD));
    if (rank != root) SAME(back[1], value(rank, 1));
    if (rank == root) SAME(dense[2 * root + 1], value(root, 1));
    free(send), free(all), free(back), free(dense);
    OK(MPI_Type_free(&strided));
}

/* Rank r has r elements; their places are in descending order of ranks, one apart. */
static void with_different_counts(int root) {
    int *counts = ints(size), *displs = ints(size), total = 0;
    MPI_Count *wide = malloc(sizeof *wide * size);
    MPI_Aint *places = malloc(sizeof *places * size);
    for (int r = size - 1; r >= 0; r--) {
        wide[r] = counts[r] = r;
        places[r] = displs[r] = total;
        total += r + 1;
    }
    int *send = own(rank), *all = ints(total), *back = ints(rank);
    OK(MPI_Gatherv(send, rank, MPI_INT, all, counts, displs, MPI_INT, root, MPI_COMM_WORLD));
    for (int r = 0; rank == root && r < size; r++) {
        for (int i = 0; i < r; i++) SAME(all[displs[r] + i], value(r, i));
        SAME(all[displs[r] + r], -1);
    }
    OK(MPI_Scatterv_c(all, wide, places, MPI_INT, back, rank, MPI_INT, root, MPI_COMM_WORLD));
    for (int i = 0; i < rank; i++) SAME(back[i], value(rank, i));
    SAME(back[rank], -1);
    for (int i = 0; i < total; i++) all[i] = -1;
    OK(MPI_Allgatherv(send, rank, MPI_INT, all, counts, displs, MPI_INT, MPI_COMM_WORLD));
    OK(MPI_Allgatherv_c(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, wide, places, MPI_INT, MPI_COMM_WORLD));
    for (int r = 0; r < size; r++) {
        for (int i = 0; i < r; i++) SAME(all[displs[r] + i], value(r, i));
        SAME(all[displs[r] + r], -1);
    }
    free(counts), free(displs), free(wide), free(places), free(send), free(all), free(back);
}

static void allgather(int count) {
    int *send = own(count), *all = ints(count * size);
    OK(MPI_Allgather(send, count, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD));
    OK(MPI_Allgather_c(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, count, MPI_INT, MPI_COMM_WORLD));
    for (int i = 0; i < count * size; i++) SAME(all[i], value(i / count, i % count));
    SAME(all[count * size], -1);
    free(send), free(all);
}

/* Rank r sends s ints to rank s; the w form as one int and a pair of shorts each, which are as long. */
static void alltoall(void) {
    int *send = ints(size), *recv = ints(size);
    for (int s = 0; s < size; s++) send[s] = value(rank, s);
    OK(MPI_Alltoall(send, 1, MPI_INT, recv, 1, MPI_INT, MPI_COMM_WORLD));
    for (int r = 0; r < size; r++) SAME(recv[r], value(r, rank));
    OK(MPI_Alltoall_c(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, recv, 1, MPI_INT, MPI_COMM_WORLD));
    for (int r = 0; r < size; r++) SAME(recv[r], value(rank, r));

    int *counts = ints(size), *displs = ints(size), *got = ints(size), *at = ints(size), *bytes = ints(size);
    MPI_Datatype *types = malloc(sizeof *types * size);
    int total = 0, room = 0;
    for (int s = 0; s < size; s++) {
        counts[s] = s, displs[s] = total, total += s;
        got[s] = rank, at[s] = room, room += rank;
    }
    int *out = ints(total), *in = ints(room);
    for (int s = 0; s < size; s++)
        for (int i = 0; i < s; i++) out[displs[s] + i] = value(rank, 10 * s + i);
    OK(MPI_Alltoallv(out, counts, displs, MPI_INT, in, got, at, MPI_INT, MPI_COMM_WORLD));
    for (int r = 0; r < size; r++)
        for (int i = 0; i < rank; i++) SAME(in[at[r] + i], value(r, 10 * rank + i));
    for (int i = 0; i < room; i++) in[i] = -1;
    int *out_at = ints(size), *in_at = ints(size);
    for (int s = 0; s < size; s++) {
        types[s] = s % 2 ? MPI_INT : MPI_FLOAT;
        out_at[s] = displs[s] * (int)sizeof(int), in_at[s] = at[s] * (int)sizeof(int);
        bytes[s] = s;
    }
    MPI_Datatype *mine = malloc(sizeof *mine * size);
    for (int r = 0; r < size; r++) mine[r] = rank % 2 ? MPI_INT : MPI_FLOAT;
    OK(MPI_Alltoallw(out, bytes, out_at, types, in, got, in_at, mine, MPI_COMM_WORLD));
    for (int r = 0; r < size; r++)
        for (int i = 0; i < rank; i++) SAME(in[at[r] + i], value(r, 10 * rank + i));
    free(send), free(recv), free(counts), free(displs), free(got), free(at), free(bytes), free(types);
    free(out), free(in), free(out_at), free(in_at), free(mine);
}

/* Both buffers have one address, and the types say that the data lie apart. */
static void one_address(int root) {
    const int half = size + 1;
    const MPI_Aint at = half * (MPI_Aint)sizeof(int);
    int *both = ints(2 * half);
    MPI_Datatype behind, unresized;
    OK(MPI_Type_create_hindexed_block(1, 1, &at, MPI_INT, &unresized));
    OK(MPI_Type_create_resized(unresized, 0, sizeof(int), &behind));
    OK(MPI_Type_free(&unresized));
    OK(MPI_Type_commit(&behind));
    for (int i = 0; i < size; i++) both[i] = value(rank, i);
    OK(MPI_Scatter(both, 1, MPI_INT, both, 1, behind, root, MPI_COMM_WORLD));
    SAME(both[half], value(root, rank));
    OK(MPI_Allgather(both, 1, MPI_INT, both, 1, behind, MPI_COMM_WORLD));
    for (int r = 0; r < size; r++) SAME(both[half + r], value(r, 0));
    OK(MPI_Type_free(&behind));
    free(both);
}

int main(void) {
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    for (int root = 0; root < size; root++) {
        bcast(0, root), bcast(1, root), bcast(1000, root), bcast(100003, root);
        gather_and_scatter(root);
        with_different_counts(root);
        one_address(root);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    allgather(1), allgather(7), allgather(20001);
    alltoall();
    OK(MPI_Finalize());
    return verdict();
}
