/* A file that somebody removes while it is open: accesses go on, for the bytes are there until it is closed; opening it
 * anew finds none; closing says that there is nothing left to delete, and closes.
 * RANKS: 2
 */
#include "file.h"

enum { N = 1 << 16 };
static char data[N], back[N];

int main(int argc, char **argv)
{
    MPI_File file, again;
    MPI_Status status;
    MPI_Request request;
    MPI_Offset bytes;
    int count;
    MPI_Init(&argc, &argv);
    name_file("file_removed");
    for (int i = 0; i < N; i++) data[i] = (char)(i * 7 + rank);
    for (int deletes = 0; deletes < 2; deletes++) {
        int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | (deletes ? MPI_MODE_DELETE_ON_CLOSE : 0);
        OK(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file));
        OK(MPI_File_write_at(file, (MPI_Offset)rank * N, data, N, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 1) OK(MPI_File_delete(name, MPI_INFO_NULL));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        CLASS(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &again), MPI_ERR_NO_SUCH_FILE);
        CLASS(MPI_File_delete(name, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
        /* What was written is there, and more can be, by accesses of each kind. */
        memset(back, 0, N);
        OK(MPI_File_read_at(file, (MPI_Offset)rank * N, back, N, MPI_BYTE, &status));
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        SAME(count, N);
        SAME(memcmp(data, back, N), 0);
        OK(MPI_File_write_at_all(file, (MPI_Offset)(2 + rank) * N, data, N, MPI_BYTE, &status));
        OK(MPI_File_sync(file));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_File_iread_at(file, (MPI_Offset)(3 - rank) * N, back, N, MPI_BYTE, &request));
        OK(MPI_Wait(&request, &status));
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        SAME(count, N);
        SAME(back[5], (char)(5 * 7 + 1 - rank));
        OK(MPI_File_set_atomicity(file, 1));
        OK(MPI_File_write_ordered(file, data, 10, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_get_size(file, &bytes));
        SAME(bytes, 4 * N);
        if (deletes) CLASS(MPI_File_close(&file), MPI_ERR_NO_SUCH_FILE);
        else OK(MPI_File_close(&file));
        CHECK(file == MPI_FILE_NULL);
        CHECK(access(name, F_OK) != 0);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    MPI_Finalize();
    return verdict();
}
