/* Reductions of two ranks, which are one message or one each way where the operands are long: an operation that does
 * not commute and one that does, results apart from the operands and in place, types with and without gaps, buffers
 * that begin at a page and a little behind one.
 * RANKS: 2 3
 */
#include "check.h"
#include <stdint.h>

/* x -> a x + b. One after the other, in this order, is no commutative operation. */
struct map {
    uint32_t a, b;
};
enum { MOST = 70000, PAGE = 4096 };
static const int counts[] = {1, 100, 5000, 9001, 20000, MOST};
enum { COUNTS = sizeof counts / sizeof *counts };

static int rank, size;
static size_t stride;
static MPI_Datatype type;

static struct map value(int r, int i) { return (struct map) {2 * (uint32_t)(r + i) + 3, (uint32_t)(7 * i + 1000 * r)}; }

static struct map joined(struct map left, struct map right, int commutes)
{
    if (commutes) return (struct map) {left.a + right.a, left.b ^ right.b};
    return (struct map) {left.a * right.a, left.a * right.b + left.b};
}

static void join(void *in, void *inout, int *n, MPI_Datatype *of, int commutes)
{
    MPI_Aint lb, extent;
    MPI_Type_get_extent(*of, &lb, &extent);
    for (int i = 0; i < *n; i++) {
        struct map left, right;
        memcpy(&left, (char *)in + i * extent, sizeof left);
        memcpy(&right, (char *)inout + i * extent, sizeof right);
        right = joined(left, right, commutes);
        memcpy((char *)inout + i * extent, &right, sizeof right);
    }
}
static void compose(void *in, void *inout, int *n, MPI_Datatype *of) { join(in, inout, n, of, 0); }
static void add(void *in, void *inout, int *n, MPI_Datatype *of) { join(in, inout, n, of, 1); }

static struct map of_ranks(int first, int last, int i, int commutes)
{
    struct map all = value(first, i);
    for (int r = first + 1; r <= last; r++) all = joined(all, value(r, i), commutes);
    return all;
}

static void fill(char *buffer, int n)
{
    memset(buffer, 0x5a, (size_t)n * stride);
    for (int i = 0; i < n; i++) {
        struct map own = value(rank, i);
        memcpy(buffer + (size_t)i * stride, &own, sizeof own);
    }
}

/* `n` elements are those from `at` on of what ranks `first` to `last` give, with the gaps as they were. */
static void expect(const char *what, const char *buffer, int n, int at, int first, int last, int commutes, int gap)
{
    for (int i = 0; i < n; i++) {
        struct map want = of_ranks(first, last, at + i, commutes);
        const char *got = buffer + (size_t)i * stride;
        int well = memcmp(got, &want, sizeof want) == 0;
        for (size_t g = sizeof want; g < stride; g++) well &= got[g] == (char)gap;
        if (!well) {
            fprintf(stderr, "%s: rank %d, element %d of %d is wrong\n", what, rank, i, n);
            failures++;
            return;
        }
    }
}

/* How an operation is called. */
enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };

#define CALL(form, name, ...)                                                                                   \
    do {                                                                                                        \
        MPI_Request request_;                                                                                   \
        if ((form) == BLOCKING) {                                                                               \
            OK(MPI_##name(__VA_ARGS__, MPI_COMM_WORLD));                                                        \
        } else if ((form) == NONBLOCKING) {                                                                     \
            OK(MPI_I##name##_(__VA_ARGS__, MPI_COMM_WORLD, &request_));                                         \
            OK(MPI_Wait(&request_, MPI_STATUS_IGNORE));                                                         \
        } else {                                                                                                \
            OK(MPI_##name##_init(__VA_ARGS__, MPI_COMM_WORLD, MPI_INFO_NULL, &request_));                       \
            OK(MPI_Start(&request_));                                                                           \
            OK(MPI_Wait(&request_, MPI_STATUS_IGNORE));                                                         \
            OK(MPI_Request_free(&request_));                                                                    \
        }                                                                                                       \
    } while (0)
#define MPI_IReduce_ MPI_Ireduce
#define MPI_IAllreduce_ MPI_Iallreduce
#define MPI_IReduce_scatter_ MPI_Ireduce_scatter
#define MPI_IReduce_scatter_block_ MPI_Ireduce_scatter_block
#define MPI_IScan_ MPI_Iscan
#define MPI_IExscan_ MPI_Iexscan

static void all_operations(char *in, char *out, int n, MPI_Op op, int commutes, enum form form)
{
    const size_t bytes = (size_t)n * stride;
    for (int root = 0; root < size; root++) {
        fill(in, n), memset(out, 0x33, bytes);
        CALL(form, Reduce, in, out, n, type, op, root);
        if (rank == root) expect("reduce", out, n, 0, 0, size - 1, commutes, 0x33);
        fill(out, n);
        if (rank == root) CALL(form, Reduce, MPI_IN_PLACE, out, n, type, op, root);
        else CALL(form, Reduce, out, NULL, n, type, op, root);
        if (rank == root) expect("reduce in place", out, n, 0, 0, size - 1, commutes, 0x5a);
        else expect("reduce's operands", out, n, 0, rank, rank, commutes, 0x5a);
    }
    memset(out, 0x33, bytes);
    CALL(form, Allreduce, in, out, n, type, op);
    expect("allreduce", out, n, 0, 0, size - 1, commutes, 0x33);
    fill(out, n);
    CALL(form, Allreduce, MPI_IN_PLACE, out, n, type, op);
    expect("allreduce in place", out, n, 0, 0, size - 1, commutes, 0x5a);

    memset(out, 0x33, bytes);
    CALL(form, Scan, in, out, n, type, op);
    expect("scan", out, n, 0, 0, rank, commutes, 0x33);
    fill(out, n);
    CALL(form, Scan, MPI_IN_PLACE, out, n, type, op);
    expect("scan in place", out, n, 0, 0, rank, commutes, 0x5a);
    fill(out, n);
    CALL(form, Exscan, in, out, n, type, op);
    expect("exscan", out, n, 0, 0, rank ? rank - 1 : 0, commutes, 0x5a);
    fill(out, n);
    CALL(form, Exscan, MPI_IN_PLACE, out, n, type, op);
    expect("exscan in place", out, n, 0, 0, rank ? rank - 1 : 0, commutes, 0x5a);

    /* Of the first rank one part in three, and of the last none. */
    int shares[3] = {n / 3, n - n / 3, 0}, at = rank ? n / 3 : 0;
    if (rank == 2) at = n;
    memset(out, 0x33, bytes);
    CALL(form, Reduce_scatter, in, out, shares, type, op);
    expect("reduce_scatter", out, shares[rank], at, 0, size - 1, commutes, 0x33);
    fill(out, n);
    CALL(form, Reduce_scatter, MPI_IN_PLACE, out, shares, type, op);
    expect("reduce_scatter in place", out, shares[rank], at, 0, size - 1, commutes, 0x5a);
    /* Of one rank all: the others have no room for anything. That one may be in place alone. */
    for (int one = 0; one < size; one++) {
        int all[3] = {0};
        void *result = rank == one ? out : NULL;
        all[one] = n;
        memset(out, 0x33, bytes);
        CALL(form, Reduce_scatter, in, result, all, type, op);
        if (rank == one) expect("reduce_scatter to one", out, n, 0, 0, size - 1, commutes, 0x33);
        fill(out, n);
        CALL(form, Reduce_scatter, rank == one ? MPI_IN_PLACE : in, result, all, type, op);
        if (rank == one) expect("reduce_scatter to one in place", out, n, 0, 0, size - 1, commutes, 0x5a);
    }
    const int block = n / size;
    memset(out, 0x33, bytes);
    CALL(form, Reduce_scatter_block, in, out, block, type, op);
    expect("reduce_scatter_block", out, block, rank * block, 0, size - 1, commutes, 0x33);
    fill(out, n);
    CALL(form, Reduce_scatter_block, MPI_IN_PLACE, out, block, type, op);
    expect("reduce_scatter_block in place", out, block, rank * block, 0, size - 1, commutes, 0x5a);
}

int main(void)
{
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    MPI_Op ops[2];
    OK(MPI_Op_create(compose, 0, &ops[0]));
    OK(MPI_Op_create(add, 1, &ops[1]));
    MPI_Datatype dense, gaps;
    OK(MPI_Type_contiguous(2, MPI_UINT32_T, &dense));
    OK(MPI_Type_create_resized(dense, 0, 12, &gaps));
    OK(MPI_Type_commit(&dense));
    OK(MPI_Type_commit(&gaps));
    char *in = aligned_alloc(PAGE, 12 * MOST + 2 * PAGE), *out = aligned_alloc(PAGE, 12 * MOST + 2 * PAGE);
    for (int c = 0; c < COUNTS; c++)
        for (int commutes = 0; commutes < 2; commutes++)
            for (enum form form = BLOCKING; form < FORMS; form++)
                for (int shift = 0; shift < 2; shift++) {
                    type = shift && form == BLOCKING ? gaps : dense;
                    stride = type == gaps ? 12 : 8;
                    all_operations(in, out + 16 * shift, counts[c], ops[commutes], commutes, form);
                }
    OK(MPI_Type_free(&dense));
    OK(MPI_Type_free(&gaps));
    OK(MPI_Op_free(&ops[0]));
    OK(MPI_Op_free(&ops[1]));
    free(in);
    free(out);
    OK(MPI_Finalize());
    return failures != 0;
}
