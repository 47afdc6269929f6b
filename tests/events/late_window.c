/* A program that is its own profiler and opens the window late:
 * three messages and two receives are in the queues before. */
#include "../../examples/peruse/profiler.c"

enum { EARLY = 3, POSTED = 2 };

int main(int argc, char **argv)
{
    int value = 0, early[EARLY];
    MPI_Request request[POSTED], sent[EARLY], late;
    PMPI_Init(&argc, &argv);
    for (int i = 0; i < EARLY; i++) PMPI_Isend(&value, 1, MPI_INT, 0, i, MPI_COMM_WORLD, &sent[i]);
    for (int i = 0; i < POSTED; i++) PMPI_Irecv(&early[i], 1, MPI_INT, 0, 10 + i, MPI_COMM_WORLD, &request[i]);
    start();
    /* Seen from its beginning to its end: one more message, one more receive. */
    MPI_Send(&value, 1, MPI_INT, 0, 20, MPI_COMM_WORLD);
    MPI_Irecv(&value, 1, MPI_INT, 0, 21, MPI_COMM_WORLD, &late);
    for (int i = 0; i < EARLY; i++) MPI_Recv(&early[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < POSTED; i++) MPI_Send(&value, 1, MPI_INT, 0, 10 + i, MPI_COMM_WORLD);
    MPI_Waitall(POSTED, request, MPI_STATUSES_IGNORE);
    MPI_Waitall(EARLY, sent, MPI_STATUSES_IGNORE);
    printf("late_window posted=%.0f unexpected=%.0f\n", measure[POSTED_Q_LEN].now, measure[UNEX_Q_LEN].now);
    MPI_Recv(&value, 1, MPI_INT, 0, 20, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&value, 1, MPI_INT, 0, 21, MPI_COMM_WORLD);
    MPI_Wait(&late, MPI_STATUS_IGNORE);
    return MPI_Finalize();
}
