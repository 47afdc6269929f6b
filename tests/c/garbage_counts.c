/* A rank that writes garbage over the counts by which ranks tell each other how much they have sent keeps the others
 * from sleeping, and from nothing else: every message arrives, in order,
 * and nobody crashes or looks for what is not there for ever.
 * RANKS: 12
 */
#include "job_memory.h"

enum { RANKS = 12, USABLE_CPUS = 44 };
/* Fewer messages than this go through any ring, so a count of this or more is none that was ever true. */
enum { NEVER = 20000, ROUNDS = 40, EACH = 5, BROKEN = 1 };

static char *memory;
static int rank;

static volatile uint16_t *counts_of(int of)
{
    return (volatile uint16_t *)(memory + HEADER + CONTEXTS + (size_t)of * BLOCK + COUNTS);
}

static void scribble(void)
{
    for (int of = 0; of < RANKS; of++)
        for (int from = 0; from < RANKS; from++) counts_of(of)[from] = (uint16_t)(NEVER + rand() % (65536 - NEVER));
}

static void send_to_all(int round)
{
    for (int to = 0; to < RANKS; to++)
        for (int i = 0; i < EACH; i++) {
            int said[2] = {round, i};
            if (to != rank) OK(MPI_Send(said, 2, MPI_INT, to, round % 2, MPI_COMM_WORLD));
        }
}

/* Each sender's messages come in order, whether they are asked for by name or not. */
static void receive_from_all(int round)
{
    int got[RANKS] = {0};
    for (int n = 0; n < (RANKS - 1) * EACH; n++) {
        int said[2], from = n % RANKS;
        MPI_Status status;
        if (round % 3 == 0 || from == rank || got[from] == EACH) from = MPI_ANY_SOURCE;
        OK(MPI_Recv(said, 2, MPI_INT, from, round % 2, MPI_COMM_WORLD, &status));
        SAME(said[0], round);
        SAME(said[1], got[status.MPI_SOURCE]++);
    }
    for (int from = 0; from < RANKS; from++) SAME(got[from], from == rank ? 0 : EACH);
}

int main(int argc, char **argv)
{
    int flag = 0;
    memory = job_memory();
    /* As if ranks outnumbered the CPUs, on whatever machine: only then news is counted. */
    *(volatile uint32_t *)(memory + USABLE_CPUS) = 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    send_to_all(0);
    receive_from_all(0);
    for (int from = 0; from < RANKS; from++) CHECK(from == rank || counts_of(rank)[from] > 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int round = 1; round <= ROUNDS; round++) {
        if (rank == BROKEN) {
            /* The others have nothing to do but look at that, until this rank sends. */
            scribble();
            usleep(1000);
            OK(MPI_Iprobe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
            SAME(flag, 0);
        }
        send_to_all(round);
        if (rank == BROKEN) scribble();
        receive_from_all(round);
    }
    if (rank == BROKEN) scribble();
    MPI_Finalize();
    return verdict();
}
