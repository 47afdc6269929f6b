/* Between the beginning and the end of a split collective access, its file refuses what MPI 5.0 forbids there: other
 * collective accesses (section 14.4.5), views (14.3), sizes (14.2.4, 14.2.5), MPI_File_sync (14.6.1) and
 * MPI_File_close. Members that have ended theirs wait for nobody. Wrong arguments are an error of the call that
 * has them.
 * RANKS: 1 2 3
 */
#include "file.h"

#define REFUSED(call) CLASS(call, MPI_ERR_UNSUPPORTED_OPERATION)

static MPI_File file;
static int out[4], in[4];
static MPI_Status status;
static MPI_Request request;

static void refusals(void)
{
    REFUSED(MPI_File_write_at_all(file, 0, out, 4, MPI_INT, &status));
    REFUSED(MPI_File_read_at_all(file, 0, in, 4, MPI_INT, &status));
    REFUSED(MPI_File_write_all(file, out, 4, MPI_INT, &status));
    REFUSED(MPI_File_read_all(file, in, 4, MPI_INT, &status));
    REFUSED(MPI_File_write_ordered(file, out, 4, MPI_INT, &status));
    REFUSED(MPI_File_read_ordered(file, in, 4, MPI_INT, &status));
    REFUSED(MPI_File_iwrite_at_all(file, 0, out, 4, MPI_INT, &request));
    REFUSED(MPI_File_iread_at_all(file, 0, in, 4, MPI_INT, &request));
    REFUSED(MPI_File_iwrite_all(file, out, 4, MPI_INT, &request));
    REFUSED(MPI_File_iread_all(file, in, 4, MPI_INT, &request));
    REFUSED(MPI_File_write_at_all_begin(file, 0, out, 4, MPI_INT));
    REFUSED(MPI_File_read_all_begin(file, in, 4, MPI_INT));
    REFUSED(MPI_File_read_ordered_begin(file, in, 4, MPI_INT));
    REFUSED(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    REFUSED(MPI_File_set_size(file, 0));
    REFUSED(MPI_File_preallocate(file, 1 << 20));
    REFUSED(MPI_File_sync(file));
    REFUSED(MPI_File_close(&file));
    CHECK(file != MPI_FILE_NULL);
}

/* Rank 0 has not ended its access, the others have: theirs succeed, and none waits for ever. */
static void one_is_late(MPI_Offset place)
{
    int count;
    OK(MPI_File_write_at_all_begin(file, place, out, 4, MPI_INT));
    if (rank != 0) OK(MPI_File_write_at_all_end(file, out, &status));
    memset(in, 0, sizeof in);
    const int code = MPI_File_read_at_all(file, place, in, 4, MPI_INT, &status);
    if (rank == 0) {
        REFUSED(code);
    } else {
        OK(code);
        SAME(memcmp(in, out, sizeof in), 0);
    }
    if (rank == 0) REFUSED(MPI_File_read_at_all_begin(file, place, in, 4, MPI_INT));
    else OK(MPI_File_read_at_all_begin(file, place, in, 4, MPI_INT));
    if (rank != 0) OK(MPI_File_read_at_all_end(file, in, &status));
    REFUSED(MPI_File_set_size(file, 0));
    CLASS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL),
          rank == 0 ? MPI_ERR_UNSUPPORTED_OPERATION : MPI_ERR_ARG);
    if (rank == 0) OK(MPI_File_write_at_all_end(file, out, &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    SAME(count, 4);
}

/* The last rank's arguments are wrong: its call fails and begins nothing. Those of the others begin. */
static void wrong_arguments(MPI_Offset place)
{
    const int last = rank == size - 1;
    MPI_File reader;
    MPI_Offset at;
    CLASS(MPI_File_write_at_all_begin(file, last ? -1 : place, out, 4, MPI_INT), last ? MPI_ERR_ARG : MPI_SUCCESS);
    if (last) REFUSED(MPI_File_write_at_all_end(file, out, &status));
    else OK(MPI_File_write_at_all_end(file, out, &status));
    CLASS(MPI_File_read_all_begin(file, in, 1, last ? MPI_SHORT : MPI_INT), last ? MPI_ERR_TYPE : MPI_SUCCESS);
    if (last) REFUSED(MPI_File_read_all_end(file, in, &status));
    else OK(MPI_File_read_all_end(file, in, &status));
    OK(MPI_File_get_position(file, &at));
    SAME(at, last ? 0 : 1);
    CLASS(MPI_File_read_ordered_begin(file, in, last ? -1 : 4, MPI_INT), last ? MPI_ERR_COUNT : MPI_SUCCESS);
    if (!last) OK(MPI_File_read_ordered_end(file, in, &status));
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &reader));
    CLASS(MPI_File_write_all_begin(reader, out, 4, MPI_INT), MPI_ERR_READ_ONLY);
    CLASS(MPI_File_write_ordered_begin(reader, out, 4, MPI_INT), MPI_ERR_READ_ONLY);
    OK(MPI_File_read_at_all_begin(reader, 0, in, 4, MPI_INT));
    OK(MPI_File_read_at_all_end(reader, in, &status));
    OK(MPI_File_close(&reader));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    name_file("file_split");
    int count;
    for (int i = 0; i < 4; i++) out[i] = 10 * rank + i;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    const MPI_Offset place = 4 * rank;
    OK(MPI_File_write_at_all_begin(file, place, out, 4, MPI_INT));
    refusals();
    /* What one member does alone is allowed, and so is a change of atomicity. */
    OK(MPI_File_read_at(file, place, in, 4, MPI_INT, &status));
    SAME(memcmp(in, out, sizeof in), 0);
    OK(MPI_File_iread_at(file, place, in, 4, MPI_INT, &request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_File_set_atomicity(file, 0));
    OK(MPI_File_write_at_all_end(file, out, &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    SAME(count, 4);
    MPI_Offset bytes;
    OK(MPI_File_get_size(file, &bytes));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    SAME(bytes, 16 * size);

    OK(MPI_File_read_ordered_begin(file, in, 4, MPI_INT));
    refusals();
    OK(MPI_File_read_ordered_end(file, in, &status));
    SAME(memcmp(in, out, sizeof in), 0);
    if (size > 1) one_is_late(place);
    OK(MPI_File_read_at_all(file, place, in, 4, MPI_INT, &status));
    SAME(memcmp(in, out, sizeof in), 0);
    wrong_arguments(place);
    OK(MPI_File_close(&file));
    MPI_Finalize();
    return verdict();
}
