/* Gatherings to a root and scatters from one, of blocks that are long together: of equal and of different lengths,
 * blocking, nonblocking and persistent, with every root.
 * RANKS: 2 3 5
 */
#include "check.h"
#include <stdlib.h>

enum { UNIT = 262147, WAYS = 6, GAP = 3 };
static int rank, size;

static int length_of(int r, int round) { return round == 0 ? 3 * UNIT : UNIT * (1 + (r + round) % 4); }
static char value(int r, int i, int round) { return (char)(29 * r + i + i / 251 + 7 * round); }

static int check(const char *bytes, int n, int of, int round)
{
    int wrong = 0;
    for (int i = 0; i < n; i++) wrong += bytes[i] != value(of, i, round);
    return wrong;
}

/* The request of a nonblocking or persistent way; what is not waited for is MPI_REQUEST_NULL. */
static void gather(int way, const char *own, int length, char *all, int *counts, int *places, int root, MPI_Request *r)
{
    MPI_Comm c = MPI_COMM_WORLD;
    switch (way) {
    case 0: OK(MPI_Gatherv(own, length, MPI_CHAR, all, counts, places, MPI_CHAR, root, c)); break;
    case 1: OK(MPI_Igatherv(own, length, MPI_CHAR, all, counts, places, MPI_CHAR, root, c, r)); break;
    case 2: OK(MPI_Gatherv_init(own, length, MPI_CHAR, all, counts, places, MPI_CHAR, root, c, MPI_INFO_NULL, r)); break;
    case 3: OK(MPI_Gather(own, length, MPI_CHAR, all, length, MPI_CHAR, root, c)); break;
    case 4: OK(MPI_Igather(own, length, MPI_CHAR, all, length, MPI_CHAR, root, c, r)); break;
    default: OK(MPI_Gather_init(own, length, MPI_CHAR, all, length, MPI_CHAR, root, c, MPI_INFO_NULL, r));
    }
}

static void scatter(int way, const char *all, int *counts, int *places, char *own, int length, int root, MPI_Request *r)
{
    MPI_Comm c = MPI_COMM_WORLD;
    switch (way) {
    case 0: OK(MPI_Scatterv(all, counts, places, MPI_CHAR, own, length, MPI_CHAR, root, c)); break;
    case 1: OK(MPI_Iscatterv(all, counts, places, MPI_CHAR, own, length, MPI_CHAR, root, c, r)); break;
    case 2: OK(MPI_Scatterv_init(all, counts, places, MPI_CHAR, own, length, MPI_CHAR, root, c, MPI_INFO_NULL, r)); break;
    case 3: OK(MPI_Scatter(all, length, MPI_CHAR, own, length, MPI_CHAR, root, c)); break;
    case 4: OK(MPI_Iscatter(all, length, MPI_CHAR, own, length, MPI_CHAR, root, c, r)); break;
    default: OK(MPI_Scatter_init(all, length, MPI_CHAR, own, length, MPI_CHAR, root, c, MPI_INFO_NULL, r));
    }
}

static void finish(int way, MPI_Request *request)
{
    int persistent = way % 3 == 2;
    if (persistent) OK(MPI_Start(request));
    OK(MPI_Wait(request, MPI_STATUS_IGNORE));
    if (persistent) OK(MPI_Request_free(request));
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    int *counts = malloc(sizeof *counts * size), *places = malloc(sizeof *places * size);
    for (int round = 0; round < 2; round++) {
        for (int root = 0; root < size; root++) {
            for (int way = 0; way < (round == 0 ? WAYS : 3); way++) {
                /* Blocks of a gather and of a scatter lie side by side. */
                int total = 0, own = length_of(rank, round), gap = way < 3 ? GAP : 0, wrong = 0;
                for (int r = 0; r < size; r++) counts[r] = length_of(r, round), places[r] = total, total += counts[r] + gap;
                char *mine = malloc(own), *all = malloc(total);
                MPI_Request request = MPI_REQUEST_NULL;
                for (int i = 0; i < own; i++) mine[i] = value(rank, i, round + way);
                memset(all, '-', total);
                gather(way, mine, own, all, counts, places, root, &request);
                finish(way, &request);
                if (rank == root) {
                    for (int r = 0; r < size; r++) {
                        wrong += check(all + places[r], counts[r], r, round + way);
                        for (int i = 0; i < gap; i++) wrong += all[places[r] + counts[r] + i] != '-';
                    }
                    for (int r = 0; r < size; r++)
                        for (int i = 0; i < counts[r]; i++) all[places[r] + i] = value(r, i, round + way + 1);
                }
                scatter(way, all, counts, places, mine, own, root, &request);
                finish(way, &request);
                wrong += check(mine, own, rank, round + way + 1);
                if (wrong) fprintf(stderr, "rank %d, round %d, root %d, way %d:\n", rank, round, root, way);
                SAME(wrong, 0);
                free(mine), free(all);
            }
        }
    }
    free(counts), free(places);
    OK(MPI_Finalize());
    return verdict();
}
