/* An error handler that ends the job: the sentence says which file, where in it, and what the system said;
 * the number is the error's class.
 * RANKS: 1 2
 * EXIT: 41
 * STDERR: MPI_File_write_at: /dev/full
 * STDERR: writing at byte 1000
 * STDERR: No space left on device
 */
#include "file.h"

int main(int argc, char **argv)
{
    MPI_File file;
    char bytes[100] = {0};
    MPI_Init(&argc, &argv);
    name_file("file_fatal");
    OK(MPI_File_open(MPI_COMM_WORLD, "/dev/full", MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    OK(MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL));
    MPI_File_write_at(file, 1000, bytes, 100, MPI_BYTE, MPI_STATUS_IGNORE);
    return 3;
}
