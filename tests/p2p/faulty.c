/* Messages of all sizes and collective operations, with every byte checked, on ranks that somebody stops, interrupts or
 * limits. Arguments: how many rounds; what else to do: "fork" starts a program in each round, "nest COMMAND" a job.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const int lengths[] = {0, 8, 1000, 20000, 400000};
enum { MOST = 400000 };

static void noticed(int signal) { (void)signal; }

static void wrong(const char *what, int round)
{
    fprintf(stderr, "faulty: %s in round %d\n", what, round);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void start(int round)
{
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(127);
    }
    int status;
    if (pid < 0) wrong("fork fails", round);
    while (waitpid(pid, &status, 0) < 0) {}
    if (status != 0) wrong("the program fails", round);
}

int main(int argc, char **argv)
{
    int rank, size, rounds = argc > 1 ? atoi(argv[1]) : 10;
    const char *also = argc > 2 ? argv[2] : "";
    /* Without SA_RESTART: system calls end with EINTR. */
    struct sigaction action = {.sa_handler = noticed};
    sigaction(SIGUSR1, &action, NULL);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *out = malloc(MOST), *in = malloc(MOST);
    if (out == NULL || in == NULL) wrong("no memory", 0);
    for (int round = 0; round < rounds; round++) {
        int length = lengths[round % 5], right = (rank + 1) % size, left = (rank + size - 1) % size;
        memset(out, rank + round, length);
        memset(in, 0x55, length);
        MPI_Request requests[2];
        MPI_Irecv(in, length, MPI_CHAR, left, round, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, length, MPI_CHAR, right, round, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < length; i++)
            if (in[i] != (char)(left + round)) wrong("a message is spoiled", round);
        long sum, mine = rank + round;
        MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        if (sum != (long)size * round + (long)size * (size - 1) / 2) wrong("a sum is wrong", round);
        MPI_Bcast(out, length, MPI_CHAR, round % size, MPI_COMM_WORLD);
        for (int i = 0; i < length; i++)
            if (out[i] != (char)(round % size + round)) wrong("a broadcast is spoiled", round);
        if (strcmp(also, "fork") == 0) start(round);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("done\n");
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
