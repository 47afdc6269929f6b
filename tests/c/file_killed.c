/* A rank is killed in a collective write: the others learn of it, and the job ends.
 * RANKS: 3
 * EXIT: 137
 * STDERR: rank 1
 */
#include "file.h"
#include <signal.h>

enum { BLOCKS = 2000, BLOCK = 100 };

int main(int argc, char **argv)
{
    static char buffer[BLOCKS * BLOCK];
    MPI_Init(&argc, &argv);
    name_file("file_killed");
    MPI_File file;
    MPI_Datatype strided;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    unlink(name);
    OK(MPI_Type_vector(BLOCKS, BLOCK, BLOCK * size, MPI_BYTE, &strided));
    OK(MPI_Type_commit(&strided));
    OK(MPI_File_set_view(file, rank * BLOCK, MPI_BYTE, strided, "native", MPI_INFO_NULL));
    for (int turn = 0;; turn++) {
        if (turn == 20 && rank == 1) raise(SIGKILL);
        if (MPI_File_write_at_all(file, 0, buffer, BLOCKS * BLOCK, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
    }
    /* An error is as good as being ended by the launcher; only a hang is not. */
    MPI_Abort(MPI_COMM_WORLD, 9);
    return verdict();
}
