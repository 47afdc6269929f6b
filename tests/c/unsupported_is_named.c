/* A function that is not implemented says so by its name, through the error handler.
 * RANKS: 1
 */
#include "check.h"

static int called = 0;

static void handler(MPI_Comm *comm, int *code, ...) {
    called++;
    CHECK(*comm == MPI_COMM_WORLD);
    SAME(*code, MPI_ERR_UNSUPPORTED_OPERATION);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    errors_return();
    CLASS(MPI_Session_flush_buffer(MPI_SESSION_NULL), MPI_ERR_UNSUPPORTED_OPERATION);
    MPI_Errhandler errhandler;
    OK(MPI_Comm_create_errhandler(handler, &errhandler));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler));
    OK(MPI_Errhandler_free(&errhandler));
    CLASS(MPI_Comm_flush_buffer(MPI_COMM_WORLD), MPI_ERR_UNSUPPORTED_OPERATION);
    SAME(called, 1);
    MPI_Finalize();
    return verdict();
}
