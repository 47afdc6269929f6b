/* A program that waits by one-sided calls alone: its messages arrive meanwhile,
 * and other ranks get the CPU (MPI 5.0 section 12.7.3).
 * RANKS: 2 8
 * ENV: PERUSAL_COPY_ENGINE=chunks
 */
#include "check.h"

/* Turns of all ranks: beside other programs each may take as long as all that want the CPU have theirs. */
enum { BYTES = 4 << 20, TURNS = 200 };

static int rank, size;
static MPI_Win win;

/* The ways to ask for a value of the first rank's. */
static int ask(int way, int at, int *base) {
    int got = -1, zero = 0;
    switch (way) {
    case 0:
        OK(MPI_Get(&got, 1, MPI_INT, 0, at, 1, MPI_INT, win));
        OK(MPI_Win_flush(0, win));
        break;
    case 1:
        OK(MPI_Fetch_and_op(&zero, &got, MPI_INT, 0, at, MPI_NO_OP, win));
        OK(MPI_Win_flush_all(win));
        break;
    default:
        OK(MPI_Win_sync(win));
        got = *(volatile int *)(base + at);
    }
    return got;
}

int main(void) {
    int *base, disp;
    MPI_Aint bytes;
    MPI_Request request;
    MPI_Init(NULL, NULL);
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *message = calloc(BYTES, 1);
    OK(MPI_Win_allocate_shared(rank ? 0 : 64, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_shared_query(win, 0, &bytes, &disp, &base));
    OK(MPI_Win_lock_all(0, win));
    for (int way = 0; way < 3; way++) {
        /* The first sends, and calls nothing that is for messages until the second has received. */
        int one = 1;
        if (rank == 0) {
            OK(MPI_Isend(message, BYTES, MPI_CHAR, 1, way, MPI_COMM_WORLD, &request));
            while (ask(way, way, base) != 1) continue;
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else if (rank == 1) {
            OK(MPI_Recv(message, BYTES, MPI_CHAR, 0, way, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Accumulate(&one, 1, MPI_INT, 0, way, 1, MPI_INT, MPI_REPLACE, win));
            OK(MPI_Win_flush(0, win));
        }
        /* Each waits for its turn. */
        for (int round = 0; round < TURNS / size; round++) {
            int turn = round * size + rank;
            while (ask(way, 8 + way, base) != turn) continue;
            OK(MPI_Accumulate(&one, 1, MPI_INT, 0, 8 + way, 1, MPI_INT, MPI_SUM, win));
            OK(MPI_Win_flush(0, win));
        }
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    free(message);
    MPI_Finalize();
    return verdict();
}
