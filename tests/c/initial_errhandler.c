/* The error handler that a launcher or a spawn asks for holds from the start.
 * RANKS: 2
 * OPTIONS: -universe 8 -initial-errhandler mpi_errors_return
 */
#include "check.h"

static MPI_Errhandler of(MPI_Comm comm) {
    MPI_Errhandler found;
    OK(MPI_Comm_get_errhandler(comm, &found));
    return found;
}

/* A child tells which one it has. */
static int child(MPI_Comm parent) {
    int number = MPI_Errhandler_toint(of(MPI_COMM_WORLD)), of_self = MPI_Errhandler_toint(of(MPI_COMM_SELF));
    SAME(of_self, number);
    OK(MPI_Send(&number, 1, MPI_INT, 0, 0, parent));
    OK(MPI_Comm_disconnect(&parent));
    OK(MPI_Finalize());
    return verdict();
}

static void spawned(char *self, const char *value, MPI_Errhandler expected) {
    MPI_Info info = MPI_INFO_NULL;
    MPI_Comm inter;
    int number;
    if (value) {
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "mpi_initial_errhandler", value));
    }
    OK(MPI_Comm_spawn(self, MPI_ARGV_NULL, 1, info, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE));
    OK(MPI_Recv(&number, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE));
    SAME(number, MPI_Errhandler_toint(expected));
    OK(MPI_Comm_disconnect(&inter));
    if (value) OK(MPI_Info_free(&info));
}

int main(int argc, char **argv) {
    MPI_Comm parent, inter, none = MPI_COMM_NULL;
    MPI_Info info;
    int size;
    /* Before MPI_Init, too. */
    if (getenv("PERUSAL_PARENT") == NULL) CHECK(MPI_Comm_size(MPI_COMM_WORLD, &size) != MPI_SUCCESS);
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) return child(parent);
    CHECK(of(MPI_COMM_WORLD) == MPI_ERRORS_RETURN);
    CHECK(of(MPI_COMM_SELF) == MPI_ERRORS_RETURN);
    CLASS(MPI_Comm_size(none, &size), MPI_ERR_COMM);
    CLASS(MPI_Send(&size, -1, MPI_INT, 0, 0, MPI_COMM_WORLD), MPI_ERR_COUNT);
    spawned(argv[0], "mpi_errors_return", MPI_ERRORS_RETURN);
    spawned(argv[0], " MPI_Errors_Abort", MPI_ERRORS_ABORT);
    spawned(argv[0], NULL, MPI_ERRORS_ARE_FATAL);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_initial_errhandler", "shrug"));
    CLASS(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, info, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE),
          MPI_ERR_INFO_VALUE);
    OK(MPI_Info_free(&info));
    OK(MPI_Finalize());
    return verdict();
}
