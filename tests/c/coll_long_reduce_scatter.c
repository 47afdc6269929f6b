/* A reduce-scatter of long operands, of which members get different amounts, some of them nothing: blocking, in place,
 * nonblocking and persistent, with an operation whose operands may not be exchanged; and the form with equal blocks.
 * RANKS: 2 3 5
 */
#include "check.h"
#include <stdlib.h>

enum { UNIT = 20011, STARTS = 6 };
static int rank, size;

/* An affine map, x to ax + b; one after the other is a product that does not commute. */
typedef struct {
    unsigned a, b;
} map;

static void compose(void *left, void *right, int *count, MPI_Datatype *type)
{
    (void)type;
    map *l = left, *r = right;
    for (int i = 0; i < *count; i++) r[i] = (map){l[i].a * r[i].a, l[i].a * r[i].b + l[i].b};
}

static int count_of(int r, int round)
{
    if (round == 0) return UNIT * (2 + r % 2);
    return UNIT * ((r + round) % 3) + (r == round % size ? 2 * UNIT : 0);
}

static map value(int r, int i, int round) { return (map){2 * (unsigned)(r + i) + 1, (unsigned)(7 * i + 3 * r + round)}; }

static map expected(int i, int round)
{
    map all = value(size - 1, i, round);
    int one = 1;
    for (int r = size - 2; r >= 0; r--) {
        map left = value(r, i, round);
        compose(&left, &all, &one, NULL);
    }
    return all;
}

int main(int argc, char **argv)
{
    MPI_Datatype type;
    MPI_Op op;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Type_contiguous(2, MPI_UNSIGNED, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Op_create(compose, 0, &op));
    int *counts = malloc(sizeof *counts * size);
    for (int round = 0; round < 3; round++) {
        int total = 0, begin = 0, even = round == 2, block = UNIT * 2;
        for (int r = 0; r < size; r++) {
            counts[r] = even ? block : count_of(r, round);
            if (r < rank) begin += counts[r];
            total += counts[r];
        }
        int own = counts[rank];
        map *send = malloc(sizeof *send * total), *recv = malloc(sizeof *recv * (total + 1));
        MPI_Request kept;
        if (even)
            OK(MPI_Reduce_scatter_block_init(send, recv, block, type, op, MPI_COMM_WORLD, MPI_INFO_NULL, &kept));
        else
            OK(MPI_Reduce_scatter_init(send, recv, counts, type, op, MPI_COMM_WORLD, MPI_INFO_NULL, &kept));
        for (int way = 0; way < 3 + STARTS; way++) {
            int number = 100 * round + way, in_place = way == 1;
            for (int i = 0; i < total; i++) send[i] = value(rank, i, number);
            memset(recv, '-', sizeof *recv * (total + 1));
            if (in_place) memcpy(recv, send, sizeof *send * total);
            MPI_Request once = MPI_REQUEST_NULL;
            void *from = in_place ? MPI_IN_PLACE : send;
            if (way < 2 && even)
                OK(MPI_Reduce_scatter_block(from, recv, block, type, op, MPI_COMM_WORLD));
            else if (way < 2)
                OK(MPI_Reduce_scatter(from, recv, counts, type, op, MPI_COMM_WORLD));
            else if (way == 2 && even)
                OK(MPI_Ireduce_scatter_block(send, recv, block, type, op, MPI_COMM_WORLD, &once));
            else if (way == 2)
                OK(MPI_Ireduce_scatter(send, recv, counts, type, op, MPI_COMM_WORLD, &once));
            else
                OK(MPI_Start(&kept));
            OK(MPI_Wait(way == 2 ? &once : &kept, MPI_STATUS_IGNORE));
            int wrong = 0;
            for (int i = 0; i < own; i++) {
                map right = expected(begin + i, number);
                wrong += recv[i].a != right.a || recv[i].b != right.b;
            }
            map behind;
            memset(&behind, '-', sizeof behind);
            if (!in_place) wrong += memcmp(&recv[own], &behind, sizeof behind) != 0;
            if (wrong) fprintf(stderr, "rank %d, round %d, way %d:\n", rank, round, way);
            SAME(wrong, 0);
        }
        OK(MPI_Request_free(&kept));
        free(send), free(recv);
    }
    free(counts);
    OK(MPI_Op_free(&op));
    OK(MPI_Type_free(&type));
    OK(MPI_Finalize());
    return verdict();
}
