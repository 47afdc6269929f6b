/* heat.c: heat flowing out of a square plate, on any number of ranks.
 *
 *   mpiexec -n 4 heat [--points N] [--steps S] [--slow RANK] [--delay MICROSECONDS]
 *                                       defaults: 200 points a side, 100 steps, no slow rank, 4000 us a step
 *
 * The plate's edge is kept at 0 and it starts as sin(pi x) sin(pi y). Each step of the explicit scheme multiplies that
 * shape by one known number, so the exact result of the computation is known, and is checked at the end.
 *
 * Each rank has a block of rows and columns and exchanges its edges with up to four neighbours every step: it sends
 * them, computes what needs no neighbour while it tests its sends from time to time, then receives, and computes
 * the rest. A rank that is made slow therefore finds its neighbours' edges waiting for it,
 * while they wait for its own. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum side { UP, DOWN, LEFT, RIGHT, SIDES };
enum { SLICES = 4 }; /* how often a rank tests its sends within a step */

struct plate {
    int points, steps, slow, delay_us;
    int rank, size, rows_of_ranks, columns_of_ranks;
    int first_row, rows, first_column, columns; /* of this rank's block, without the halo */
    int neighbour[SIDES];
    double *now, *next; /* (rows + 2) by (columns + 2), the outermost being the halo or the plate's edge */
    double ratio;       /* time step over the square of the spacing */
    MPI_Datatype column;
};

static double *at(const struct plate *p, double *field, int row, int column)
{
    return field + (size_t)row * (size_t)(p->columns + 2) + column;
}

static void share_out(int points, int parts, int part, int *first, int *count)
{
    *first = (int)((long)points * part / parts);
    *count = (int)((long)points * (part + 1) / parts) - *first;
}

static void divide(struct plate *p)
{
    p->rows_of_ranks = (int)sqrt((double)p->size);
    while (p->size % p->rows_of_ranks != 0) p->rows_of_ranks--;
    p->columns_of_ranks = p->size / p->rows_of_ranks;
    int row = p->rank / p->columns_of_ranks, column = p->rank % p->columns_of_ranks;
    share_out(p->points, p->rows_of_ranks, row, &p->first_row, &p->rows);
    share_out(p->points, p->columns_of_ranks, column, &p->first_column, &p->columns);
    p->neighbour[UP] = row > 0 ? p->rank - p->columns_of_ranks : MPI_PROC_NULL;
    p->neighbour[DOWN] = row < p->rows_of_ranks - 1 ? p->rank + p->columns_of_ranks : MPI_PROC_NULL;
    p->neighbour[LEFT] = column > 0 ? p->rank - 1 : MPI_PROC_NULL;
    p->neighbour[RIGHT] = column < p->columns_of_ranks - 1 ? p->rank + 1 : MPI_PROC_NULL;
    MPI_Type_vector(p->rows, 1, p->columns + 2, MPI_DOUBLE, &p->column);
    MPI_Type_commit(&p->column);
}

static double shape(const struct plate *p, int row, int column)
{
    double spacing = 1.0 / (p->points + 1);
    double y = (p->first_row + row) * spacing, x = (p->first_column + column) * spacing;
    return sin(M_PI * x) * sin(M_PI * y);
}

static void start(struct plate *p)
{
    size_t cells = (size_t)(p->rows + 2) * (size_t)(p->columns + 2);
    p->now = calloc(cells, sizeof(double));
    p->next = calloc(cells, sizeof(double));
    if (p->now == NULL || p->next == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 1; i <= p->rows; i++)
        for (int j = 1; j <= p->columns; j++) *at(p, p->now, i, j) = shape(p, i, j);
}

static void compute(struct plate *p, int from_row, int to_row, int from_column, int to_column)
{
    for (int i = from_row; i <= to_row; i++) {
        for (int j = from_column; j <= to_column; j++) {
            const double *here = at(p, p->now, i, j);
            double around = here[-1] + here[1] + here[-(p->columns + 2)] + here[p->columns + 2];
            *at(p, p->next, i, j) = *here + p->ratio * (around - 4 * *here);
        }
    }
}

/* The edge that a side's neighbour needs, or, with `halo`, where that neighbour's own edge goes. */
static double *edge(struct plate *p, enum side side, int halo)
{
    switch (side) {
    case UP: return at(p, p->now, halo ? 0 : 1, 1);
    case DOWN: return at(p, p->now, p->rows + halo, 1);
    case LEFT: return at(p, p->now, 1, halo ? 0 : 1);
    default: return at(p, p->now, 1, p->columns + halo);
    }
}

static void send_edges(struct plate *p, MPI_Request *request)
{
    for (int side = 0; side < SIDES; side++) {
        int upright = side == LEFT || side == RIGHT;
        MPI_Isend(edge(p, side, 0), upright ? 1 : p->columns, upright ? p->column : MPI_DOUBLE, p->neighbour[side], side,
                  MPI_COMM_WORLD, &request[side]);
    }
}

static void receive_edges(struct plate *p, MPI_Request *request)
{
    static const enum side opposite[SIDES] = {DOWN, UP, RIGHT, LEFT};
    for (int side = 0; side < SIDES; side++) {
        int upright = side == LEFT || side == RIGHT;
        MPI_Irecv(edge(p, side, 1), upright ? 1 : p->columns, upright ? p->column : MPI_DOUBLE, p->neighbour[side],
                  (int)opposite[side], MPI_COMM_WORLD, &request[side]);
    }
}

static void dawdle(const struct plate *p)
{
    if (p->rank != p->slow) return;
    struct timespec delay = {0, p->delay_us * 1000L / SLICES};
    nanosleep(&delay, NULL);
}

static void step(struct plate *p)
{
    MPI_Request request[2 * SIDES]; /* sends, then receives */
    int sent, first, count;
    send_edges(p, request);
    for (int slice = 0; slice < SLICES; slice++) {
        share_out(p->rows - 2, SLICES, slice, &first, &count);
        compute(p, first + 2, first + 1 + count, 2, p->columns - 1);
        dawdle(p);
        MPI_Testall(SIDES, request, &sent, MPI_STATUSES_IGNORE);
    }
    receive_edges(p, request + SIDES);
    MPI_Waitall(2 * SIDES, request, MPI_STATUSES_IGNORE);
    compute(p, 1, 1, 1, p->columns);
    if (p->rows > 1) compute(p, p->rows, p->rows, 1, p->columns);
    compute(p, 2, p->rows - 1, 1, 1);
    if (p->columns > 1) compute(p, 2, p->rows - 1, p->columns, p->columns);
    double *swap = p->now;
    p->now = p->next;
    p->next = swap;
}

/* What one step multiplies the initial shape by. */
static double decay(const struct plate *p)
{
    double wave = sin(M_PI / 2 / (p->points + 1));
    return 1 - 8 * p->ratio * wave * wave;
}

static double largest_error(struct plate *p)
{
    double scale = pow(decay(p), p->steps), mine = 0, all = 0;
    for (int i = 1; i <= p->rows; i++)
        for (int j = 1; j <= p->columns; j++)
            mine = fmax(mine, fabs(*at(p, p->now, i, j) - scale * shape(p, i, j)));
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

static double hottest(struct plate *p)
{
    double mine = 0, all = 0;
    for (int i = 1; i <= p->rows; i++)
        for (int j = 1; j <= p->columns; j++) mine = fmax(mine, *at(p, p->now, i, j));
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

static void read_options(struct plate *p, int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        int value = atoi(argv[i + 1]);
        if (strcmp(argv[i], "--points") == 0) p->points = value;
        else if (strcmp(argv[i], "--steps") == 0) p->steps = value;
        else if (strcmp(argv[i], "--slow") == 0) p->slow = value;
        else if (strcmp(argv[i], "--delay") == 0) p->delay_us = value;
        else fprintf(stderr, "heat: unknown option %s\n", argv[i]), MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (p->points < 2 * p->size || p->steps < 0 || p->delay_us < 0) {
        if (p->rank == 0) fprintf(stderr, "heat: needs at least %d points, and steps and delay of at least 0\n", 2 * p->size);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

int main(int argc, char **argv)
{
    struct plate p = {.points = 200, .steps = 100, .slow = -1, .delay_us = 4000, .ratio = 0.25};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &p.size);
    read_options(&p, argc, argv);
    divide(&p);
    start(&p);
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    for (int i = 0; i < p.steps; i++) step(&p);
    double took = MPI_Wtime() - began, error = largest_error(&p), top = hottest(&p);
    int right = error < 1e-12;
    if (p.rank == 0)
        printf("heat: %d x %d points on %d x %d ranks, %d steps in %.2f s: hottest %.12f, exact to %.1e: %s\n", p.points,
               p.points, p.rows_of_ranks, p.columns_of_ranks, p.steps, took, top, error, right ? "right" : "WRONG");
    MPI_Type_free(&p.column);
    free(p.now);
    free(p.next);
    MPI_Finalize();
    return right ? 0 : 1;
}
