/* The shared file pointer: records of all ranks, each written once and none torn, in any order, and in the order of
 * ranks; seeking; appending; a view from the pointer on.
 * RANKS: 1 2 4
 */
#include "file.h"

enum { RECORDS = 60, WORDS = 64 };

/* MPI_DISPLACEMENT_CURRENT is behind all that a member has accessed before it sets the view,
 * however early the others do. */
static void views_at_the_pointer(void)
{
    MPI_File file;
    MPI_Offset at;
    MPI_Datatype etype, filetype;
    char representation[MPI_MAX_DATAREP_STRING];
    int words[3] = {7, 8, 9}, last = size - 1, go = 0;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    if (rank == 0 && last > 0) MPI_Send(&go, 1, MPI_INT, last, 0, MPI_COMM_WORLD);
    if (rank == last) {
        if (last > 0) MPI_Recv(&go, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        OK(MPI_File_write_shared(file, words, 3, MPI_INT, MPI_STATUS_IGNORE));
    }
    OK(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_get_view(file, &at, &etype, &filetype, representation));
    SAME(at, 12);
    OK(MPI_File_write_ordered(file, words, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_get_view(file, &at, &etype, &filetype, representation));
    SAME(at, 12 + 4 * size);
    OK(MPI_File_close(&file));
}

int main(int argc, char **argv)
{
    int record[WORDS], count;
    MPI_Init(&argc, &argv);
    name_file("file_shared");
    MPI_File file;
    MPI_Status status;
    MPI_Offset at;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_EXCL, MPI_INFO_NULL, &file));
    OK(MPI_File_set_view(file, 16, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int i = 0; i < RECORDS; i++) {
        for (int w = 0; w < WORDS; w++) record[w] = rank * RECORDS + i;
        if (i % 2) {
            MPI_Request request;
            OK(MPI_File_iwrite_shared(file, record, WORDS, MPI_INT, &request));
            OK(MPI_Wait(&request, &status));
        } else {
            OK(MPI_File_write_shared(file, record, WORDS, MPI_INT, &status));
        }
        OK(MPI_Get_count(&status, MPI_INT, &count));
        SAME(count, WORDS);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_get_position_shared(file, &at));
    SAME(at, (MPI_Offset)size * RECORDS * WORDS);
    /* Everybody reads a part of them; together they are all. */
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    static int seen[4 * RECORDS], all[4 * RECORDS];
    for (int i = 0; i < RECORDS; i++) {
        OK(MPI_File_read_shared(file, record, WORDS, MPI_INT, &status));
        for (int w = 1; w < WORDS; w++) CHECK(record[w] == record[0]);
        CHECK(record[0] >= 0 && record[0] < size * RECORDS);
        if (record[0] >= 0 && record[0] < size * RECORDS) seen[record[0]]++;
    }
    MPI_Allreduce(seen, all, size * RECORDS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < size * RECORDS; i++) SAME(all[i], 1);

    /* In the order of ranks: rank r writes r + 1 words. */
    OK(MPI_File_seek_shared(file, -2, MPI_SEEK_END));
    OK(MPI_File_get_position_shared(file, &at));
    SAME(at, (MPI_Offset)size * RECORDS * WORDS - 2);
    for (int w = 0; w < WORDS; w++) record[w] = 1000 * rank + w;
    OK(MPI_File_write_ordered(file, record, rank + 1, MPI_INT, &status));
    OK(MPI_File_write_ordered_begin(file, record, rank + 1, MPI_INT));
    CLASS(MPI_File_write_ordered_begin(file, record, rank + 1, MPI_INT), MPI_ERR_UNSUPPORTED_OPERATION);
    OK(MPI_File_write_ordered_end(file, record, &status));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    int words = size * (size + 1) / 2, got[128], next = 0;
    OK(MPI_File_read_at(file, at, got, 2 * words, MPI_INT, &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    SAME(count, 2 * words);
    for (int turn = 0; turn < 2; turn++)
        for (int r = 0; r < size; r++)
            for (int w = 0; w <= r; w++, next++) SAME(got[next], 1000 * r + w);
    OK(MPI_File_seek_shared(file, at, MPI_SEEK_SET));
    OK(MPI_File_read_ordered(file, got, rank + 1, MPI_INT, &status));
    for (int w = 0; w <= rank; w++) SAME(got[w], 1000 * rank + w);
    /* The sizes of all seeks must be the same. */
    if (size > 1) CLASS(MPI_File_seek_shared(file, rank, MPI_SEEK_SET), MPI_ERR_NOT_SAME);
    OK(MPI_File_close(&file));

    MPI_Offset end;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_WRONLY | MPI_MODE_APPEND | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_get_size(file, &end));
    OK(MPI_File_get_position(file, &at));
    SAME(at, end);
    OK(MPI_File_get_position_shared(file, &at));
    SAME(at, end);
    OK(MPI_File_write_ordered(file, record, 4, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_get_size(file, &at));
    SAME(at, end + 4 * size);
    OK(MPI_File_close(&file));
    CHECK(access(name, F_OK) != 0);
    views_at_the_pointer();
    MPI_Finalize();
    return verdict();
}
