/* Two ranks, one in each group of an intercommunicator, send each other a message and broadcast one; then both spawn a
 * process, which sends each of them one. */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, value = 3;
    MPI_Comm groups, parent, children;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        for (int to = 0; to < 2; to++) MPI_Send(&value, 1, MPI_INT, to, 6, parent);
        MPI_Comm_disconnect(&parent);
        MPI_Finalize();
        return 0;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 1 - rank, 1, &groups);
    MPI_Comm_set_name(groups, "groups");
    MPI_Sendrecv(&value, 1, MPI_INT, 0, 5, &value, 1, MPI_INT, 0, 5, groups, MPI_STATUS_IGNORE);
    MPI_Bcast(&value, 1, MPI_INT, rank == 1 ? MPI_ROOT : 0, groups);
    MPI_Comm_free(&groups);
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    MPI_Comm_set_name(children, "children");
    MPI_Recv(&value, 1, MPI_INT, 0, 6, children, MPI_STATUS_IGNORE);
    MPI_Comm_disconnect(&children);
    MPI_Finalize();
    return 0;
}
