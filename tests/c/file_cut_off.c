/* A rank cuts a file off and makes it longer again through a handle of its own, while others read and write many short
 * runs of it through theirs: what they find is undefined (MPI 5.0 section 14.6.1), but they go on, also with accesses
 * in the background. What is written afterwards is there.
 * RANKS: 2 3
 */
#include "file.h"

enum { BYTES = 1 << 22, RUN = 64, APART = 256, DATA = BYTES / APART * RUN };

static char memory[DATA], all[BYTES];

static void cut(MPI_File file, double end)
{
    while (MPI_Wtime() < end) {
        OK(MPI_File_set_size(file, 0));
        OK(MPI_File_set_size(file, BYTES));
    }
}

static void use(MPI_File file, double end)
{
    MPI_Request request;
    MPI_Status status;
    int count;
    for (int i = 0; MPI_Wtime() < end; i++) {
        switch (i % 4) {
        case 0: OK(MPI_File_read_at(file, 0, memory, DATA, MPI_BYTE, &status)); break;
        case 1: OK(MPI_File_write_at(file, 0, memory, DATA, MPI_BYTE, &status)); break;
        case 2: OK(MPI_File_iread_at(file, 0, memory, DATA, MPI_BYTE, &request)); break;
        default: OK(MPI_File_iwrite_at(file, 0, memory, DATA, MPI_BYTE, &request));
        }
        if (i % 4 > 1) OK(MPI_Wait(&request, &status));
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        CHECK(count >= 0 && count <= DATA);
        if (i % 2) SAME(count, DATA);
    }
}

int main(int argc, char **argv)
{
    MPI_File file;
    MPI_Datatype runs;
    MPI_Init(&argc, &argv);
    name_file("file_cut_off");
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_Type_vector(BYTES / APART, RUN, APART, MPI_BYTE, &runs));
    OK(MPI_Type_commit(&runs));
    if (rank) OK(MPI_File_set_view(file, 0, MPI_BYTE, runs, "native", MPI_INFO_NULL));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    double end = MPI_Wtime() + 1.5;
    if (rank == 0) cut(file, end);
    else use(file, end);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    memset(memory, 'x', sizeof memory);
    if (rank == 1) OK(MPI_File_write_at(file, 0, memory, DATA, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        int right = 1;
        OK(MPI_File_read_at(file, 0, all, BYTES - APART + RUN, MPI_BYTE, MPI_STATUS_IGNORE));
        for (int at = 0; at < BYTES - APART + RUN; at++)
            if (at % APART < RUN) right &= all[at] == 'x';
        CHECK(right);
    }
    OK(MPI_Type_free(&runs));
    OK(MPI_File_close(&file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) OK(MPI_File_delete(name, MPI_INFO_NULL));
    MPI_Finalize();
    return verdict();
}
