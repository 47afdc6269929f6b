/* Collective operations on a communicator that a member of has died raise an error at all others, whatever they do;
 * after MPIX_Comm_shrink they work again.
 * RANKS: 2 3 5 8
 * OPTIONS: --survive
 */
#include "survive.h"

enum { N = 1 << 18 };
static int in[N], out[N];

static void use(MPI_Comm comm) {
    int rank, size, sum = 0;
    MPI_Request request;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    SAME(sum, size * (size - 1) / 2);
    for (int i = 0; i < N; i++) in[i] = rank + i;
    OK(MPI_Allreduce(in, out, N, MPI_INT, MPI_SUM, comm));
    SAME(out[N - 1], size * (size - 1) / 2 + size * (N - 1));
    OK(MPI_Ibarrier(comm, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Bcast(in, N, MPI_INT, size - 1, comm));
    SAME(in[0], size - 1);
}

int main(void) {
    int rank, size;
    MPI_Request request;
    MPI_Comm now, old;
    MPI_Init(NULL, NULL);
    errors_return();
    MPI_Comm_dup(MPI_COMM_WORLD, &now);
    MPI_Comm_set_errhandler(now, MPI_ERRORS_RETURN);
    for (int step = 0;; step++) {
        OK(MPI_Comm_rank(now, &rank));
        OK(MPI_Comm_size(now, &size));
        if (size == 1) break;
        use(now);
        if (rank == (step % 2 ? 0 : size - 1)) die();
        int error = MPI_SUCCESS;
        /* The members may be in different operations when it dies. */
        for (int i = rank; error == MPI_SUCCESS; i++) {
            switch (step % 4) {
            case 0: error = MPI_Barrier(now); break;
            case 1: error = MPI_Allreduce(in, out, N, MPI_INT, MPI_MAX, now); break;
            case 2: error = MPI_Bcast(in, N, MPI_INT, 0, now); break;
            default:
                error = MPI_Iallreduce(in, out, 64, MPI_INT, MPI_SUM, now, &request);
                if (error == MPI_SUCCESS) error = MPI_Wait(&request, MPI_STATUS_IGNORE);
            }
        }
        CLASS(error, MPIX_ERR_PROC_FAILED);
        /* A message to the dead fails at once, but for 0.2 s a root may still complete what the others do not see fail.
         * A barrier fails thereafter. */
        CLASS(MPI_Barrier(now), MPIX_ERR_PROC_FAILED);
        MPI_Comm dup = MPI_COMM_NULL;
        CLASS(MPI_Comm_dup(now, &dup), MPIX_ERR_PROC_FAILED);
        CLASS(MPI_Comm_split(now, 0, 0, &dup), MPIX_ERR_PROC_FAILED);
        old = now;
        now = shrunk(old, size - 1);
        OK(MPI_Comm_free(&old));
    }
    OK(MPI_Comm_free(&now));
    MPI_Finalize();
    return verdict();
}
