/* A child that fork makes after MPI_Init may not call MPI: it ends with a sentence, and its parent's job goes on.
 * RANKS: 1 2
 * STDERR: MPI_Recv called in a child that fork() made after MPI_Init
 * STDERR: MPI_Finalize called in a child that fork() made after MPI_Init
 */
#include "check.h"
#include <mpi.h>
#include <sys/wait.h>
#include <unistd.h>

static int status_of_child(int (*call)(void)) {
    pid_t child = fork();
    if (child == 0) {
        call();
        _exit(0);
    }
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int receive(void) {
    int value;
    return MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static int nothing(void) { return 0; }

int main(int argc, char **argv) {
    int rank, size, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    SAME(status_of_child(nothing), 0);
    SAME(status_of_child(receive), MPI_ERR_OTHER);
    SAME(status_of_child(MPI_Finalize), MPI_ERR_OTHER);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    SAME(sum, size * (size - 1) / 2);
    MPI_Finalize();
    return verdict();
}
