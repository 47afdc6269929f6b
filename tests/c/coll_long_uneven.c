/* An allgatherv of long blocks of different lengths, some of them empty: blocking, nonblocking and persistent, in
 * place, one behind the other at some ranks and with gaps at the others.
 * RANKS: 2 3 5
 */
#include "check.h"
#include <stdlib.h>

enum { UNIT = 70001, STARTS = 6, GAP = 5 };
static int rank, size;

static int length_of(int r, int round) { return UNIT * ((r + round) % 3) + (r == round % size ? 3 * UNIT : 0); }
static char value(int r, int i, int round) { return (char)(17 * r + i + i / 251 + 5 * round); }

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    int *counts = malloc(sizeof *counts * size), *places = malloc(sizeof *places * size);
    for (int round = 0; round < 3; round++) {
        int total = 0, own = length_of(rank, round), gap = (rank + round) % 2 ? GAP : 0;
        for (int r = 0; r < size; r++) counts[r] = length_of(r, round), places[r] = total, total += counts[r] + gap;
        char *send = malloc(own + 1), *all = malloc(total + 1);
        MPI_Request request;
        OK(MPI_Allgatherv_init(send, own, MPI_CHAR, all, counts, places, MPI_CHAR, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        for (int way = 0; way < 3 + STARTS; way++) {
            int in_place = way == 1;
            for (int i = 0; i < own; i++) send[i] = value(rank, i, round + way);
            memset(all, '-', total + 1);
            if (in_place) memcpy(all + places[rank], send, own);
            MPI_Request once = MPI_REQUEST_NULL;
            if (way < 2)
                OK(MPI_Allgatherv(in_place ? MPI_IN_PLACE : send, own, MPI_CHAR, all, counts, places, MPI_CHAR, MPI_COMM_WORLD));
            else if (way == 2)
                OK(MPI_Iallgatherv(send, own, MPI_CHAR, all, counts, places, MPI_CHAR, MPI_COMM_WORLD, &once));
            else
                OK(MPI_Start(&request));
            OK(MPI_Wait(way == 2 ? &once : &request, MPI_STATUS_IGNORE));
            int wrong = 0;
            for (int r = 0; r < size; r++) {
                for (int i = 0; i < counts[r]; i++) wrong += all[places[r] + i] != value(r, i, round + way);
                for (int i = 0; i < gap; i++) wrong += all[places[r] + counts[r] + i] != '-';
            }
            wrong += all[total] != '-';
            if (wrong) fprintf(stderr, "rank %d, round %d, way %d:\n", rank, round, way);
            SAME(wrong, 0);
        }
        OK(MPI_Request_free(&request));
        free(send), free(all);
    }
    free(counts), free(places);
    OK(MPI_Finalize());
    return verdict();
}
