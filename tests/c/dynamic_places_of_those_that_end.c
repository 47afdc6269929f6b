/* A spawn waits for the places of processes that have left MPI's communicators, or MPI, and have not ended yet;
 * not for one that lives on.
 * RANKS: 2
 * OPTIONS: --universe 64
 */
#include "check.h"
#include <time.h>

/* Processes that take all places but two, rounds with those two, and how many of these are slow. */
enum { KEEPERS = 60, ROUNDS = 30, SLOW = 4 };

static void sleep_ms(long ms) {
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

static int spawn(char *program, int count, MPI_Comm *inter) {
    return MPI_Comm_spawn(program, MPI_ARGV_NULL, count, MPI_INFO_NULL, 0, MPI_COMM_WORLD, inter, MPI_ERRCODES_IGNORE);
}

int main(int argc, char **argv) {
    MPI_Comm parent, keepers, inter;
    int rank, round, codes[3] = {MPI_SUCCESS, MPI_SUCCESS, MPI_SUCCESS};
    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        /* Keepers hear of their round when all others are over. */
        OK(MPI_Bcast(&round, 1, MPI_INT, 0, parent));
        OK(MPI_Comm_disconnect(&parent));
        if (round < SLOW) sleep_ms(40 * (round & 1));
        MPI_Finalize();
        if (round < SLOW) sleep_ms(40 * (round & 2));
        return verdict();
    }
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(spawn(argv[0], KEEPERS, &keepers));
    for (round = 0; round < ROUNDS && !failures; round++) {
        OK(spawn(argv[0], 2, &inter));
        if (failures) break;
        OK(MPI_Bcast(&round, 1, MPI_INT, rank ? MPI_PROC_NULL : MPI_ROOT, inter));
        OK(MPI_Comm_disconnect(&inter));
    }
    /* Two places are left, or will be soon, besides those that live on; and never more than 62. */
    CLASS(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 3, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes), MPI_ERR_SPAWN);
    if (!rank) SAME(codes[1], MPI_ERR_SPAWN);
    CLASS(spawn(argv[0], KEEPERS + 3, &inter), MPI_ERR_SPAWN);
    OK(MPI_Bcast(&round, 1, MPI_INT, rank ? MPI_PROC_NULL : MPI_ROOT, keepers));
    OK(MPI_Comm_disconnect(&keepers));
    MPI_Finalize();
    return verdict();
}
