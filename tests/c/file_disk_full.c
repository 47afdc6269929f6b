/* A file system of 1 MiB that becomes full: independent, strided, nonblocking and collective writes and preallocation
 * say so; what they reported is there, and once there is room again they write.
 * (Where the test may mount no file system it says so.)
 * RANKS: 1 3
 */
#define _GNU_SOURCE
#include "file.h"
#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

enum { MIB = 1 << 20, BYTES = 4 * MIB, BLOCK = 100, BLOCKS = 15000 };

static unsigned char bytes[BYTES], back[BYTES];
static MPI_File file;

/* Before MPI has threads, which a namespace does not allow; the other ranks reach it through this one's root. */
static int mount_small(const char *folder)
{
    if (mkdir(folder, 0755) != 0) return 0;
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return 0;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return 0;
    return mount("small", folder, "tmpfs", 0, "size=1m") == 0;
}

/* A full disk was the error, and so many bytes were written as the status says. */
static long long full(int code, MPI_Status *status)
{
    MPI_Count count = -1;
    CLASS(code, MPI_ERR_NO_SPACE);
    OK(MPI_Get_count_c(status, MPI_BYTE, &count));
    CHECK(count >= 0 && count < BYTES);
    return count;
}

/* The first bytes of the view are what was written. */
static void there(long long count)
{
    MPI_Status status;
    int got;
    memset(back, 0, BYTES);
    OK(MPI_File_read_at(file, 0, back, (int)count, MPI_BYTE, &status));
    OK(MPI_Get_count(&status, MPI_BYTE, &got));
    SAME(got, count);
    SAME(memcmp(back, bytes, (size_t)count), 0);
}

static void empty_again(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_set_size(file, 0));
    MPI_Barrier(MPI_COMM_WORLD);
}

static void fill(void)
{
    MPI_Status status;
    MPI_Request request;
    MPI_Offset size_before, size_after;
    if (rank == 0) {
        there(full(MPI_File_write_at(file, 0, bytes, BYTES, MPI_BYTE, &status), &status));
        /* A short one, which waits for nothing, into the full file system. */
        OK(MPI_File_iwrite_at(file, 8 * MIB, bytes, 1000, MPI_BYTE, &request));
        SAME(full(MPI_Wait(&request, &status), &status), 0);
    }
    empty_again();
    if (rank == size - 1) {
        OK(MPI_File_iwrite_at(file, 0, bytes, BYTES, MPI_BYTE, &request));
        long long count = full(MPI_Wait(&request, &status), &status);
        CHECK(count > MIB / 2);
        there(count);
    }
    empty_again();
    OK(MPI_File_write_at(file, rank * 1000, bytes, 1000, MPI_BYTE, &status));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_get_size(file, &size_before));
    CLASS(MPI_File_preallocate(file, BYTES), MPI_ERR_NO_SPACE);
    OK(MPI_File_get_size(file, &size_after));
    SAME(size_before, 1000 * size);
    SAME(size_after, size_before);
    empty_again();
}

/* Each rank's own short runs, more than there is room for: alone, together, and then fewer. */
static void fill_strided(void)
{
    MPI_Datatype strided;
    MPI_Status status;
    OK(MPI_Type_vector(BLOCKS, BLOCK, BLOCK * size, MPI_BYTE, &strided));
    OK(MPI_Type_commit(&strided));
    OK(MPI_File_set_view(file, rank * BLOCK, MPI_BYTE, strided, "native", MPI_INFO_NULL));
    if (rank == 0) there(full(MPI_File_write_at(file, 0, bytes, BLOCK * BLOCKS, MPI_BYTE, &status), &status));
    empty_again();
    long long count = full(MPI_File_write_at_all(file, 0, bytes, BLOCK * BLOCKS, MPI_BYTE, &status), &status);
    MPI_Barrier(MPI_COMM_WORLD);
    there(count);
    empty_again();
    OK(MPI_File_write_at_all(file, 0, bytes, MIB / 8, MPI_BYTE, &status));
    MPI_Barrier(MPI_COMM_WORLD);
    there(MIB / 8);
    OK(MPI_Type_free(&strided));
}

int main(int argc, char **argv)
{
    const char *number = getenv("PERUSAL_RANK");
    char folder[64], path[128];
    int mounted = 0, why = 0, id = (int)getpid();
    snprintf(folder, sizeof folder, "/tmp/file_disk_full.%d", id);
    if (number == NULL || strcmp(number, "0") == 0) mounted = mount_small(folder), why = errno;
    OK(MPI_Init(&argc, &argv));
    name_file("file");
    MPI_Bcast(&mounted, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (mounted) {
        for (int i = 0; i < BYTES; i++) bytes[i] = (unsigned char)(i * 31 + i / 1000 + rank + 1);
        snprintf(path, sizeof path, "/proc/%d/root/tmp/file_disk_full.%d/%s", id, id, name);
        OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
        fill();
        fill_strided();
        OK(MPI_File_close(&file));
    } else if (rank == 0) {
        fprintf(stderr, "no small file system can be mounted here (%s): not tested\n", strerror(why));
    }
    MPI_Finalize();
    if (mounted && rank == 0) CHECK(umount2(folder, MNT_DETACH) == 0);
    if (rank == 0) rmdir(folder);
    return verdict();
}
