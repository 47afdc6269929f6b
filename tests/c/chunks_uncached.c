/* Windows of large messages that the receiver writes past its cache, at odd places,
 * arrive whole and touch nothing beside.
 * RANKS: 2
 * ENV: PERUSAL_COPY_ENGINE=chunks
 * ENV: PERUSAL_COPY_UNCACHED_FROM=300000
 */
#include "check.h"

enum { MESSAGES = 8, MOST = 700000, GAP = 77 };

static unsigned char byte(int i, int seed) { return (unsigned char)(i * 7 + i / 251 + seed); }

int main(int argc, char **argv)
{
    int rank;
    MPI_Request requests[MESSAGES];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    unsigned char *room = malloc(MESSAGES * (size_t)(MOST + GAP) + GAP);
    for (int turn = 0; turn < 3; turn++) {
        memset(room, 0xee, MESSAGES * (size_t)(MOST + GAP) + GAP);
        for (int i = 0; i < MESSAGES; i++) {
            unsigned char *at = room + GAP + i * (size_t)(MOST + GAP);
            int bytes = MOST - i * 70001;
            for (int j = 0; rank == 0 && j < bytes; j++) at[j] = byte(j, i + turn);
            if (rank == 0) OK(MPI_Isend(at, bytes, MPI_BYTE, 1, i, MPI_COMM_WORLD, &requests[i]));
            else OK(MPI_Irecv(at, bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD, &requests[i]));
        }
        OK(MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; rank == 1 && i < MESSAGES; i++) {
            unsigned char *at = room + GAP + i * (size_t)(MOST + GAP);
            int bytes = MOST - i * 70001, wrong = 0;
            for (int j = 0; j < bytes; j++) wrong += at[j] != byte(j, i + turn);
            SAME(wrong, 0);
            for (int j = 1; j <= GAP; j++) CHECK(at[-j] == 0xee);
            CHECK(at[bytes] == 0xee);
        }
    }
    free(room);
    MPI_Finalize();
    return verdict();
}
