/* Grids and graphs: who is where, who is next to whom, and what neighbours tell each other.
 * RANKS: 1 2 3 4 6
 */
#include "check.h"

static int rank, size;

static void dims(void) {
    int a[2] = {0, 0}, b[3] = {0, 3, 0}, c[2] = {4, 0};
    OK(MPI_Dims_create(6, 2, a));
    SAME(a[0], 3); SAME(a[1], 2);
    OK(MPI_Dims_create(6, 3, b));
    SAME(b[0], 2); SAME(b[1], 3); SAME(b[2], 1);
    CLASS(MPI_Dims_create(6, 2, c), MPI_ERR_DIMS);
}

static void grid(void) {
    int extents[2] = {size, 1}, periods[2] = {1, 0}, got[2], wraps[2], coords[2], n, status, from, to;
    MPI_Comm cart, row, small;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 2, extents, periods, 0, &cart));
    OK(MPI_Topo_test(cart, &status));
    SAME(status, MPI_CART);
    OK(MPI_Topo_test(MPI_COMM_WORLD, &status));
    SAME(status, MPI_UNDEFINED);
    OK(MPI_Cartdim_get(cart, &n));
    SAME(n, 2);
    OK(MPI_Cart_get(cart, 2, got, wraps, coords));
    SAME(got[0], size); SAME(wraps[0], 1); SAME(wraps[1], 0); SAME(coords[0], rank); SAME(coords[1], 0);
    coords[0] += size;
    OK(MPI_Cart_rank(cart, coords, &n));
    SAME(n, rank);
    OK(MPI_Cart_shift(cart, 0, 1, &from, &to));
    SAME(from, (rank + size - 1) % size); SAME(to, (rank + 1) % size);
    OK(MPI_Cart_shift(cart, 1, 1, &from, &to));
    SAME(from, MPI_PROC_NULL); SAME(to, MPI_PROC_NULL);
    /* Down the ring goes 10 r, up 10 r + 1; beyond the edge there is nobody. */
    int send[4] = {10 * rank, 10 * rank + 1, -5, -5}, recv[4] = {-1, -1, -1, -1};
    OK(MPI_Neighbor_alltoall(send, 1, MPI_INT, recv, 1, MPI_INT, cart));
    SAME(recv[0], 10 * ((rank + size - 1) % size) + 1);
    SAME(recv[1], 10 * ((rank + 1) % size));
    SAME(recv[2], -1); SAME(recv[3], -1);
    OK(MPI_Neighbor_allgather(&rank, 1, MPI_INT, recv, 1, MPI_INT, cart));
    SAME(recv[0], (rank + size - 1) % size); SAME(recv[1], (rank + 1) % size); SAME(recv[2], -1);
    int keep[2] = {0, 1};
    OK(MPI_Cart_sub(cart, keep, &row));
    OK(MPI_Comm_size(row, &n));
    SAME(n, 1);
    MPI_Comm dup;
    OK(MPI_Comm_dup(cart, &dup));
    OK(MPI_Topo_test(dup, &status));
    SAME(status, MPI_CART);
    int one[1] = {1};
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, one, periods, 0, &small));
    CHECK((small == MPI_COMM_NULL) == (rank > 0));
    extents[0] = size + 1;
    CLASS(MPI_Cart_create(MPI_COMM_WORLD, 2, extents, periods, 0, &small), MPI_ERR_TOPOLOGY);
    CLASS(MPI_Cart_shift(MPI_COMM_WORLD, 0, 1, &from, &to), MPI_ERR_TOPOLOGY);
    OK(MPI_Comm_free(&row)); OK(MPI_Comm_free(&dup)); OK(MPI_Comm_free(&cart));
}

/* A star: node 0 in the middle. */
static void graph(void) {
    int index[8], edges[16], n = 0, got[8], count, e;
    MPI_Comm star;
    for (int i = 1; i < size; i++) edges[n++] = i;
    index[0] = n;
    for (int i = 1; i < size; i++) edges[n++] = 0, index[i] = n;
    OK(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 1, &star));
    OK(MPI_Graphdims_get(star, &count, &e));
    SAME(count, size); SAME(e, 2 * (size - 1));
    OK(MPI_Graph_neighbors_count(star, rank, &count));
    SAME(count, rank ? 1 : size - 1);
    OK(MPI_Graph_neighbors(star, rank, 8, got));
    for (int i = 0; i < count; i++) SAME(got[i], rank ? 0 : i + 1);
    int recv[8];
    OK(MPI_Neighbor_allgather(&rank, 1, MPI_INT, recv, 1, MPI_INT, star));
    for (int i = 0; i < count; i++) SAME(recv[i], rank ? 0 : i + 1);
    OK(MPI_Comm_free(&star));
}

/* A ring of which rank 0 knows all edges, rank r's with weight r + 1;
 * then the same ring, of which each one gives its own edges. */
static void dist_graph(void) {
    int sources[8], degrees[8], ends[8], weights[8], in, out, weighted, a[8], b[8], wa[8], wb[8];
    MPI_Comm ring;
    for (int i = 0; i < size; i++) sources[i] = i, degrees[i] = 1, ends[i] = (i + 1) % size, weights[i] = i + 1;
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, rank ? 0 : size, sources, degrees, ends, weights, MPI_INFO_NULL, 0, &ring));
    OK(MPI_Dist_graph_neighbors_count(ring, &in, &out, &weighted));
    SAME(in, 1); SAME(out, 1); SAME(weighted, 1);
    OK(MPI_Dist_graph_neighbors(ring, 1, a, wa, 1, b, wb));
    int from = (rank + size - 1) % size;
    SAME(a[0], from); SAME(wa[0], from + 1); SAME(b[0], (rank + 1) % size); SAME(wb[0], rank + 1);
    int got = -1;
    OK(MPI_Neighbor_alltoall(&rank, 1, MPI_INT, &got, 1, MPI_INT, ring));
    SAME(got, from);
    OK(MPI_Comm_free(&ring));
    int to = (rank + 1) % size;
    int *volatile none = MPI_UNWEIGHTED; /* gcc takes the constant for an array without elements */
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &from, none, 1, &to, none, MPI_INFO_NULL, 0, &ring));
    OK(MPI_Dist_graph_neighbors_count(ring, &in, &out, &weighted));
    SAME(in, 1); SAME(out, 1); SAME(weighted, 0);
    int count = 1, at = 0;
    got = -1;
    OK(MPI_Neighbor_alltoallv(&rank, &count, &at, MPI_INT, &got, &count, &at, MPI_INT, ring));
    SAME(got, from);
    OK(MPI_Comm_free(&ring));
}

int main(void) {
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    errors_return();
    dims();
    grid();
    graph();
    dist_graph();
    OK(MPI_Finalize());
    return verdict();
}
