/* Agreement while members die, blocking and not: all that live get the same value and the same error.
 * RANKS: 2 4 7
 * OPTIONS: --survive
 */
#include "survive.h"

int main(void) {
    int rank, size, flag, least, most;
    MPI_Comm living;
    MPI_Request requests[2];
    MPI_Init(NULL, NULL);
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int *survives, known;
    OK(MPI_Comm_get_attr(MPI_COMM_SELF, MPIX_FT, &survives, &known));
    CHECK(known && *survives == 1);
    flag = ~(1 << rank);
    OK(MPIX_Comm_agree(MPI_COMM_WORLD, &flag));
    for (int i = 0; i < size; i++) SAME(flag >> i & 1, 0);
    SAME(flag >> size & 1, 1);
    int dead = 0;
    while (dead < size - 1) {
        /* One dies in the middle of many agreements, most of which it takes part in. */
        if (rank == dead) {
            for (int i = 0; i < 4 * dead; i++) {
                flag = 7;
                MPIX_Comm_agree(MPI_COMM_WORLD, &flag);
            }
            die();
        }
        int error = MPI_SUCCESS, rounds = 0, class = -1;
        /* The deaths before are acknowledged, so the next one is what ends this. */
        while (error == MPI_SUCCESS) {
            flag = 7;
            error = MPIX_Comm_agree(MPI_COMM_WORLD, &flag);
            SAME(flag, 7);
            rounds++;
        }
        MPI_Error_class(error, &class);
        SAME(class, MPIX_ERR_PROC_FAILED);
        dead++;
        living = shrunk(MPI_COMM_WORLD, size - dead);
        OK(MPI_Allreduce(&rounds, &least, 1, MPI_INT, MPI_MIN, living));
        OK(MPI_Allreduce(&rounds, &most, 1, MPI_INT, MPI_MAX, living));
        SAME(least, most);
        OK(MPI_Comm_free(&living));
        /* As long as one has not acknowledged it, all get the error. */
        if (rank != size - 1) OK(MPIX_Comm_failure_ack(MPI_COMM_WORLD));
        flag = rank;
        CLASS(MPIX_Comm_agree(MPI_COMM_WORLD, &flag), MPIX_ERR_PROC_FAILED);
        OK(MPIX_Comm_failure_ack(MPI_COMM_WORLD));
        int first = rank, second = 3;
        OK(MPIX_Comm_iagree(MPI_COMM_WORLD, &first, &requests[0]));
        OK(MPIX_Comm_iagree(MPI_COMM_WORLD, &second, &requests[1]));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        SAME(second, 3);
        OK(MPIX_Comm_ishrink(MPI_COMM_WORLD, &living, &requests[0]));
        OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
        OK(MPI_Comm_size(living, &first));
        SAME(first, size - dead);
        OK(MPI_Barrier(living));
        OK(MPI_Comm_free(&living));
    }
    MPI_Finalize();
    return verdict();
}
