/* What the standard says is not significant may be anything: the result of MPI_Exscan at rank 0.
 * RANKS: 1 2 4
 */
#include "check.h"

int main(int argc, char **argv) {
    static const int counts[] = {0, 1, 100, 5000, 100000};
    MPI_Request request;
    int rank;
    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    for (unsigned c = 0; c < sizeof counts / sizeof *counts; c++) {
        int n = counts[c], *own = malloc((size_t)n * sizeof *own + 1), *below = malloc((size_t)n * sizeof *own + 1);
        void *result = rank ? below : NULL;
        for (int form = 0; form < 3; form++) {
            for (int i = 0; i < n; i++) own[i] = rank + i, below[i] = -1;
            if (form == 0) {
                OK(MPI_Exscan(own, result, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
            } else if (form == 1) {
                OK(MPI_Iexscan(own, result, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request));
                OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            } else {
                OK(MPI_Exscan_init(own, result, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
                for (int start = 0; start < 3; start++) {
                    OK(MPI_Start(&request));
                    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
                }
                OK(MPI_Request_free(&request));
            }
            int wrong = 0;
            for (int i = 0; i < n; i++) wrong += own[i] != rank + i || below[i] != (rank ? rank * (rank - 1) / 2 + rank * i : -1);
            SAME(wrong, 0);
        }
        free(own);
        free(below);
    }
    /* One that lies at the operands is a mistake of all ranks, and none of them takes part. */
    CLASS(MPI_Exscan(&rank, &rank, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    CLASS(MPI_Iexscan(&rank, &rank, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request), MPI_ERR_BUFFER);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_Finalize();
    return verdict();
}
