/* A program that was started without mpiexec gets a launcher when it first needs one: it spawns, and its children spawn
 * and meet it at a port.
 * RANKS: 1
 * EXPECT: met
 */
#include "check.h"

int main(int argc, char **argv) {
    MPI_Comm parent, inter, third;
    char port[MPI_MAX_PORT_NAME], *arguments[] = {port, NULL};
    int word = -1, size;
    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_get_parent(&parent));
    if (argc > 1) {
        /* The children of the children connect to the port of the first program. */
        if (!strncmp(argv[1], "again", 5)) {
            OK(MPI_Comm_connect(argv[1] + 5, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &third));
            OK(MPI_Comm_disconnect(&third));
        } else {
            snprintf(port, sizeof port, "again%s", argv[1]);
            OK(MPI_Comm_spawn(argv[0], arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
            OK(MPI_Comm_rank(MPI_COMM_WORLD, &word));
            OK(MPI_Send(&word, 1, MPI_INT, 0, 3, parent));
            OK(MPI_Comm_disconnect(&inter));
        }
        OK(MPI_Comm_disconnect(&parent));
        MPI_Finalize();
        return verdict();
    }
    CHECK(parent == MPI_COMM_NULL);
    OK(MPI_Open_port(MPI_INFO_NULL, port));
    OK(MPI_Comm_spawn(argv[0], arguments, 3, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    for (int child = 0; child < 3; child++) {
        OK(MPI_Recv(&word, 1, MPI_INT, child, 3, inter, MPI_STATUS_IGNORE));
        SAME(word, child);
    }
    OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &third));
    OK(MPI_Comm_remote_size(third, &size));
    SAME(size, 2);
    OK(MPI_Comm_disconnect(&third));
    OK(MPI_Comm_disconnect(&inter));
    CLASS(MPI_Comm_spawn("/no/such/program", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE), MPI_ERR_SPAWN);
    if (!failures) printf("met\n");
    MPI_Finalize();
    return verdict();
}
