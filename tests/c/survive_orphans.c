/* The root of a spawn dies before the spawned ones have met it: those end, and the others go on; the job ends well.
 * RANKS: 3
 * OPTIONS: --survive --universe 8
 */
#include "survive.h"
#include <stdlib.h>

int main(int argc, char **argv) {
    char number[20];
    int rank, one = 1, sum, class;
    long pid = getpid();
    if (argc > 1) kill(atoi(argv[1]), SIGKILL);
    MPI_Init(&argc, &argv);
    if (argc > 1) {
        /* Nobody is left to meet: MPI_Init does not return. */
        fprintf(stderr, "a spawned process goes on\n");
        return 9;
    }
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Bcast(&pid, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    snprintf(number, sizeof number, "%ld", pid);
    char *arguments[] = {number, NULL};
    MPI_Comm children, living;
    int error = MPI_Comm_spawn(argv[0], arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    MPI_Error_class(error, &class);
    CHECK(class == MPIX_ERR_PROC_FAILED || class == MPI_ERR_SPAWN);
    living = shrunk(MPI_COMM_WORLD, 2);
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, living));
    SAME(sum, 2);
    OK(MPI_Comm_free(&living));
    MPI_Finalize();
    return verdict();
}
