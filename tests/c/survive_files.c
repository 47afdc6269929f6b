/* Files of a communicator with a rank that has died: independent accesses go on, collective ones raise an error,
 * nothing hangs, and those that live open the file again and go on where they were.
 * RANKS: 3 5
 * OPTIONS: --survive
 */
#include "survive.h"
#include <sys/stat.h>

int main(void) {
    int rank, size, all[8] = {0}, twice = 0;
    MPI_File file, again;
    MPI_Request request;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *name = "survive_files.out";
    int dead = size / 2, mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
    OK(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file));
    OK(MPI_File_set_size(file, 0));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_write_at_all(file, rank, &rank, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_sync(file));
    /* A pipe whose next part is the dead rank's: more than it holds. */
    static char much[1 << 20];
    const char *pipe = "survive_files.pipe";
    MPI_File stream;
    if (rank == 0) SAME(mkfifo(pipe, 0600), 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_open(MPI_COMM_WORLD, pipe, MPI_MODE_RDWR, MPI_INFO_NULL, &stream));
    if (rank == dead) {
        OK(MPI_File_iwrite_shared(stream, much, sizeof much, MPI_BYTE, &request));
        die();
    }
    await_deaths(MPI_COMM_WORLD, 1);

    /* What needs nobody else. */
    int value = 100 + rank;
    OK(MPI_File_write_at(file, size + rank, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_iread_at(file, dead, &twice, 1, MPI_INT, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    SAME(twice, dead);
    /* What waits for the dead one. */
    CLASS(MPI_File_write_shared(stream, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    OK(MPI_File_iwrite_shared(stream, &value, 1, MPI_INT, &request));
    CLASS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    (void)MPI_File_close(&stream);
    /* What all must come to. */
    CLASS(MPI_File_write_at_all(file, rank, &rank, 1, MPI_INT, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    CLASS(MPI_File_read_ordered(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    CLASS(MPI_File_set_size(file, 4), MPIX_ERR_PROC_FAILED);
    CLASS(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &again), MPIX_ERR_PROC_FAILED);
    /* The handle is gone, whatever the call returns: it ends. */
    int closed = MPI_File_close(&file), class = MPI_SUCCESS;
    if (closed != MPI_SUCCESS) MPI_Error_class(closed, &class);
    if (class != MPI_SUCCESS) SAME(class, MPIX_ERR_PROC_FAILED);
    SAME(file == MPI_FILE_NULL, 1);

    MPI_Comm living = shrunk(MPI_COMM_WORLD, size - 1);
    OK(MPI_File_open(living, name, mode, MPI_INFO_NULL, &file));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at_all(file, 0, all, size, MPI_INT, MPI_STATUS_IGNORE));
    for (int i = 0; i < size; i++) SAME(all[i], i);
    int at = size + rank;
    OK(MPI_File_read_at_all(file, at, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    SAME(value, 100 + rank);
    OK(MPI_File_write_shared(file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    OK(MPI_Comm_rank(living, &rank));
    OK(MPI_Barrier(living));
    if (rank == 0) {
        OK(MPI_File_delete(name, MPI_INFO_NULL));
        OK(MPI_File_delete(pipe, MPI_INFO_NULL));
    }
    OK(MPI_Comm_free(&living));
    MPI_Finalize();
    return verdict();
}
