/* The sequence number of an arrival counts by one for each communicator and sender, whatever its protocol and tag, and
 * whatever the library sends of its own in between.
 * RANKS: 3
 */
#include "mpi_t_event.h"
#include <stdlib.h>

enum { RANKS = 3, ROUNDS = 40, LARGE = 1 << 20 };
static int type, source_at, number_at, handle_at;
static uint64_t handles_seen[2];
static int64_t next[2][RANKS];
static int heard;

static void on_arrival(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    int source = -1, which;
    uint64_t number = 0, comm = 0;
    (void)handle, (void)level, (void)data;
    OK(MPI_T_event_read(instance, source_at, &source));
    OK(MPI_T_event_read(instance, number_at, &number));
    OK(MPI_T_event_read(instance, handle_at, &comm));
    which = comm == handles_seen[1];
    CHECK(comm == handles_seen[which] && source >= 0 && source < RANKS);
    if (source < 0 || source >= RANKS) return;
    SAME((int)number, (int)next[which][source]);
    next[which][source]++;
    heard++;
}

/* The paper's type of the world alone. */
static int paper_source, paper_number, paper_heard;
static int64_t paper_next[RANKS];
static void on_paper(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    int source = -1;
    uint64_t number = 0;
    (void)handle, (void)level, (void)data;
    OK(MPI_T_event_read(instance, paper_source, &source));
    OK(MPI_T_event_read(instance, paper_number, &number));
    if (source < 0 || source >= RANKS) return;
    SAME((int)number, (int)paper_next[source]++);
    paper_heard++;
}

int main(int argc, char **argv)
{
    int rank, size, sum = 0;
    char *out = calloc(LARGE, 1), *in = calloc(RANKS, LARGE);
    MPI_T_event_registration all, paper;
    MPI_Comm reversed, comms[2];
    initialise_tools();
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed));
    comms[0] = MPI_COMM_WORLD, comms[1] = reversed;
    for (int i = 0; i < 2; i++) handles_seen[i] = (uint64_t)(uintptr_t)comms[i];
    type = type_of("PERUSE_COMM_MSG_ARRIVED_all");
    source_at = element_of(type, "peer"), number_at = element_of(type, "sequence");
    handle_at = element_of(type, "comm");
    all = listen_to(type, NULL, 0, on_arrival, NULL);
    type = type_of("pml_ob1_message_arrived");
    paper_source = element_of(type, "source"), paper_number = element_of(type, "sequence number");
    paper = listen_to(type, &comms[0], 0, on_paper, NULL);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    srand(rank + 1);
    int wanted = 0, of_world = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int which = round % 2, bytes = round % 4 == 3 ? LARGE : round % 4 == 2 ? 20000 : 8;
        MPI_Request requests[2 * RANKS];
        for (int i = 0; i < size; i++) {
            OK(MPI_Irecv(in + i * (size_t)LARGE, bytes, MPI_CHAR, round % 3 ? i : MPI_ANY_SOURCE, MPI_ANY_TAG, comms[which], &requests[i]));
            OK(MPI_Isend(out, bytes, MPI_CHAR, i, rand() % 9, comms[which], &requests[size + i]));
        }
        OK(MPI_Waitall(2 * size, requests, MPI_STATUSES_IGNORE));
        wanted += size, of_world += which == 0 ? size : 0;
        /* The library's own: by the team, by messages, and the making of a communicator. */
        OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comms[round % 2]));
        if (round % 10 == 0) {
            MPI_Comm copy;
            OK(MPI_Comm_dup(comms[which], &copy));
            OK(MPI_Comm_free(&copy));
        }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    SAME(heard, wanted);
    SAME(paper_heard, of_world);
    for (int i = 0; i < size; i++) SAME((int)(next[0][i] + next[1][i]), ROUNDS);
    OK(MPI_T_event_handle_free(all, NULL, NULL));
    OK(MPI_T_event_handle_free(paper, NULL, NULL));
    OK(MPI_Comm_free(&reversed));
    free(out), free(in);
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return verdict();
}
