/* Collectives that get longer and longer, on communicators of their own, by members that are far apart: the parts of
 * the bulk grow while some members still read what the others have left there. Blocking, nonblocking and persistent;
 * what arrives is compared with what must.
 * RANKS: 2 3 5
 */
#include "check.h"
#include <unistd.h>

enum { MOST = 300000, OPERATIONS = 6, FORMS = 3, TRIALS = 24 };

static int rank, size;
static unsigned seed;

static unsigned draw(void)
{
    seed = seed * 1103515245u + 12345u;
    return seed >> 16;
}

/* Some members are late. */
static void dawdle(void)
{
    if (draw() % 3 == 0) {
        double until = MPI_Wtime() + (draw() % 200) * 1e-6;
        while (MPI_Wtime() < until) {
        }
    }
}

static unsigned char byte_of(int from, int to, long i, int turn)
{
    return (unsigned char)(from * 31 + to * 7 + i + turn * 13);
}

static long value_of(int from, long i, int turn)
{
    return from * 1000 + i % 977 + turn;
}

/* Completes what a nonblocking or a persistent form has begun. */
static void run(int form, MPI_Request *request)
{
    if (form == 2)
        MPI_Start(request);
    if (form > 0) {
        dawdle();
        MPI_Wait(request, MPI_STATUS_IGNORE);
    }
    if (form == 2)
        MPI_Request_free(request);
}

/* One operation of `n` bytes (or so) a member; whether it was right. */
static int perform(MPI_Comm comm, int operation, int form, int n, int turn, unsigned char *in, unsigned char *out)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int root = turn % size, numbers = n / 8;
    long *values = (long *)in, *results = (long *)out;
    memset(out, 0, (size_t)n * size);
    switch (operation) {
    case 0:
        for (long i = 0; i < n; i++)
            out[i] = rank == root ? byte_of(root, 0, i, turn) : 0;
        if (form == 0)
            MPI_Bcast(out, n, MPI_BYTE, root, comm);
        else if (form == 1)
            MPI_Ibcast(out, n, MPI_BYTE, root, comm, &request);
        else
            MPI_Bcast_init(out, n, MPI_BYTE, root, comm, MPI_INFO_NULL, &request);
        run(form, &request);
        for (long i = 0; i < n; i++)
            if (out[i] != byte_of(root, 0, i, turn))
                return 0;
        return 1;
    case 1:
        for (long i = 0; i < n; i++)
            in[i] = byte_of(rank, 0, i, turn);
        if (form == 0)
            MPI_Allgather(in, n, MPI_BYTE, out, n, MPI_BYTE, comm);
        else if (form == 1)
            MPI_Iallgather(in, n, MPI_BYTE, out, n, MPI_BYTE, comm, &request);
        else
            MPI_Allgather_init(in, n, MPI_BYTE, out, n, MPI_BYTE, comm, MPI_INFO_NULL, &request);
        run(form, &request);
        for (int from = 0; from < size; from++)
            for (long i = 0; i < n; i++)
                if (out[(long)from * n + i] != byte_of(from, 0, i, turn))
                    return 0;
        return 1;
    case 2:
        for (int to = 0; to < size; to++)
            for (long i = 0; i < n; i++)
                in[(long)to * n + i] = byte_of(rank, to, i, turn);
        if (form == 0)
            MPI_Alltoall(in, n, MPI_BYTE, out, n, MPI_BYTE, comm);
        else if (form == 1)
            MPI_Ialltoall(in, n, MPI_BYTE, out, n, MPI_BYTE, comm, &request);
        else
            MPI_Alltoall_init(in, n, MPI_BYTE, out, n, MPI_BYTE, comm, MPI_INFO_NULL, &request);
        run(form, &request);
        for (int from = 0; from < size; from++)
            for (long i = 0; i < n; i++)
                if (out[(long)from * n + i] != byte_of(from, rank, i, turn))
                    return 0;
        return 1;
    case 3:
        for (long i = 0; i < n; i++)
            in[i] = byte_of(rank, 0, i, turn);
        if (form == 0)
            MPI_Gather(in, n, MPI_BYTE, out, n, MPI_BYTE, root, comm);
        else if (form == 1)
            MPI_Igather(in, n, MPI_BYTE, out, n, MPI_BYTE, root, comm, &request);
        else
            MPI_Gather_init(in, n, MPI_BYTE, out, n, MPI_BYTE, root, comm, MPI_INFO_NULL, &request);
        run(form, &request);
        for (int from = 0; rank == root && from < size; from++)
            for (long i = 0; i < n; i++)
                if (out[(long)from * n + i] != byte_of(from, 0, i, turn))
                    return 0;
        return 1;
    case 4:
        for (long i = 0; i < numbers; i++)
            values[i] = value_of(rank, i, turn);
        if (form == 0)
            MPI_Allreduce(values, results, numbers, MPI_LONG, MPI_SUM, comm);
        else if (form == 1)
            MPI_Iallreduce(values, results, numbers, MPI_LONG, MPI_SUM, comm, &request);
        else
            MPI_Allreduce_init(values, results, numbers, MPI_LONG, MPI_SUM, comm, MPI_INFO_NULL, &request);
        run(form, &request);
        for (long i = 0; i < numbers; i++)
            if (results[i] != 1000L * size * (size - 1) / 2 + size * (value_of(0, i, turn)))
                return 0;
        return 1;
    default:
        for (long i = 0; i < numbers; i++)
            values[i] = value_of(rank, i, turn);
        if (form == 0)
            MPI_Scan(values, results, numbers, MPI_LONG, MPI_SUM, comm);
        else if (form == 1)
            MPI_Iscan(values, results, numbers, MPI_LONG, MPI_SUM, comm, &request);
        else
            MPI_Scan_init(values, results, numbers, MPI_LONG, MPI_SUM, comm, MPI_INFO_NULL, &request);
        run(form, &request);
        for (long i = 0; i < numbers; i++)
            if (results[i] != 1000L * rank * (rank + 1) / 2 + (rank + 1) * (value_of(0, i, turn)))
                return 0;
        return 1;
    }
}

/* A persistent operation, which has a team of its own. */
static int perform_often(MPI_Comm comm, int n, unsigned char *in, unsigned char *out)
{
    MPI_Request request;
    MPI_Alltoall_init(in, n, MPI_BYTE, out, n, MPI_BYTE, comm, MPI_INFO_NULL, &request);
    for (int turn = 0; turn < 60; turn++) {
        for (int to = 0; to < size; to++)
            for (long i = 0; i < n; i++)
                in[(long)to * n + i] = byte_of(rank, to, i, turn);
        dawdle();
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int from = 0; from < size; from++)
            for (long i = 0; i < n; i++)
                if (out[(long)from * n + i] != byte_of(from, rank, i, turn))
                    return 0;
    }
    MPI_Request_free(&request);
    return 1;
}

/* The last rank comes late to the last two of five gathers of which it is the root. The last one needs longer parts,
 * and the first of them lies where the fourth of the short ones was:
 * it must not be written before that has been read. */
static void late_root(unsigned char *in, unsigned char *out)
{
    enum { SHORT = 300, LONG = 20000, GATHERS = 5 };
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int turn = 0; turn < GATHERS; turn++) {
        if (turn < GATHERS - 1)
            OK(MPI_Barrier(comm));
        if (turn == GATHERS - 2 && rank == size - 1)
            usleep(50000);
        int n = turn < GATHERS - 1 ? SHORT : LONG;
        for (long i = 0; i < n; i++)
            in[i] = byte_of(rank, 0, i, turn);
        OK(MPI_Gather(in, n, MPI_BYTE, out, n, MPI_BYTE, size - 1, comm));
        for (int from = 0; rank == size - 1 && from < size; from++)
            for (long i = 0; i < n; i++)
                if (out[(long)from * n + i] != byte_of(from, 0, i, turn)) {
                    fprintf(stderr, "gather %d: byte %ld of rank %d is wrong\n", turn, i, from);
                    failures++;
                    break;
                }
    }
    OK(MPI_Comm_free(&comm));
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    unsigned char *in = malloc((size_t)MOST * size), *out = malloc((size_t)MOST * size);
    late_root(in, out);
    for (int trial = 0; trial < TRIALS; trial++) {
        MPI_Comm comm;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        seed = 77u + 1000u * trial;
        int turn = 0;
        for (double length = 200; length < MOST; length *= 1.5, turn++) {
            int operation = draw() % OPERATIONS, form = draw() % FORMS, n = (int)length;
            unsigned same = seed;
            seed += 7919u * rank;
            dawdle();
            if (!perform(comm, operation, form, n, turn, in, out)) {
                fprintf(stderr, "rank %d: operation %d, form %d, %d bytes is wrong\n", rank, operation, form, n);
                failures++;
            }
            seed = same;
        }
        OK(MPI_Comm_free(&comm));
    }
    for (int n = 1; n < 40000; n = n * 5 + 3)
        CHECK(perform_often(MPI_COMM_WORLD, n, in, out));
    free(in);
    free(out);
    OK(MPI_Finalize());
    return verdict();
}
