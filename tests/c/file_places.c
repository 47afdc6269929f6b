/* Where a file is: made through symbolic links to files that are not there yet; deleted on close where it was opened,
 * whatever its name means by then.
 * RANKS: 1 2
 */
#include "file.h"
#include <fcntl.h>
#include <sys/stat.h>

enum { MAKE = MPI_MODE_CREATE | MPI_MODE_RDWR };

static char link_name[80], target[80], folder[80];

/* One link, and one to that, both relative to their own folder. */
static void through_links(void)
{
    MPI_File file;
    MPI_Offset bytes;
    char second[96], in_folder[96], up[96];
    snprintf(second, sizeof second, "%s/link", folder);
    snprintf(in_folder, sizeof in_folder, "%s/target", folder);
    snprintf(up, sizeof up, "../%s", link_name);
    for (int links = 1; links <= 2; links++) {
        const char *there = links == 1 ? target : in_folder, *opened = links == 1 ? link_name : second;
        if (rank == 0) {
            SAME(symlink(there, link_name), 0);
            if (links == 2) SAME(symlink(up, second), 0);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        /* A link is there, so nothing can be made under its name alone. */
        CLASS(MPI_File_open(MPI_COMM_WORLD, opened, MAKE | MPI_MODE_EXCL, MPI_INFO_NULL, &file), MPI_ERR_FILE_EXISTS);
        CHECK(access(there, F_OK) != 0);
        OK(MPI_File_open(MPI_COMM_WORLD, opened, MAKE, MPI_INFO_NULL, &file));
        OK(MPI_File_write_ordered(file, "data", 4, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_close(&file));
        OK(MPI_File_open(MPI_COMM_WORLD, there, MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
        OK(MPI_File_get_size(file, &bytes));
        SAME(bytes, 4 * size);
        OK(MPI_File_close(&file));
        if (rank == 0) {
            SAME(unlink(link_name), 0);
            if (links == 2) SAME(unlink(second), 0);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    /* A folder that is not there. */
    if (rank == 0) SAME(symlink("no/such/place", link_name), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    CLASS(MPI_File_open(MPI_COMM_WORLD, link_name, MAKE, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    if (rank == 0) SAME(unlink(link_name), 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void make_by_hand(const char *path) { close(open(path, O_CREAT | O_WRONLY, 0600)); }

static void deleted_where_it_was_opened(void)
{
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MAKE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    SAME(chdir(folder), 0);
    if (rank == 0) make_by_hand(name);
    OK(MPI_File_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
    SAME(access(name, F_OK), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) SAME(unlink(name), 0);
    SAME(chdir(".."), 0);
    CHECK(access(name, F_OK) != 0);
    MPI_Barrier(MPI_COMM_WORLD);
    /* The name has become that of another file. */
    OK(MPI_File_open(MPI_COMM_WORLD, name, MAKE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    if (rank == 0) {
        SAME(rename(name, target), 0);
        make_by_hand(name);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CLASS(MPI_File_close(&file), MPI_ERR_NO_SUCH_FILE);
    SAME(access(name, F_OK), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) SAME(unlink(name) + unlink(target), 0);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    name_file("file_places");
    snprintf(link_name, sizeof link_name, "%s.link", name);
    snprintf(target, sizeof target, "%s.target", name);
    snprintf(folder, sizeof folder, "%s.folder", name);
    if (rank == 0) SAME(mkdir(folder, 0700), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    through_links();
    deleted_where_it_was_opened();
    if (rank == 0) SAME(rmdir(folder), 0);
    MPI_Finalize();
    return verdict();
}
