/* dynamic.c: processes that are started by others, and groups that meet at a port. */
#include "bench.h"

enum { CHILDREN = 8, SPAWNS = 5 };

/* Of a process that was started by metric_spawn: its part. */
void bench_child(MPI_Comm parent)
{
    int rank;
    MPI_Comm_rank(parent, &rank);
    if (rank == 0) MPI_Send(&rank, 1, MPI_INT, 0, 0, parent);
    MPI_Comm_disconnect(&parent);
}

static double spawn(void *unused)
{
    double times[SPAWNS];
    (void)unused;
    for (int i = 0; i < SPAWNS; i++) {
        MPI_Comm children;
        int word;
        double began = bench_now();
        MPI_Comm_spawn(bench_program, MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children, MPI_ERRCODES_IGNORE);
        MPI_Recv(&word, 1, MPI_INT, 0, 0, children, MPI_STATUS_IGNORE);
        times[i] = bench_now() - began;
        MPI_Comm_disconnect(&children);
    }
    return bench_median(times, SPAWNS);
}

/* spawn/8, one rank: milliseconds until a message of the children is there. */
void metric_spawn(void)
{
    bench_result(bench_steady(spawn, NULL) * 1e3, "spawn/%d", CHILDREN);
}

static MPI_Comm meet(const char *port)
{
    MPI_Comm other;
    if (bench_rank == 0)
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
    else
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
    return other;
}

static void connect(long n, void *port)
{
    for (long i = 0; i < n; i++) {
        MPI_Comm other = meet(port);
        MPI_Comm_disconnect(&other);
    }
}

static void bounce(long n, void *comm)
{
    const MPI_Comm other = *(MPI_Comm *)comm;
    char word[8] = {0};
    for (long i = 0; i < n; i++) {
        if (bench_rank == 0) MPI_Send(word, 8, MPI_CHAR, 0, 0, other);
        MPI_Recv(word, 8, MPI_CHAR, 0, 0, other, MPI_STATUS_IGNORE);
        if (bench_rank != 0) MPI_Send(word, 8, MPI_CHAR, 0, 0, other);
    }
}

/* connect/2, two ranks: microseconds to accept, connect and disconnect;
 * connect-latency/8: half a round trip between those that have met. */
void metric_connect(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm other;
    if (bench_rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
    bench_result(bench_measure(MPI_COMM_WORLD, connect, port, 0.3) * 1e6, "connect/2");
    other = meet(port);
    bench_result(bench_measure(MPI_COMM_WORLD, bounce, &other, 0.15) * 1e6 / 2, "connect-latency/8");
    MPI_Comm_disconnect(&other);
    if (bench_rank == 0) MPI_Close_port(port);
}
