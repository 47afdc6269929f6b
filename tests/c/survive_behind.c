/* A rank that dies right behind an operation of all leaves that operation complete at the others:
 * they have it, and fail in the next.
 * RANKS: 3 7
 * OPTIONS: --survive
 */
#include "survive.h"

enum { N = 1 << 16 };
static int in[N], out[N];

int main(void) {
    int rank, size, sum = 0;
    MPI_Request request;
    MPI_Comm now, dup;
    MPI_Init(NULL, NULL);
    errors_return();
    MPI_Comm_dup(MPI_COMM_WORLD, &now);
    MPI_Comm_set_errhandler(now, MPI_ERRORS_RETURN);
    for (int step = 0;; step++) {
        OK(MPI_Comm_rank(now, &rank));
        OK(MPI_Comm_size(now, &size));
        if (size == 1) break;
        dup = MPI_COMM_NULL;
        switch (step % 6) {
        case 0: OK(MPI_Barrier(now)); break;
        case 1:
            OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, now));
            SAME(sum, size * (size - 1) / 2);
            break;
        case 2: OK(MPI_Comm_dup(now, &dup)); break;
        case 3:
            for (int i = 0; i < N; i++) in[i] = 1;
            OK(MPI_Allreduce(in, out, N, MPI_INT, MPI_SUM, now));
            SAME(out[N - 1], size);
            break;
        case 4:
            OK(MPI_Ibarrier(now, &request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            break;
        default: OK(MPI_Comm_split(now, 0, rank, &dup));
        }
        if (rank == size / 2) die();
        await_deaths(now, 1);
        CLASS(MPI_Barrier(now), MPIX_ERR_PROC_FAILED);
        if (dup != MPI_COMM_NULL) OK(MPI_Comm_free(&dup));
        MPI_Comm old = now;
        now = shrunk(old, size - 1);
        OK(MPI_Comm_free(&old));
    }
    OK(MPI_Comm_free(&now));
    MPI_Finalize();
    return verdict();
}
