/* Functions of files, of which there are none, raise their errors on MPI_FILE_NULL, whose error handler returns from the start: a program
 * that tries to open a file goes on (MPI 5.0 section 14.7).
 * RANKS: 1
 * EXPECT: it goes on
 */
#include "check.h"

static int called = 0;

static void handler(MPI_File *file, int *code, ...)
{
    called++;
    CHECK(*file == MPI_FILE_NULL);
    SAME(*code, MPI_ERR_UNSUPPORTED_OPERATION);
}

static void wrong_everywhere(void)
{
    MPI_File file = MPI_FILE_NULL;
    int buf[1];
    CLASS(MPI_File_open(MPI_COMM_WORLD, "nothing", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_UNSUPPORTED_OPERATION);
    CLASS(MPI_File_delete("nothing", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_OPERATION);
    CLASS(MPI_File_write_at(file, 0, buf, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_UNSUPPORTED_OPERATION);
    CLASS(MPI_Register_datarep("mine", NULL, NULL, NULL, NULL), MPI_ERR_UNSUPPORTED_OPERATION);
    CLASS(MPI_File_close(&file), MPI_ERR_UNSUPPORTED_OPERATION);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    wrong_everywhere();
    MPI_Errhandler errhandler;
    OK(MPI_File_create_errhandler(handler, &errhandler));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, errhandler));
    OK(MPI_Errhandler_free(&errhandler));
    wrong_everywhere();
    SAME(called, 5);
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    wrong_everywhere();
    SAME(called, 5);
    MPI_Finalize();
    puts("it goes on");
    return verdict();
}
