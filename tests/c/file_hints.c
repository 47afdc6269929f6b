/* Hints of a file as MPI_File_get_info gives them: those that are known, with defaults,
 * and the file's name (MPI 5.0 section 14.2.8).
 * RANKS: 1 2
 */
#include "file.h"

static void hint(MPI_File file, const char *key, const char *expected)
{
    MPI_Info info;
    char value[MPI_MAX_INFO_VAL] = "";
    int length = sizeof value, flag;
    OK(MPI_File_get_info(file, &info));
    OK(MPI_Info_get_string(info, key, &length, value, &flag));
    if (flag != !!expected || (expected && strcmp(value, expected))) {
        fprintf(stderr, "hint %s is %s, expected %s\n", key, flag ? value : "(none)", expected ? expected : "(none)");
        failures++;
    }
    OK(MPI_Info_free(&info));
}

int main(int argc, char **argv)
{
    MPI_File file;
    MPI_Info info;
    MPI_Init(&argc, &argv);
    name_file("file_hints");
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    hint(file, "filename", name);
    hint(file, "collective_buffering", "true");
    hint(file, "cb_buffer_size", "1048576");
    hint(file, "cb_nodes", NULL);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "filename", "another"));
    OK(MPI_Info_set(info, "collective_buffering", "false"));
    OK(MPI_Info_set(info, "cb_buffer_size", "none"));
    OK(MPI_File_set_info(file, info));
    hint(file, "filename", name);
    hint(file, "collective_buffering", "false");
    hint(file, "cb_buffer_size", "1048576");
    OK(MPI_Info_set(info, "cb_buffer_size", "4096"));
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", info));
    hint(file, "cb_buffer_size", "4096");
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    hint(file, "cb_buffer_size", "4096");
    OK(MPI_Info_free(&info));
    /* What one file has can be given to another. */
    OK(MPI_File_get_info(file, &info));
    OK(MPI_File_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
    snprintf(name + strlen(name), sizeof name - strlen(name), ".2");
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info, &file));
    hint(file, "filename", name);
    hint(file, "cb_buffer_size", "4096");
    name[strlen(name) - 2] = 0;
    if (rank == 0) OK(MPI_File_delete(name, info));
    OK(MPI_Info_free(&info));
    OK(MPI_File_close(&file));
    MPI_Finalize();
    return verdict();
}
