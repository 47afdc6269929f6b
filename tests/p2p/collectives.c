/* Collectives of every size one after the other, until somebody ends the job. */
#include <mpi.h>
#include <stdlib.h>

enum { N = 40000 };

int main(int argc, char **argv)
{
    static const int lengths[] = {1, 30, 31, 1000, N};
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double *a = calloc((size_t)N * (size_t)size, sizeof *a), *b = calloc((size_t)N * (size_t)size, sizeof *b);
    for (long i = 0;; i++) {
        int n = lengths[i % 5], root = (int)(i % size);
        MPI_Comm copy;
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Bcast(a, n, MPI_DOUBLE, root, MPI_COMM_WORLD);
        MPI_Allreduce(a, b, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        MPI_Reduce(a, b, n, MPI_DOUBLE, MPI_SUM, root, copy);
        MPI_Allgather(a, n, MPI_DOUBLE, b, n, MPI_DOUBLE, copy);
        MPI_Alltoall(a, n, MPI_DOUBLE, b, n, MPI_DOUBLE, copy);
        MPI_Comm_free(&copy);
    }
}
