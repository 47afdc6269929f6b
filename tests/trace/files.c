/* Three ranks and one file: a collective write, an access that waits for a lock, the shared pointer. The test reads the
 * trace of this. Arguments: the file's name; how late rank 2 comes, in microseconds.
 */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    enum { WORDS = 1000 };
    static int words[WORDS];
    int rank;
    MPI_File file;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    /* Rank 2 comes late to a collective access. */
    if (rank == 2 && argc > 2) usleep(atoi(argv[2]));
    MPI_File_write_at_all(file, rank * (MPI_Offset)sizeof words, words, WORDS, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_iread_at(file, 0, words, WORDS, MPI_INT, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_File_write_shared(file, words, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_read_ordered(file, words, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
