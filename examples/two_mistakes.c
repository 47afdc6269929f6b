/* two_mistakes.c: a program with two mistakes that cost it time and memory,
 * for `perusal run --trace` and `perusal report` to show.
 *
 *   mpiexec -n 4 two_mistakes [--steps S] [--late RANK] [--delay MICROSECONDS] [--collect 0|1]
 *                              defaults: 100 steps, rank 2 late, 2000 us, collected at the end (0)
 *
 * In every step each rank exchanges a row with its two neighbours in a ring, and sends a line of its log to rank 0.
 *
 * The first mistake: one rank has more to do than the others before it sends, and all others wait: its neighbours for
 * it, and the ranks further away for ranks that wait.
 * The second: rank 0 reads the log at the end. Until then (ranks - 1) * steps lines lie in its unexpected queue. With
 * --collect 1 it reads them in every step. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum tag { ROW, LOG, DONE };
enum { ROW_LENGTH = 512, LINE = 64 };

struct run {
    int steps, late, delay_us, collect;
    int rank, size, left, right;
    long lines; /* of the log, as rank 0 got them */
};

static void compute(const struct run *r)
{
    if (r->rank != r->late) return;
    struct timespec delay = {r->delay_us / 1000000, r->delay_us % 1000000 * 1000L};
    nanosleep(&delay, NULL);
}

static void exchange(const struct run *r, const double *mine, double *from_left, double *from_right)
{
    MPI_Request request[4];
    MPI_Irecv(from_left, ROW_LENGTH, MPI_DOUBLE, r->left, ROW, MPI_COMM_WORLD, &request[0]);
    MPI_Irecv(from_right, ROW_LENGTH, MPI_DOUBLE, r->right, ROW, MPI_COMM_WORLD, &request[1]);
    compute(r);
    MPI_Isend(mine, ROW_LENGTH, MPI_DOUBLE, r->left, ROW, MPI_COMM_WORLD, &request[2]);
    MPI_Isend(mine, ROW_LENGTH, MPI_DOUBLE, r->right, ROW, MPI_COMM_WORLD, &request[3]);
    MPI_Waitall(4, request, MPI_STATUSES_IGNORE);
}

static void write_log(const struct run *r, int step)
{
    char line[LINE] = {0};
    if (r->rank == 0) return;
    snprintf(line, sizeof line, "rank %d has done step %d", r->rank, step);
    MPI_Send(line, LINE, MPI_CHAR, 0, LOG, MPI_COMM_WORLD);
}

static void read_log(struct run *r, int steps)
{
    char line[LINE];
    for (int step = 0; step < steps && r->rank == 0; step++) {
        for (int rank = 1; rank < r->size; rank++) {
            MPI_Recv(line, LINE, MPI_CHAR, rank, LOG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            r->lines += strncmp(line, "rank ", 5) == 0;
        }
    }
}

/* A message overtakes no other from the same rank, so behind these all of the log has come to rank 0. */
static void all_done(const struct run *r)
{
    int done = 1;
    if (r->rank != 0) MPI_Send(&done, 1, MPI_INT, 0, DONE, MPI_COMM_WORLD);
    for (int rank = 1; rank < r->size && r->rank == 0; rank++)
        MPI_Recv(&done, 1, MPI_INT, rank, DONE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void read_options(struct run *r, int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        int value = atoi(argv[i + 1]);
        if (strcmp(argv[i], "--steps") == 0) r->steps = value;
        else if (strcmp(argv[i], "--late") == 0) r->late = value;
        else if (strcmp(argv[i], "--delay") == 0) r->delay_us = value;
        else if (strcmp(argv[i], "--collect") == 0) r->collect = value;
        else fprintf(stderr, "two_mistakes: unknown option %s\n", argv[i]), MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (r->size < 2 || r->steps < 0 || r->delay_us < 0) {
        fprintf(stderr, "two_mistakes: needs two ranks, and steps and delay of at least 0\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

int main(int argc, char **argv)
{
    struct run r = {.steps = 100, .late = 2, .delay_us = 2000};
    static double mine[ROW_LENGTH], from_left[ROW_LENGTH], from_right[ROW_LENGTH];
    int wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &r.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &r.size);
    read_options(&r, argc, argv);
    r.left = (r.rank + r.size - 1) % r.size;
    r.right = (r.rank + 1) % r.size;
    for (int step = 0; step < r.steps; step++) {
        for (int i = 0; i < ROW_LENGTH; i++) mine[i] = r.rank * 1000.0 + step;
        exchange(&r, mine, from_left, from_right);
        wrong += from_left[ROW_LENGTH - 1] != r.left * 1000.0 + step || from_right[0] != r.right * 1000.0 + step;
        write_log(&r, step);
        if (r.collect) read_log(&r, 1);
    }
    all_done(&r);
    if (!r.collect) read_log(&r, r.steps);
    if (r.rank == 0) wrong += r.lines != (long)r.steps * (r.size - 1);
    if (r.rank == 0) printf("two_mistakes ranks=%d steps=%d lines=%ld wrong=%d\n", r.size, r.steps, r.lines, wrong);
    MPI_Finalize();
    return wrong != 0;
}
