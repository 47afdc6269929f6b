/* What the system does not permit: a file of somebody else's,
 * and a file system that is read-only (where the test may mount one).
 * RANKS: 1
 */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

/* Before MPI has threads, which a namespace does not allow. */
static int mount_read_only(const char *folder)
{
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return 0;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return 0;
    if (mount(folder, folder, NULL, MS_BIND, NULL) != 0) return 0;
    return mount(NULL, folder, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) == 0;
}

int main(int argc, char **argv)
{
    char folder[64], name[96], closed[96];
    MPI_File file = MPI_FILE_NULL;
    int number;
    snprintf(folder, sizeof folder, "/tmp/file_permissions.%d", (int)getpid());
    snprintf(name, sizeof name, "%s/file", folder);
    snprintf(closed, sizeof closed, "%s.closed", folder);
    CHECK(mkdir(folder, 0755) == 0);
    close(open(name, O_CREAT | O_RDWR, 0644));
    close(open(closed, O_CREAT | O_RDWR, 0600));
    CHECK(chmod(closed, 0) == 0);
    int read_only = mount_read_only(folder), mounted = errno;
    OK(MPI_Init(&argc, &argv));

    if (read_only) {
        int code = MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR, MPI_INFO_NULL, &file);
        SAME(class_of(code), MPI_ERR_READ_ONLY);
        OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
        SAME(MPI_File_read_at(file, 0, &number, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
        OK(MPI_File_close(&file));
        SAME(class_of(MPI_File_delete(name, MPI_INFO_NULL)), MPI_ERR_READ_ONLY);
        strcat(name, ".new");
        SAME(class_of(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file)), MPI_ERR_READ_ONLY);
    } else {
        fprintf(stderr, "no read-only file system can be mounted here (%s): not tested\n", strerror(mounted));
    }

    /* Root may open anything, so it becomes somebody else. In a namespace there may be nobody else. */
    if (geteuid() != 0 || seteuid(65534) == 0) {
        int code = MPI_File_open(MPI_COMM_SELF, closed, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
        SAME(class_of(code), MPI_ERR_ACCESS);
        if (getuid() != geteuid()) CHECK(seteuid(getuid()) == 0);
    }
    OK(MPI_Finalize());
    if (read_only) CHECK(umount2(folder, MNT_DETACH) == 0);
    snprintf(name, sizeof name, "%s/file", folder);
    CHECK(unlink(name) == 0 && rmdir(folder) == 0 && unlink(closed) == 0);
    return failures != 0;
}
