/* Offsets beyond 4 GiB, in a sparse file, and counts beyond 2^31.
 * RANKS: 1 2
 */
#include "file.h"

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    name_file("file_large");
    MPI_File file;
    MPI_Status status;
    MPI_Offset at;
    const MPI_Offset far = 5ll << 30;
    long long words[100], back[100];
    for (int i = 0; i < 100; i++) words[i] = far + 1000 * rank + i;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_write_at(file, far + 800 * rank, words, 100, MPI_LONG_LONG, &status));
    OK(MPI_File_read_at(file, far + 800 * rank, back, 100, MPI_LONG_LONG, &status));
    SAME(memcmp(words, back, sizeof words), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_get_size(file, &at));
    SAME(at, far + 800 * size);

    /* Blocks of 100 bytes, 3 GiB apart. */
    MPI_Datatype blocks;
    OK(MPI_Type_create_hvector(3, 100, 3ll << 30, MPI_BYTE, &blocks));
    OK(MPI_Type_commit(&blocks));
    OK(MPI_File_set_view(file, 100 * rank, MPI_BYTE, blocks, "native", MPI_INFO_NULL));
    OK(MPI_File_get_byte_offset(file, 250, &at));
    SAME(at, 100 * rank + (6ll << 30) + 50);
    OK(MPI_File_write_at_all(file, 0, words, 300, MPI_BYTE, &status));
    memset(back, 0, sizeof back);
    OK(MPI_File_read_at_all(file, 0, back, 300, MPI_BYTE, &status));
    SAME(memcmp(words, back, 300), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_seek(file, 0, MPI_SEEK_END));
    OK(MPI_File_get_position(file, &at));
    /* The next tile begins where the next rank's last block lies. */
    SAME(at, 300 + 100 * (size - 1 - rank));
    OK(MPI_File_set_size(file, 9ll << 30));
    OK(MPI_File_get_size(file, &at));
    SAME(at, 9ll << 30);
    OK(MPI_Type_free(&blocks));
    OK(MPI_File_close(&file));

    /* More bytes than an int counts, out of little memory. */
    static char memory[1 << 20];
    MPI_Datatype whole, same;
    MPI_Count count;
    OK(MPI_Type_contiguous(1 << 20, MPI_BYTE, &whole));
    OK(MPI_Type_create_resized(whole, 0, 0, &same));
    OK(MPI_Type_commit(&same));
    OK(MPI_File_open(MPI_COMM_WORLD, "/dev/null", MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    OK(MPI_File_write_at(file, 0, memory, 2100, same, &status));
    OK(MPI_Get_count_c(&status, MPI_BYTE, &count));
    SAME(count, 2100ll << 20);
    OK(MPI_Get_count_c(&status, same, &count));
    SAME(count, 2100);
    MPI_Request request;
    OK(MPI_File_iwrite_at_c(file, far, memory, 2100, same, &request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Get_count_c(&status, MPI_BYTE, &count));
    SAME(count, 2100ll << 20);
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&whole));
    OK(MPI_Type_free(&same));
    MPI_Finalize();
    return verdict();
}
