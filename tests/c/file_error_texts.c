/* Errors of calls on files name the file, the value, and what to do.
 * RANKS: 2
 */
#include "check.h"

static char path[100];

static void says(int line, int code, int class, const char *part)
{
    char text[MPI_MAX_ERROR_STRING];
    int length, of;
    OK(MPI_Error_class(code, &of));
    OK(MPI_Error_string(code, text, &length));
    if (of == class && strstr(text, part) != NULL && strstr(text, path) != NULL) return;
    fprintf(stderr, "line %d: class %d, expected %d; \"%s\" does not name %s, or \"%s\"\n", line, of, class, text, path, part);
    failures++;
}
#define SAYS(call, class, part) says(__LINE__, call, class, part)

int main(void)
{
    MPI_Datatype none, three;
    MPI_File fh;
    MPI_Status status;
    MPI_Info no_info = MPI_INFO_NULL;
    int rank, data[4] = {0};
    OK(MPI_Init(NULL, NULL));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Type_contiguous(0, MPI_INT, &none));
    OK(MPI_Type_commit(&none));
    OK(MPI_Type_contiguous(3, MPI_BYTE, &three));
    OK(MPI_Type_commit(&three));

    snprintf(path, sizeof path, "file-error-texts-%d", rank);
    OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, no_info, &fh));
    SAYS(MPI_File_set_view(fh, -9, MPI_INT, MPI_INT, "native", no_info), MPI_ERR_ARG, "is -9");
    SAYS(MPI_File_set_view(fh, 0, none, none, "native", no_info), MPI_ERR_TYPE, "give one");
    SAYS(MPI_File_set_view(fh, 0, MPI_INT, three, "native", no_info), MPI_ERR_TYPE, "has 3 bytes");
    SAYS(MPI_File_write_at(fh, -5, data, 1, MPI_INT, &status), MPI_ERR_ARG, "is -5");
    SAYS(MPI_File_write_at(fh, 0x7ffffffffffffffe, data, 4, MPI_INT, &status), MPI_ERR_ARG, "16 bytes");
    SAYS(MPI_File_seek(fh, -6, MPI_SEEK_SET), MPI_ERR_ARG, "-6");
    SAYS(MPI_File_set_size(fh, -4), MPI_ERR_ARG, "is -4");
    OK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", no_info));
    SAYS(MPI_File_write(fh, data, 3, MPI_BYTE, &status), MPI_ERR_TYPE, "3 bytes");
    SAYS(MPI_File_seek(fh, 0x7fffffffffffff00, MPI_SEEK_SET), MPI_ERR_ARG, "of 4 bytes");
    OK(MPI_File_set_view(fh, 0, MPI_INT, none, "native", no_info));
    SAYS(MPI_File_write(fh, data, 1, MPI_INT, &status), MPI_ERR_TYPE, "set another view");
    OK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", no_info));
    SAYS(MPI_File_write_all_end(fh, data, &status), MPI_ERR_UNSUPPORTED_OPERATION, "none is under way");
    OK(MPI_File_write_all_begin(fh, data, 2, MPI_INT));
    SAYS(MPI_File_write_at_all_begin(fh, 0, data, 2, MPI_INT), MPI_ERR_UNSUPPORTED_OPERATION, "MPI_File_write_all_end first");
    SAYS(MPI_File_read_all_end(fh, data, &status), MPI_ERR_UNSUPPORTED_OPERATION, "ends with MPI_File_write_all_end");
    SAYS(MPI_File_close(&fh), MPI_ERR_UNSUPPORTED_OPERATION, "MPI_File_write_all_end first");
    OK(MPI_File_write_all_end(fh, data, &status));
    OK(MPI_File_close(&fh));

    /* Of a name that leaves no room, the beginning is there, and what is wrong with it. */
    char longer[3000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    memcpy(longer, "file-error-texts-", 17);
    strcpy(path, "MPI_File_open: file-error-texts-xxx");
    SAYS(MPI_File_open(MPI_COMM_SELF, longer, MPI_MODE_RDONLY, no_info, &fh), MPI_ERR_BAD_FILE, "File name too long");

    strcpy(path, "file-error-texts");
    SAYS(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | (rank ? MPI_MODE_RDWR : MPI_MODE_WRONLY), no_info, &fh),
         MPI_ERR_NOT_SAME, "access modes");
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, no_info, &fh));
    SAYS(MPI_File_set_atomicity(fh, rank), MPI_ERR_NOT_SAME, "atomicities");
    SAYS(MPI_File_seek_shared(fh, rank, MPI_SEEK_SET), MPI_ERR_NOT_SAME, "offsets");
    OK(MPI_File_close(&fh));
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_SEQUENTIAL | MPI_MODE_DELETE_ON_CLOSE, no_info, &fh));
    SAYS(MPI_File_write(fh, data, 1, MPI_INT, &status), MPI_ERR_UNSUPPORTED_OPERATION, "use the shared file pointer");
    OK(MPI_File_close(&fh));
    OK(MPI_Type_free(&none));
    OK(MPI_Type_free(&three));
    OK(MPI_Finalize());
    return verdict();
}
