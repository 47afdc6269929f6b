/* pingpong.c: one-way latency and bandwidth between ranks 0 and 1, by message size.
 *
 *   mpiexec -n 2 pingpong [largest_bytes [milliseconds_per_size]]        defaults: 4 MiB, 200 ms
 *
 * The figure for a size is the best of ten batches, so that what else the machine does counts least. Content is
 * checked once per batch. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 10, TAG = 5 };

static void exchange(char *buf, int bytes, int rank, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        if (rank == 0) {
            MPI_Send(buf, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
            MPI_Recv(buf, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(buf, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(buf, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        }
    }
}

static double batch(char *buf, int bytes, int rank, int rounds)
{
    double began = MPI_Wtime();
    exchange(buf, bytes, rank, rounds);
    return (MPI_Wtime() - began) / rounds / 2;
}

/* How many rounds fill a batch; rank 0 decides. */
static int rounds_for(char *buf, int bytes, int rank, double seconds)
{
    double one = batch(buf, bytes, rank, 10);
    int rounds = (int)(seconds / BATCHES / (2 * one)) + 1;
    MPI_Bcast(&rounds, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return rounds;
}

static void measure(char *buf, int bytes, int rank, double seconds)
{
    int rounds = rounds_for(buf, bytes, rank, seconds), wrong = 0;
    double best = 1e30;
    for (int i = 0; i < BATCHES; i++) {
        memset(buf, rank == 0 ? i + 1 : 0, (size_t)bytes);
        double time = batch(buf, bytes, rank, rounds);
        if (time < best) best = time;
        if (bytes > 0) wrong += buf[0] != i + 1 || buf[bytes - 1] != i + 1;
    }
    if (rank == 0)
        printf("pingpong bytes=%d latency_us=%.3f MB_per_s=%.1f wrong=%d\n", bytes, best * 1e6, bytes / best / 1e6, wrong);
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int largest = argc > 1 ? atoi(argv[1]) : 4 << 20;
    double seconds = (argc > 2 ? atof(argv[2]) : 200) * 1e-3;
    if (size != 2 || largest < 0) {
        if (rank == 0) fprintf(stderr, "pingpong: needs exactly two ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    char *buf = malloc((size_t)largest + 1);
    measure(buf, 0, rank, seconds);
    for (int bytes = 8; bytes <= largest; bytes *= 2) measure(buf, bytes, rank, seconds);
    free(buf);
    MPI_Finalize();
    return 0;
}
