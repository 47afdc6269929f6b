/* A rank that is killed while both copy a message ends the job as any other does,
 * and the other rank reads on what is mapped.
 * RANKS: 2
 * EXIT: 137
 * STDERR: killed by SIGKILL (signal 9)
 */
#include "check.h"
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

static void die(int signal)
{
    (void)signal;
    kill(getpid(), SIGKILL);
}

int main(int argc, char **argv)
{
    enum { BYTES = 32 << 20 };
    int rank;
    char *buffer;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    OK(MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &buffer));
    if (rank == 1) {
        /* One of the next ten milliseconds. */
        struct itimerval soon = {{0, 0}, {0, 1000 + (getpid() % 10) * 1000}};
        signal(SIGALRM, die);
        setitimer(ITIMER_REAL, &soon, NULL);
    }
    for (;;) {
        if (rank == 0) OK(MPI_Send(buffer, BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
        OK(MPI_Recv(buffer, BYTES, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        if (rank == 1) OK(MPI_Send(buffer, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD));
    }
}
