/* late_receiver: rank 0 asks for the last of the messages that every other rank has sent, then for the rest.
 *
 *   mpicc examples/tools/late_receiver.c -o late_receiver && mpiexec -n 3 ./late_receiver [messages] [milliseconds] */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size, value = 0, messages = argc > 1 ? atoi(argv[1]) : 10, pause = argc > 2 ? atoi(argv[2]) : 20;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int tag = 0; rank > 0 && tag < messages; tag++) MPI_Send(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
    /* All have sent what they send. */
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        /* The first message that rank 0 waits for is each sender's last: what comes before it is unexpected. */
        for (int source = 1; source < size; source++)
            MPI_Recv(&value, 1, MPI_INT, source, messages - 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        usleep(1000 * pause);
        for (int source = 1; source < size; source++)
            for (int tag = 0; tag < messages - 1; tag++)
                MPI_Recv(&value, 1, MPI_INT, source, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
