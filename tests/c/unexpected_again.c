/* Messages that come before their receive, again and again: their memory is kept for the next ones, and not given back
 * to the kernel, which would give other pages each time.
 * RANKS: 2
 * ENV: PERUSAL_COPY_READ_FROM=4294967295
 * ENV: PERUSAL_COPY_HALVES_FROM=4294967295
 * ENV: PERUSAL_TRAIN_LIMIT=65536
 */
#include "check.h"
#include <sys/resource.h>

enum { MANY = 12, BYTES = 20000, FIRST = 20, ROUNDS = 200, LAST = MANY };

static char data[MANY][BYTES];

static void round_of(int rank, int number) {
    MPI_Request requests[MANY + 1];
    if (rank == 0) {
        for (int i = 0; i < MANY; i++) {
            memset(data[i], number + i, BYTES);
            OK(MPI_Isend(data[i], BYTES, MPI_BYTE, 1, i, MPI_COMM_WORLD, &requests[i]));
        }
        OK(MPI_Isend(NULL, 0, MPI_BYTE, 1, LAST, MPI_COMM_WORLD, &requests[MANY]));
        OK(MPI_Waitall(MANY + 1, requests, MPI_STATUSES_IGNORE));
    } else {
        /* It comes behind the others. */
        OK(MPI_Recv(NULL, 0, MPI_BYTE, 0, LAST, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < MANY; i++) {
            OK(MPI_Recv(data[i], BYTES, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            SAME(data[i][0], (char)(number + i));
            SAME(data[i][BYTES - 1], (char)(number + i));
        }
    }
}

int main(int argc, char **argv) {
    struct rusage before, after;
    int rank, number = 0;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    for (; number < FIRST; number++) round_of(rank, number);
    getrusage(RUSAGE_SELF, &before);
    for (; number < FIRST + ROUNDS; number++) round_of(rank, number);
    getrusage(RUSAGE_SELF, &after);
    /* Fresh pages would be five for each message. */
    CHECK(after.ru_minflt - before.ru_minflt < ROUNDS);
    MPI_Finalize();
    return verdict();
}
