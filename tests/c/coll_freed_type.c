/* A type may be freed while a reduction uses it: the program's function is given a handle that is still its own,
 * whatever is made meanwhile.
 * RANKS: 1 2 3
 */
#include "check.h"

static int size;

/* Adds the two integers of each element, apart by the extent, which only the type tells. */
static void add(void *from, void *to, int *count, MPI_Datatype *type) {
    MPI_Aint lb, extent;
    OK(MPI_Type_get_extent(*type, &lb, &extent));
    SAME(extent, 3 * sizeof(int));
    for (int i = 0; i < *count; i++) {
        int *x = (int *)((char *)from + i * extent), *y = (int *)((char *)to + i * extent);
        y[0] += x[0];
        y[2] += x[2];
    }
}

static void make(MPI_Datatype *type, MPI_Op *op) {
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, type));
    OK(MPI_Type_commit(type));
    OK(MPI_Op_create(add, 1, op));
}

/* Frees both, then makes other types, which would take the handle if it were free. */
static void drop_both(MPI_Datatype *type, MPI_Op *op) {
    MPI_Datatype freed = *type, others[100];
    OK(MPI_Type_free(type));
    OK(MPI_Op_free(op));
    CLASS(MPI_Type_free(&freed), MPI_ERR_TYPE);
    for (int i = 0; i < 100; i++) OK(MPI_Type_contiguous(i + 1, MPI_CHAR, &others[i]));
    for (int i = 0; i < 100; i++) OK(MPI_Type_free(&others[i]));
}

static void check_sum(const int *sum) {
    SAME(sum[0], size);
    SAME(sum[2], 2 * size);
    SAME(sum[3], 3 * size);
    SAME(sum[5], 4 * size);
}

int main(int argc, char **argv) {
    const int in[6] = {1, 0, 2, 3, 0, 4};
    int out[6] = {0};
    MPI_Aint lb, extent;
    MPI_Datatype type, freed;
    MPI_Op op;
    MPI_Request request;
    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    make(&type, &op);
    freed = type;
    OK(MPI_Iallreduce(in, out, 2, type, op, MPI_COMM_WORLD, &request));
    drop_both(&type, &op);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    check_sum(out);
    /* When nothing uses it any more, the handle is none. */
    CLASS(MPI_Type_get_extent(freed, &lb, &extent), MPI_ERR_TYPE);
    make(&type, &op);
    OK(MPI_Allreduce_init(in, out, 2, type, op, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    drop_both(&type, &op);
    for (int i = 0; i < 10; i++) {
        memset(out, 0, sizeof out);
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        check_sum(out);
    }
    OK(MPI_Request_free(&request));
    MPI_Finalize();
    return verdict();
}
