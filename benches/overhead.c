/* overhead.c: three workloads whose time a tool that listens to events may change.
 *
 *   mpiexec -n 2 overhead [ROUNDS]
 *
 * Prints "latency_ns=… rate_mps=… halo_us=…": the best of ROUNDS rounds (5).
 *
 * latency: one way of an 8-byte ping-pong between blocking calls. rate: messages of 8 bytes a second, 64 receives
 * posted ahead, 64 sends, all waited for. halo: one step of a five-point stencil on a periodic grid, 256 x 256 doubles
 * a rank, its four edges exchanged by nonblocking calls. Any even number of ranks: ranks 2k and 2k + 1 are pairs;
 * rank 0 tells the mean. The best round is printed,
 * for what others do on the machine only ever makes a round longer. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PINGS = 20000, WINDOW = 64, WINDOWS = 1000, SIDE = 256, STEPS = 300 };

static int rank, size;

static double latency(void)
{
    char byte[8] = {0};
    int peer = rank ^ 1;
    double start = MPI_Wtime();
    for (int i = 0; i < PINGS; i++) {
        if (rank % 2 == 0) {
            MPI_Send(byte, sizeof byte, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
            MPI_Recv(byte, sizeof byte, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(byte, sizeof byte, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(byte, sizeof byte, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
        }
    }
    return (MPI_Wtime() - start) / PINGS / 2 * 1e9;
}

/* Microseconds for one message, so that less is better as in the others. */
static double rate(void)
{
    static char bytes[WINDOW][8];
    MPI_Request requests[WINDOW];
    char token = 0;
    int peer = rank ^ 1;
    double start = MPI_Wtime();
    for (int w = 0; w < WINDOWS; w++) {
        for (int i = 0; i < WINDOW; i++) {
            if (rank % 2 == 0) {
                MPI_Isend(bytes[i], 8, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &requests[i]);
            } else {
                MPI_Irecv(bytes[i], 8, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &requests[i]);
            }
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        if (rank % 2 == 0) {
            MPI_Recv(&token, 1, MPI_BYTE, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Send(&token, 1, MPI_BYTE, peer, 3, MPI_COMM_WORLD);
        }
    }
    return (MPI_Wtime() - start) / (WINDOWS * WINDOW) * 1e6;
}

typedef double field[SIDE + 2][SIDE + 2];

static void exchange(MPI_Comm grid, field f, MPI_Datatype column)
{
    int up, down, left, right;
    MPI_Request requests[8];
    MPI_Cart_shift(grid, 0, 1, &up, &down);
    MPI_Cart_shift(grid, 1, 1, &left, &right);
    MPI_Irecv(&f[0][1], SIDE, MPI_DOUBLE, up, 1, grid, &requests[0]);
    MPI_Irecv(&f[SIDE + 1][1], SIDE, MPI_DOUBLE, down, 2, grid, &requests[1]);
    MPI_Irecv(&f[1][0], 1, column, left, 3, grid, &requests[2]);
    MPI_Irecv(&f[1][SIDE + 1], 1, column, right, 4, grid, &requests[3]);
    MPI_Isend(&f[SIDE][1], SIDE, MPI_DOUBLE, down, 1, grid, &requests[4]);
    MPI_Isend(&f[1][1], SIDE, MPI_DOUBLE, up, 2, grid, &requests[5]);
    MPI_Isend(&f[1][SIDE], 1, column, right, 3, grid, &requests[6]);
    MPI_Isend(&f[1][1], 1, column, left, 4, grid, &requests[7]);
    MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
}

static double halo(MPI_Comm grid, MPI_Datatype column)
{
    static field now, next;
    memset(now, 0, sizeof now);
    now[SIDE / 2][SIDE / 2] = 1;
    MPI_Barrier(grid);
    double start = MPI_Wtime();
    for (int step = 0; step < STEPS; step++) {
        exchange(grid, step % 2 ? next : now, column);
        double(*from)[SIDE + 2] = step % 2 ? next : now, (*to)[SIDE + 2] = step % 2 ? now : next;
        for (int i = 1; i <= SIDE; i++) {
            for (int j = 1; j <= SIDE; j++) {
                to[i][j] = 0.2 * (from[i][j] + from[i - 1][j] + from[i + 1][j] + from[i][j - 1] + from[i][j + 1]);
            }
        }
    }
    double spent = MPI_Wtime() - start, sum = 0, all;
    for (int i = 1; i <= SIDE; i++) {
        for (int j = 1; j <= SIDE; j++) sum += now[i][j];
    }
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, grid);
    /* The stencil moves heat about and loses none. */
    if (all < size * (1 - 1e-9) || all > size * (1 + 1e-9)) {
        fprintf(stderr, "overhead: the sum is %.15g, not %d\n", all, size);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return spent / STEPS * 1e6;
}

static double mean(double value)
{
    double sum;
    MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum / size;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int rounds = argc > 1 ? atoi(argv[1]) : 5, dims[2] = {0, 0}, periods[2] = {1, 1};
    if (size % 2 != 0 || rounds < 1) {
        if (rank == 0) fprintf(stderr, "usage: mpiexec -n EVEN overhead [ROUNDS]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Comm grid;
    MPI_Datatype column;
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Type_vector(SIDE, 1, SIDE + 2, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    double best[3] = {1e300, 1e300, 1e300};
    for (int round = 0; round < rounds; round++) {
        double now[3] = {mean(latency()), mean(rate()), mean(halo(grid, column))};
        for (int i = 0; i < 3; i++) best[i] = now[i] < best[i] ? now[i] : best[i];
    }
    if (rank == 0) printf("latency_ns=%.1f rate_mps=%.3f halo_us=%.2f\n", best[0], 1 / best[1], best[2]);
    MPI_Type_free(&column);
    MPI_Comm_free(&grid);
    MPI_Finalize();
    return 0;
}
