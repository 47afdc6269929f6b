/* Programs that make no mistake: nothing must be said of them. */
#include "mistakes.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned next_random(unsigned *state) { return *state = *state * 1664525u + 1013904223u, *state >> 8; }

static void sleeps(void)
{
    /* No mistake: rank 1 does something else for a while. */
    if (rank == 1) sleep(3);
    MPI_Barrier(world);
}

static void relay(void)
{
    /* No mistake: a message goes round through ranks that sleep in MPI and outside of it, and large ones go along. */
    static char large[1 << 20];
    for (int round = 0; round < 40; round++) {
        if (rank == 0) {
            usleep(round % 4 * 60000);
            MPI_Send(large, sizeof large, MPI_CHAR, next, 1, world);
        }
        MPI_Recv(large, sizeof large, MPI_CHAR, before, 1, world, MPI_STATUS_IGNORE);
        if (rank != 0) MPI_Send(large, sizeof large, MPI_CHAR, next, 1, world);
    }
}

static void waits_for_a_program(void)
{
    /* No mistake: rank 0 waits for another program while rank 1 waits for rank 0. */
    if (rank == 0) {
        FILE *other = popen("sleep 3; echo 1", "r");
        if (!other || fscanf(other, "%d", &value) != 1 || pclose(other)) MPI_Abort(world, 4);
    }
    MPI_Barrier(world);
}

/* Messages of many sizes between random pairs, all ranks drawing the same numbers;
 * now and then one sleeps, in a moment when others wait for it. */
static void random_messages(void)
{
    long messages = argument ? atol(argument) : 20000;
    static char data[300000];
    unsigned state = 1;
    MPI_Request request;
    for (long i = 0; i < messages; i++) {
        int from = next_random(&state) % size, to = next_random(&state) % size, tag = next_random(&state) % 8;
        int bytes = next_random(&state) % 64 ? next_random(&state) % 5000 : next_random(&state) % sizeof data;
        int pause = next_random(&state) % 500 == 0 ? next_random(&state) % 200000 : 0;
        if (from == to) continue;
        if (rank == from) {
            if (pause) usleep(pause);
            MPI_Send(data, bytes, MPI_CHAR, to, tag, world);
        } else if (rank == to) {
            MPI_Recv(data, sizeof data, MPI_CHAR, from, tag, world, MPI_STATUS_IGNORE);
        }
        if (i % 1000 == 999) {
            MPI_Ibarrier(world, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    }
}

static void traffic(void)
{
    char data[1000] = {0};
    for (;;) {
        MPI_Sendrecv_replace(data, sizeof data, MPI_CHAR, next, 1, before, 1, world, MPI_STATUS_IGNORE);
    }
}

static void long_sleep(void)
{
    if (rank == 1) sleep(1000);
    MPI_Barrier(world);
}

/* These end well because short messages are kept and roots go on; MPI promises neither. */
static void relies_on_kept_messages(void)
{
    MPI_Send(&value, 1, MPI_INT, next, 1, world);
    receive(before, 1, world);
}

static void relies_on_roots_that_go_on(void)
{
    if (rank == 0) {
        MPI_Bcast(&value, 1, MPI_INT, 0, world);
        MPI_Send(&value, 1, MPI_INT, 1, 1, world);
    } else {
        receive(0, 1, world);
        MPI_Bcast(&value, 1, MPI_INT, 0, world);
    }
}

const struct mistake mistakes_none[] = {
    {"relies-on-kept-messages", relies_on_kept_messages},
    {"relies-on-roots-that-go-on", relies_on_roots_that_go_on},
    {"sleeps", sleeps},
    {"relay", relay},
    {"pipe", waits_for_a_program},
    {"stress", random_messages},
    {"traffic", traffic},
    {"long-sleep", long_sleep},
    {NULL, NULL},
};
