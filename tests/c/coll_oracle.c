/* Blocking collectives, which share memory, against the same operations done by messages: nonblocking ones, begun
 * before and waited for behind them. Random operations, lengths, roots, in place or not, on the world, a copy, parts of
 * it in another order and an intercommunicator; communicators come and go. The seed is the first argument, or 1.
 * RANKS: 1 2 3 5 8 16 33
 * EXPECT: all agree
 */
#include "check.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef IN_HEAP
#define IN_HEAP 0
#define MOST 40000
#define LENGTHS 0, 1, 3, 14, 15, 16, 30, 31, 100, 700, 1111, 8192, 20000, MOST
/* Blocks for each are shorter. */
#define SHORTER 4
#endif

static uint64_t state;

/* The same on all ranks. */
static unsigned draw(unsigned below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

static int64_t value(int rank, int i, int step)
{
    uint64_t x = (uint64_t)rank * 1000003u + (uint64_t)i * 7919u + (uint64_t)step * 104729u;
    x ^= x >> 31;
    return (int64_t)(x * 0x9e3779b97f4a7c15u >> 40);
}

/* Pairs (a, b) for the map x -> ax + b: associative, and commutes with hardly anything. */
static void compose(void *in, void *inout, int *count, MPI_Datatype *type)
{
    const uint64_t *left = in;
    uint64_t *right = inout;
    (void)type;
    for (int i = 0; i < *count; i++) {
        uint64_t a = left[2 * i], b = left[2 * i + 1];
        right[2 * i + 1] = a * right[2 * i + 1] + b;
        right[2 * i] = a * right[2 * i];
    }
}

static MPI_Op affine;
static MPI_Datatype pair;
static int64_t *mine, *got, *want;
static int step;

/* Memory that all ranks see, or the caller's own. */
static int64_t *words(int seen_by_all)
{
    void *at = NULL;
    size_t bytes = (MOST + 64) * 8;
    if (!seen_by_all) return malloc(bytes);
    MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &at);
    return at;
}

static void compare(const char *what, long words)
{
    if (memcmp(got, want, (size_t)words * 8) != 0) {
        fprintf(stderr, "step %d: %s of %ld words differs\n", step, what, words);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
}

static void one(MPI_Comm comm, int inter)
{
    static const int lengths[14] = {LENGTHS};
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int operation = (int)draw(12), n = lengths[draw(14)], root = (int)draw((unsigned)size), in_place = (int)draw(3) == 0;
    int user = (int)draw(2);
    int blocks = operation >= 4 && operation < 10;
    if (blocks)
        n = n / (SHORTER * size); /* a block for each */
    long all = blocks ? (long)n * size : n;
    n -= blocks ? 0 : n % 2;
    all -= blocks ? 0 : all % 2;
    for (long i = 0; i < all; i++)
        mine[i] = value(rank, (int)i, step);
    memset(got, 0x55, (size_t)all * 8);
    memset(want, 0x55, (size_t)all * 8);
    MPI_Datatype type = user ? pair : MPI_INT64_T;
    MPI_Op op = user ? affine : MPI_SUM;
    int count = user ? n / 2 : n;
    MPI_Request request;
    if (inter) {
        MPI_Ibarrier(comm, &request);
        MPI_Barrier(comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        return;
    }
    switch (operation) {
    case 0:
        MPI_Ibarrier(comm, &request);
        MPI_Barrier(comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    case 1:
        memcpy(got, mine, (size_t)n * 8);
        memcpy(want, mine, (size_t)n * 8);
        MPI_Ibcast(want, n, MPI_INT64_T, root, comm, &request);
        MPI_Bcast(got, n, MPI_INT64_T, root, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        compare("bcast", n);
        break;
    case 2:
        MPI_Iallreduce(mine, want, count, type, op, comm, &request);
        if (in_place) {
            memcpy(got, mine, (size_t)n * 8);
            MPI_Allreduce(MPI_IN_PLACE, got, count, type, op, comm);
        } else
            MPI_Allreduce(mine, got, count, type, op, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        compare("allreduce", n);
        break;
    case 3:
        MPI_Ireduce(mine, want, count, type, op, root, comm, &request);
        if (in_place && rank == root) {
            memcpy(got, mine, (size_t)n * 8);
            MPI_Reduce(MPI_IN_PLACE, got, count, type, op, root, comm);
        } else
            MPI_Reduce(mine, got, count, type, op, root, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        compare("reduce", n);
        break;
    case 4:
        MPI_Iallgather(mine, n, MPI_INT64_T, want, n, MPI_INT64_T, comm, &request);
        if (in_place) {
            memcpy(got + (long)rank * n, mine, (size_t)n * 8);
            MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT64_T, got, n, MPI_INT64_T, comm);
        } else
            MPI_Allgather(mine, n, MPI_INT64_T, got, n, MPI_INT64_T, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        compare("allgather", all);
        break;
    case 6:
    case 7:
        /* From the root to all, or from all to the root. */
        if (operation == 6) {
            MPI_Igather(mine, n, MPI_INT64_T, want, n, MPI_INT64_T, root, comm, &request);
            if (in_place && rank == root) {
                memcpy(got + (long)rank * n, mine, (size_t)n * 8);
                MPI_Gather(MPI_IN_PLACE, 0, MPI_INT64_T, got, n, MPI_INT64_T, root, comm);
            } else
                MPI_Gather(mine, n, MPI_INT64_T, got, n, MPI_INT64_T, root, comm);
        } else {
            MPI_Iscatter(mine, n, MPI_INT64_T, want, n, MPI_INT64_T, root, comm, &request);
            if (in_place && rank == root) {
                memcpy(got, want, (size_t)n * 8);
                MPI_Scatter(mine, n, MPI_INT64_T, MPI_IN_PLACE, n, MPI_INT64_T, root, comm);
            } else
                MPI_Scatter(mine, n, MPI_INT64_T, got, n, MPI_INT64_T, root, comm);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (operation == 7 && in_place && rank == root) memcpy(got, want, (size_t)n * 8);
        compare(operation == 6 ? "gather" : "scatter", all);
        break;
    case 8:
    case 9: {
        /* Blocks of equal lengths, and of different ones. */
        int counts[64], words = user ? 2 : 1, left = (int)(all / words), part = left / size;
        for (int i = 0; i < size; i++) {
            counts[i] = operation == 8 || i + 1 == size ? part : (int)draw((unsigned)(2 * part + 1));
            if (operation == 9 && (i + 1 == size || counts[i] > left)) counts[i] = left;
            left -= counts[i];
        }
        int own = counts[rank];
        if (operation == 8)
            MPI_Ireduce_scatter_block(mine, want, own, type, op, comm, &request);
        else
            MPI_Ireduce_scatter(mine, want, counts, type, op, comm, &request);
        if (in_place) memcpy(got, mine, (size_t)all * 8);
        const void *from = in_place ? MPI_IN_PLACE : mine;
        if (operation == 8)
            MPI_Reduce_scatter_block(from, got, own, type, op, comm);
        else
            MPI_Reduce_scatter(from, got, counts, type, op, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        compare(operation == 8 ? "reduce_scatter_block" : "reduce_scatter", (long)words * own);
        break;
    }
    case 10:
    case 11: {
        const void *from = in_place ? MPI_IN_PLACE : mine;
        if (in_place) memcpy(got, mine, (size_t)n * 8);
        if (operation == 10) {
            MPI_Iscan(mine, want, count, type, op, comm, &request);
            MPI_Scan(from, got, count, type, op, comm);
        } else {
            MPI_Iexscan(mine, want, count, type, op, comm, &request);
            MPI_Exscan(from, got, count, type, op, comm);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (operation == 10 || rank > 0) compare(operation == 10 ? "scan" : "exscan", n);
        break;
    }
    default:
        MPI_Ialltoall(mine, n, MPI_INT64_T, want, n, MPI_INT64_T, comm, &request);
        if (in_place) {
            memcpy(got, mine, (size_t)all * 8);
            MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT64_T, got, n, MPI_INT64_T, comm);
        } else
            MPI_Alltoall(mine, n, MPI_INT64_T, got, n, MPI_INT64_T, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        compare("alltoall", all);
    }
}

/* Sums of doubles that round: every rank must have the same bits. */
static void same_bits(MPI_Comm comm, int n)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    double *x = (double *)mine, *sum = (double *)got;
    for (int i = 0; i < n; i++)
        x[i] = (double)value(rank, i, step) / 3.0;
    MPI_Allreduce(x, sum, n, MPI_DOUBLE, MPI_SUM, comm);
    memcpy(want, got, (size_t)n * 8);
    MPI_Bcast(want, n, MPI_DOUBLE, size - 1, comm);
    compare("the same sum on all ranks", n);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    state = argc > 1 ? strtoull(argv[1], 0, 10) : 1;
    int steps = 2000 / (size + 4);
    MPI_Op_create(compose, 0, &affine);
    MPI_Type_contiguous(2, MPI_UINT64_T, &pair);
    MPI_Type_commit(&pair);
    mine = words(IN_HEAP);
    got = words(IN_HEAP);
    want = words(0);
    int64_t *seen = got, *own = words(0);
    MPI_Comm copy = MPI_COMM_NULL, part = MPI_COMM_NULL, inter = MPI_COMM_NULL;
    for (step = 0; step < steps; step++) {
        if (step % 25 == 0) {
            if (step > 0) {
                MPI_Comm_free(&copy);
                MPI_Comm_free(&part);
                if (inter != MPI_COMM_NULL)
                    MPI_Comm_free(&inter);
            }
            MPI_Comm_dup(MPI_COMM_WORLD, &copy);
            MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part);
            if (size > 1)
                MPI_Intercomm_create(part, 0, MPI_COMM_WORLD, rank % 2 ? (size - 1) / 2 * 2 : (size - 2) / 2 * 2 + 1, 5, &inter);
        }
        /* Later on, some ranks' results lie elsewhere now and then. */
        got = step > steps / 2 && value(rank, 0, step) % 5 == 0 ? own : seen;
        switch (draw(6)) {
        case 0:
            one(copy, 0);
            break;
        case 1:
        case 2: {
            /* The sizes of the parts differ, so each goes on with a sequence of its own. */
            uint64_t kept = state;
            one(part, 0);
            state = kept + 12345;
            break;
        }
        case 3:
            if (inter != MPI_COMM_NULL) {
                one(inter, 1);
                break;
            }
            /* fall through */
        default:
            one(MPI_COMM_WORLD, 0);
        }
        if (step % 10 == 9)
            same_bits(step % 20 == 9 ? copy : MPI_COMM_WORLD, step % 40 == 9 ? 20 : 5000);
    }
    MPI_Type_free(&pair);
    MPI_Op_free(&affine);
    MPI_Finalize();
    if (rank == 0)
        puts("all agree");
    return 0;
}
