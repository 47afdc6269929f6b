/* The loop that the specification of User Level Failure Mitigation shows for iterative solvers: members agree only when
 * one is about to leave the loop, and shrink and go on if they did not all see the same; ranks die in the reduction, at
 * the very end, and in what mends a death.
 * RANKS: 3 5 8
 * OPTIONS: --survive
 */
#include "survive.h"

static const double EPSILON = 1e-3;

int main(void) {
    int world_rank, size, left, repairs = 0, iterations = 0;
    double local = 1.0, norm = 1.0;
    MPI_Comm comm, smaller;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    while (norm > EPSILON) {
        iterations++;
        local /= 2;
        /* In the third iteration one dies, with five ranks one more in the repair; in the last one, with eight ranks,
         * the root of the repaired one. */
        if (iterations == 3 && world_rank == size - 1) die();
        if (size == 8 && iterations == 10 && world_rank == 0) die();
        int error = MPI_Allreduce(&local, &norm, 1, MPI_DOUBLE, MPI_MAX, comm), class;
        MPI_Error_class(error, &class);
        CHECK(class == MPI_SUCCESS || class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED);
        if (class == MPI_SUCCESS && norm > EPSILON) continue;
        if (class == MPIX_ERR_PROC_FAILED) OK(MPIX_Comm_revoke(comm));
        int all_succeeded = class == MPI_SUCCESS;
        /* Deaths need not have been acknowledged: what counts is the flag, which is the same at all. */
        class = MPIX_Comm_agree(comm, &all_succeeded);
        MPI_Error_class(class, &class);
        CHECK(class == MPI_SUCCESS || class == MPIX_ERR_PROC_FAILED);
        if (all_succeeded && class == MPI_SUCCESS) break;
        repairs++;
        if (size >= 5 && repairs == 1 && world_rank == 1) die();
        OK(MPIX_Comm_shrink(comm, &smaller));
        OK(MPI_Comm_set_errhandler(smaller, MPI_ERRORS_RETURN));
        OK(MPI_Comm_free(&comm));
        comm = smaller;
        norm = 1.0;
    }
    CHECK(repairs > 0);
    CHECK(norm <= EPSILON);
    MPI_Comm_size(comm, &left);
    SAME(left, size == 3 ? 2 : size == 5 ? 3 : 5);
    /* They all have gone as far, however often they had to repeat a step. */
    double least, most;
    OK(MPI_Allreduce(&norm, &least, 1, MPI_DOUBLE, MPI_MIN, comm));
    OK(MPI_Allreduce(&norm, &most, 1, MPI_DOUBLE, MPI_MAX, comm));
    CHECK(least == most);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return verdict();
}
