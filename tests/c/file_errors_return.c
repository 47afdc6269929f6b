/* What goes wrong with files is returned from the start, with its class and with nothing half done; handlers of a file
 * and of MPI_FILE_NULL (MPI 5.0 section 14.7).
 * RANKS: 1 2
 * EXPECT: it goes on
 */
#include "file.h"
#include <sys/resource.h>
#include <sys/stat.h>

static int called = 0, expected_class;
static MPI_File expected_file;

static void handler(MPI_File *file, int *code, ...)
{
    called++;
    CHECK(*file == expected_file);
    SAME(*code, expected_class);
}

static void open_errors(void)
{
    MPI_File file;
    MPI_Comm world = MPI_COMM_WORLD;
    CLASS(MPI_File_open(world, "no/such/place", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    CHECK(file == MPI_FILE_NULL);
    CLASS(MPI_File_open(world, "", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_BAD_FILE);
    CLASS(MPI_File_open(world, "/", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_BAD_FILE);
    CLASS(MPI_File_open(world, name, 0, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
    CLASS(MPI_File_open(world, name, MPI_MODE_RDONLY | MPI_MODE_RDWR, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
    CLASS(MPI_File_open(world, name, MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
    CLASS(MPI_File_delete("no_such_file", MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
    if (size > 1)
        CLASS(MPI_File_open(world, name, MPI_MODE_CREATE | (rank ? MPI_MODE_RDWR : MPI_MODE_WRONLY), MPI_INFO_NULL, &file), MPI_ERR_NOT_SAME);
    CHECK(access(name, F_OK) != 0);
    CLASS(MPI_File_open(MPI_COMM_NULL, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_COMM);
    CLASS(MPI_File_close(&file), MPI_ERR_FILE);
    int word = 0;
    CLASS(MPI_File_write_at(MPI_FILE_NULL, 0, &word, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_FILE);
}

static void access_errors(void)
{
    MPI_File file;
    MPI_Status status;
    int words[4] = {1, 2, 3, 4}, count;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    CLASS(MPI_File_read_at(file, 0, words, 1, MPI_INT, &status), MPI_ERR_ACCESS);
    CLASS(MPI_File_write_at(file, -1, words, 1, MPI_INT, &status), MPI_ERR_ARG);
    CLASS(MPI_File_write_at(file, 0x7ffffffffffffff0, words, 4, MPI_INT, &status), MPI_ERR_ARG);
    CLASS(MPI_File_write_at(file, 0, words, -1, MPI_INT, &status), MPI_ERR_COUNT);
    CLASS(MPI_File_write_at(file, 0, words, 1, MPI_DATATYPE_NULL, &status), MPI_ERR_TYPE);
    CLASS(MPI_File_write_at(file, 0, NULL, 1, MPI_INT, &status), MPI_ERR_BUFFER);
    CLASS(MPI_File_seek(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    CLASS(MPI_File_seek(file, 0, 77), MPI_ERR_ARG);
    CLASS(MPI_File_set_view(file, -5, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    CLASS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "klingon", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP);
    CLASS(MPI_File_set_view(file, 0, MPI_INT, MPI_CHAR, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    CLASS(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_DISP);
    if (size > 1) {
        /* What one rank gives wrong, all learn of. */
        int code = MPI_File_set_view(file, rank ? 0 : -2, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
        CLASS(code, MPI_ERR_ARG);
        CLASS(MPI_File_set_view(file, 0, rank ? MPI_INT : MPI_CHAR, rank ? MPI_INT : MPI_CHAR, "native", MPI_INFO_NULL), MPI_ERR_NOT_SAME);
        CLASS(MPI_File_set_size(file, rank), MPI_ERR_NOT_SAME);
        CLASS(MPI_File_set_atomicity(file, rank), MPI_ERR_NOT_SAME);
    }
    /* Etypes may differ if their extents are the same (MPI 5.0 section 14.3). */
    MPI_Datatype wide;
    OK(MPI_Type_create_resized(MPI_INT, 0, 8, &wide));
    OK(MPI_Type_commit(&wide));
    OK(MPI_File_set_view(file, 0, rank ? wide : MPI_DOUBLE, rank ? wide : MPI_DOUBLE, "native", MPI_INFO_NULL));
    if (size > 1) CLASS(MPI_File_set_view(file, 0, rank ? wide : MPI_INT, rank ? wide : MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_NOT_SAME);
    OK(MPI_Type_free(&wide));
    int down[2] = {1, 0}, twice[2] = {0, 0};
    MPI_Datatype unordered, overlapping;
    OK(MPI_Type_create_indexed_block(2, 1, down, MPI_INT, &unordered));
    OK(MPI_Type_create_indexed_block(2, 1, twice, MPI_INT, &overlapping));
    CLASS(MPI_File_set_view(file, 0, MPI_INT, unordered, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    OK(MPI_Type_commit(&unordered));
    OK(MPI_Type_commit(&overlapping));
    CLASS(MPI_File_set_view(file, 0, MPI_INT, unordered, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    CLASS(MPI_File_set_view(file, 0, MPI_INT, overlapping, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    CLASS(MPI_File_write_all_end(file, words, &status), MPI_ERR_UNSUPPORTED_OPERATION);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    CLASS(MPI_File_write_at(file, 0, words, 3, MPI_BYTE, &status), MPI_ERR_TYPE);

    /* A file that grows to a limit: what the status says is there, and the program lives. */
    MPI_Barrier(MPI_COMM_WORLD);
    struct rlimit before, limit = {6, 6};
    getrlimit(RLIMIT_FSIZE, &before);
    OK(MPI_File_set_size(file, 0));
    limit.rlim_max = before.rlim_max;
    if (rank == 0) {
        MPI_File own;
        setrlimit(RLIMIT_FSIZE, &limit);
        OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_WRONLY, MPI_INFO_NULL, &own));
        CLASS(MPI_File_write_at(own, 0, words, 4, MPI_INT, &status), MPI_ERR_NO_SPACE);
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        SAME(count, 6);
        MPI_Request request;
        OK(MPI_File_iwrite_at(own, 2, words, 4, MPI_INT, &request));
        expected_file = own;
        expected_class = MPI_ERR_NO_SPACE;
        called = 0;
        MPI_Errhandler errhandler;
        OK(MPI_File_create_errhandler(handler, &errhandler));
        OK(MPI_File_set_errhandler(own, errhandler));
        OK(MPI_Errhandler_free(&errhandler));
        CLASS(MPI_Wait(&request, &status), MPI_ERR_NO_SPACE);
        SAME(called, 1);
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        SAME(count, 4);
        setrlimit(RLIMIT_FSIZE, &before);
        OK(MPI_File_close(&own));
        struct stat there;
        SAME(stat(name, &there), 0);
        SAME(there.st_size, 6);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_close(&file));

    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    CLASS(MPI_File_write_at(file, 0, words, 1, MPI_INT, &status), MPI_ERR_READ_ONLY);
    CLASS(MPI_File_set_size(file, 9), MPI_ERR_READ_ONLY);
    CLASS(MPI_File_preallocate(file, 9), MPI_ERR_READ_ONLY);
    OK(MPI_File_set_view(file, 0, MPI_INT, overlapping, "native", MPI_INFO_NULL));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    /* Reading over the end is no error. */
    OK(MPI_File_read_at(file, 2, words, 4, MPI_INT, &status));
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    SAME(count, 4);
    OK(MPI_File_read_at(file, 100, words, 4, MPI_INT, &status));
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    SAME(count, 0);
    OK(MPI_File_seek(file, 4, MPI_SEEK_SET));
    OK(MPI_File_read(file, words, 4, MPI_INT, &status));
    MPI_Offset at;
    OK(MPI_File_get_position(file, &at));
    SAME(at, 6);
    OK(MPI_File_close(&file));
    CLASS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY, MPI_INFO_NULL, &file), MPI_ERR_FILE_EXISTS);

    /* A file that is removed while it is open. */
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) OK(MPI_File_delete(name, MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_write_at(file, 0, words, 1, MPI_INT, &status));
    OK(MPI_File_read_at(file, 0, words, 1, MPI_INT, &status));
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&unordered));
    OK(MPI_Type_free(&overlapping));

    /* One after the other. */
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    CLASS(MPI_File_write_at(file, 0, words, 1, MPI_INT, &status), MPI_ERR_UNSUPPORTED_OPERATION);
    CLASS(MPI_File_write(file, words, 1, MPI_INT, &status), MPI_ERR_UNSUPPORTED_OPERATION);
    CLASS(MPI_File_seek_shared(file, 0, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION);
    CLASS(MPI_File_get_position(file, &at), MPI_ERR_UNSUPPORTED_OPERATION);
    /* The one function of those of the individual pointer that is allowed (MPI 5.0 section 14.4.3). */
    OK(MPI_File_get_byte_offset(file, 3, &at));
    SAME(at, 3);
    OK(MPI_File_write_ordered(file, words, 2, MPI_INT, &status));
    OK(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    MPI_Datatype etype, filetype;
    char representation[MPI_MAX_DATAREP_STRING];
    OK(MPI_File_get_view(file, &at, &etype, &filetype, representation));
    SAME(at, 8 * size);
    CHECK(etype == MPI_INT && filetype == MPI_INT && strcmp(representation, "native") == 0);
    OK(MPI_File_close(&file));
}

int main(int argc, char **argv)
{
    int word = 0;
    MPI_Init(&argc, &argv);
    name_file("file_errors");
    open_errors();
    access_errors();

    MPI_Errhandler errhandler, there;
    MPI_File file;
    OK(MPI_File_create_errhandler(handler, &errhandler));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, errhandler));
    called = 0;
    expected_file = MPI_FILE_NULL;
    expected_class = MPI_ERR_NO_SUCH_FILE;
    CLASS(MPI_File_open(MPI_COMM_WORLD, "nothing", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    SAME(called, 1);
    /* A new file has what MPI_FILE_NULL has. */
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_get_errhandler(file, &there));
    CHECK(there == errhandler);
    OK(MPI_Errhandler_free(&there));
    expected_file = file;
    expected_class = MPI_ERR_ACCESS;
    CLASS(MPI_File_read_at(file, 0, &word, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ACCESS);
    SAME(called, 2);
    OK(MPI_File_call_errhandler(file, MPI_ERR_ACCESS));
    SAME(called, 3);
    OK(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN));
    CLASS(MPI_File_read_at(file, 0, &word, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ACCESS);
    SAME(called, 3);
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    OK(MPI_Errhandler_free(&errhandler));
    OK(MPI_File_close(&file));
    MPI_Finalize();
    puts("it goes on");
    return verdict();
}
