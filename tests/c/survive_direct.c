/* A member that dies in a collective operation in which the members copy between each other's memory: whoever waits for
 * the others hears of the death, also from one that has noticed it first and copies nothing any more.
 * RANKS: 12
 * OPTIONS: --survive
 */
#include "survive.h"
#include <stdlib.h>

enum { LIVING = 4, STAGES = 8, BLOCK = 1 << 18, FIRST = 2 };

/* Seconds. */
#define COPYING 5e-5

int main(int argc, char **argv) {
    int rank, *from, *to;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    from = calloc(LIVING + 1, BLOCK * sizeof *from);
    to = calloc(LIVING + 1, BLOCK * sizeof *to);
    CHECK(from && to);
    for (int stage = 0; stage < STAGES; stage++) {
        MPI_Comm comm;
        MPI_Request request;
        int error = MPI_SUCCESS, class;
        if (rank >= LIVING && rank != LIVING + stage) continue;
        MPI_Group world, members;
        int ranks[LIVING + 1] = {0, 1, 2, 3, LIVING + stage};
        OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
        OK(MPI_Group_incl(world, LIVING + 1, ranks, &members));
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, members, stage, &comm));
        OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
        for (int i = 0; rank >= LIVING; i++) {
            /* The test that takes longer than the others is that in which it copies; then it waits until all have. */
            int over = 0;
            MPI_Ialltoall(from, BLOCK, MPI_INT, to, BLOCK, MPI_INT, comm, &request);
            while (!over) {
                double begin = MPI_Wtime();
                MPI_Test(&request, &over, MPI_STATUS_IGNORE);
                if (i >= FIRST && (over || MPI_Wtime() - begin > COPYING)) die();
            }
        }
        while (!error) {
            error = MPI_Ialltoall(from, BLOCK, MPI_INT, to, BLOCK, MPI_INT, comm, &request);
            if (!error) error = MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        OK(MPI_Error_class(error, &class));
        SAME(class, MPIX_ERR_PROC_FAILED);
        OK(MPI_Comm_free(&comm));
        OK(MPI_Group_free(&members));
        OK(MPI_Group_free(&world));
    }
    free(from);
    free(to);
    OK(MPI_Finalize());
    return verdict();
}
