/* Seeking and byte offsets under views: in units of etypes, with holes within tiles and between them, tiles that
 * interleave, an end of the file inside a hole or inside an etype;
 * positions before the beginning, and what else makes no sense.
 * RANKS: 2
 */
#include "file.h"
#include <stdlib.h>

static MPI_File file;

static MPI_Offset end_of(MPI_Offset offset)
{
    MPI_Offset at = -1;
    OK(MPI_File_seek(file, offset, MPI_SEEK_END));
    OK(MPI_File_get_position(file, &at));
    return at;
}

static MPI_Offset byte_of(MPI_Offset offset)
{
    MPI_Offset at = -1;
    OK(MPI_File_get_byte_offset(file, offset, &at));
    return at;
}

/* The end of the file is the first etype of the view that starts behind the last byte (MPI 5.0 14.1.1), and a view's
 * etypes are where the view's description puts them. */
static void view(MPI_Offset disp, MPI_Datatype etype, int blocks, const MPI_Aint *places, MPI_Aint extent)
{
    MPI_Datatype scattered, filetype;
    OK(MPI_Type_create_hindexed_block(blocks, 1, places, etype, &scattered));
    OK(MPI_Type_create_resized(scattered, 0, extent, &filetype));
    OK(MPI_Type_commit(&filetype));
    OK(MPI_File_set_view(file, disp, etype, filetype, "native", MPI_INFO_NULL));
    for (int i = 0; i < 20; i++) SAME(byte_of(i), disp + i / blocks * extent + places[i % blocks]);
    for (MPI_Offset bytes = 0; bytes < 200; bytes += 1 + bytes % 3) {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_File_set_size(file, bytes));
        MPI_Offset wanted = 0;
        while (disp + wanted / blocks * extent + places[wanted % blocks] < bytes) wanted++;
        SAME(end_of(0), wanted);
        SAME(end_of(3), wanted + 3);
        SAME(end_of(-wanted), 0);
        MPI_Offset shared = -1;
        OK(MPI_File_seek_shared(file, 1, MPI_SEEK_END));
        OK(MPI_File_get_position_shared(file, &shared));
        SAME(shared, wanted + 1);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_Type_free(&scattered));
    OK(MPI_Type_free(&filetype));
}

static void wrong(void)
{
    MPI_Offset at = -1;
    OK(MPI_File_set_view(file, 4, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_set_size(file, 40));
    OK(MPI_File_seek(file, 3, MPI_SEEK_SET));
    CLASS(MPI_File_seek(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    CLASS(MPI_File_seek(file, -4, MPI_SEEK_CUR), MPI_ERR_ARG);
    CLASS(MPI_File_seek(file, -10, MPI_SEEK_END), MPI_ERR_ARG);
    CLASS(MPI_File_seek(file, 0, 12345), MPI_ERR_ARG);
    CLASS(MPI_File_seek(file, INT64_MAX / 2, MPI_SEEK_SET), MPI_ERR_ARG);
    CLASS(MPI_File_get_byte_offset(file, -1, &at), MPI_ERR_ARG);
    CLASS(MPI_File_get_byte_offset(file, INT64_MAX / 2, &at), MPI_ERR_ARG);
    CLASS(MPI_File_seek_shared(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    /* The pointer is where it was. */
    OK(MPI_File_get_position(file, &at));
    SAME(at, 3);
    OK(MPI_File_seek(file, -3, MPI_SEEK_CUR));
    OK(MPI_File_get_position(file, &at));
    SAME(at, 0);
    SAME(end_of(0), 9);
    SAME(end_of(-9), 0);
    /* Behind the end there may be anything; the file does not grow. */
    SAME(end_of(1000), 1009);
    OK(MPI_File_get_size(file, &at));
    SAME(at, 40);
}

int main(int argc, char **argv)
{
    MPI_Datatype pair;
    MPI_Aint halves[] = {0, 8};
    MPI_Init(&argc, &argv);
    name_file("file_seek");
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_Type_create_hindexed_block(2, 1, halves, MPI_INT, &pair));
    OK(MPI_Type_commit(&pair));
    view(0, MPI_BYTE, 1, (MPI_Aint[]){0}, 1);
    view(3, MPI_INT, 1, (MPI_Aint[]){0}, 4);
    view(0, MPI_INT, 1, (MPI_Aint[]){10}, 4);
    view(5, MPI_INT, 2, (MPI_Aint[]){4, 20}, 40);
    view(2, MPI_INT, 2, (MPI_Aint[]){0, 100}, 8);
    view(0, MPI_SHORT, 3, (MPI_Aint[]){0, 40, 80}, 2);
    view(1, pair, 2, (MPI_Aint[]){0, 16}, 32);
    view(1, pair, 2, (MPI_Aint[]){4, 96}, 48);
    wrong();
    OK(MPI_Type_free(&pair));
    OK(MPI_File_close(&file));
    MPI_Finalize();
    return verdict();
}
