/* Nonblocking accesses among other requests: MPI_Waitall, MPI_Waitany and MPI_Testsome on accesses, messages and a
 * barrier; many at once, short and long ones.
 * RANKS: 2 4
 */
#include "file.h"

enum { PIECES = 40, PIECE = 1 << 17 };

static int bytes_of(int i) { return i % 3 ? PIECE : 1000; }

static char out[PIECES][PIECE], in[PIECES][PIECE];

int main(int argc, char **argv)
{
    int provided, word = 0, index, done, count, indices[PIECES + 3];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
    name_file("file_nonblocking");
    MPI_File file;
    MPI_Request requests[PIECES + 3];
    MPI_Status statuses[PIECES + 3];
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_set_view(file, (MPI_Offset)rank * PIECES * PIECE, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    for (int turn = 0; turn < 5; turn++) {
        for (int i = 0; i < PIECES; i++) {
            memset(out[i], rank * 50 + i + turn, PIECE);
            OK(MPI_File_iwrite(file, out[i], bytes_of(i), MPI_BYTE, &requests[i]));
        }
        OK(MPI_Irecv(&word, 1, MPI_INT, (rank + size - 1) % size, 7, MPI_COMM_WORLD, &requests[PIECES]));
        OK(MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD, &requests[PIECES + 1]));
        OK(MPI_Ibarrier(MPI_COMM_WORLD, &requests[PIECES + 2]));
        OK(MPI_Waitall(PIECES + 3, requests, statuses));
        SAME(word, (rank + size - 1) % size);
        for (int i = 0; i < PIECES; i++) {
            OK(MPI_Get_count(&statuses[i], MPI_BYTE, &count));
            SAME(count, bytes_of(i));
            CHECK(requests[i] == MPI_REQUEST_NULL);
        }
        OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
        memset(in, 0, sizeof in);
        for (int i = 0; i < PIECES; i++) OK(MPI_File_iread(file, in[i], bytes_of(i), MPI_BYTE, &requests[i]));
        if (turn % 2) {
            for (int i = 0; i < PIECES; i++) {
                OK(MPI_Waitany(PIECES, requests, &index, statuses));
                SAME(memcmp(in[index], out[index], (size_t)bytes_of(index)), 0);
            }
        } else {
            for (int left = PIECES; left > 0; left -= done) {
                OK(MPI_Testsome(PIECES, requests, &done, indices, statuses));
                for (int i = 0; i < done; i++) SAME(memcmp(in[indices[i]], out[indices[i]], (size_t)bytes_of(indices[i])), 0);
            }
        }
        OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    }
    OK(MPI_File_close(&file));
    MPI_Finalize();
    return verdict();
}
