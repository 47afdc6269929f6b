/* Counts beyond what an int holds: bytes that are written in one access and read back in another, contiguous and with
 * gaps in the file, alone and with all ranks, atomic and not.
 * They are short, unless PERUSAL_LARGE_FILES is set and the file system has room.
 * RANKS: 1 2
 */
#define _GNU_SOURCE
#include "file.h"
#include <sys/mman.h>
#include <sys/statvfs.h>

enum { BLOCK = 1 << 20 };

/* What a rank writes, and where it reads to: so many blocks, all of them the same memory,
 * so that little of it is enough. */
static unsigned char *blocks_of_one(MPI_Count blocks)
{
    int fd = memfd_create("blocks", MFD_CLOEXEC);
    CHECK(fd >= 0 && ftruncate(fd, BLOCK) == 0);
    unsigned char *all = mmap(NULL, (size_t)blocks * BLOCK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(all != MAP_FAILED);
    for (MPI_Count i = 0; i < blocks; i++)
        CHECK(mmap(all + i * BLOCK, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
    close(fd);
    return all;
}

static unsigned char value(int round, long at) { return (unsigned char)(round * 37 + rank * 101 + at * 7 + at / 4096 + 1); }

static void fill(unsigned char *memory, int round)
{
    for (long at = 0; at < BLOCK; at++) memory[at] = value(round, at);
}

/* Whether block `block` of this rank's view is what was written. */
static void check_block(MPI_File file, MPI_Count block, int round)
{
    static unsigned char seen[BLOCK];
    MPI_Status status;
    int wrong = 0;
    OK(MPI_File_read_at(file, block * BLOCK, seen, BLOCK, MPI_BYTE, &status));
    for (long at = 0; at < BLOCK; at++) wrong += seen[at] != value(round, at);
    SAME(wrong, 0);
}

static void count_is(const MPI_Status *status, MPI_Count expected)
{
    MPI_Count count;
    int small;
    OK(MPI_Get_count_c(status, MPI_BYTE, &count));
    SAME(count, expected);
    OK(MPI_Get_count(status, MPI_BYTE, &small));
    SAME(small, expected > 2147483647 ? MPI_UNDEFINED : (int)expected);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    name_file("file_counts_beyond");
    struct statvfs disk;
    int large = getenv("PERUSAL_LARGE_FILES") != NULL && statvfs(".", &disk) == 0 && disk.f_bavail * disk.f_frsize > 16ull << 30;
    MPI_Bcast(&large, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%s counts\n", large ? "large" : "small");
    const MPI_Count blocks = large ? 2056 : 3, bytes = blocks * BLOCK;
    unsigned char *memory = blocks_of_one(blocks);
    MPI_File file;
    MPI_Status status;
    MPI_Request request;
    MPI_Offset at;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    for (int round = 0; round < 4; round++) {
        const int atomic = round % 2, gaps = round / 2;
        MPI_Datatype filetype;
        /* Blocks of the ranks in turn, or one rank's behind the other's. */
        OK(MPI_Type_create_resized(MPI_BYTE, 0, 1, &filetype));
        MPI_Offset disp = rank * bytes;
        if (gaps) {
            MPI_Datatype block;
            OK(MPI_Type_free(&filetype));
            OK(MPI_Type_contiguous(BLOCK, MPI_BYTE, &block));
            OK(MPI_Type_create_resized(block, 0, (MPI_Aint)BLOCK * size + 4096, &filetype));
            OK(MPI_Type_free(&block));
            disp = (MPI_Offset)rank * BLOCK;
        }
        OK(MPI_Type_commit(&filetype));
        OK(MPI_File_set_view(file, disp, MPI_BYTE, filetype, "native", MPI_INFO_NULL));
        OK(MPI_File_set_atomicity(file, atomic));
        fill(memory, round);
        if (gaps && !atomic) {
            OK(MPI_File_write_all_c(file, memory, bytes, MPI_BYTE, &status));
        } else if (atomic) {
            OK(MPI_File_write_at_c(file, 0, memory, bytes, MPI_BYTE, &status));
        } else {
            OK(MPI_File_iwrite_at_c(file, 0, memory, bytes, MPI_BYTE, &request));
            OK(MPI_Wait(&request, &status));
        }
        count_is(&status, bytes);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        check_block(file, 0, round);
        check_block(file, blocks / 2, round);
        check_block(file, blocks - 1, round);
        memset(memory, 0, BLOCK);
        OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
        if (gaps) {
            OK(MPI_File_read_all_c(file, memory, bytes, MPI_BYTE, &status));
        } else {
            OK(MPI_File_read_c(file, memory, bytes, MPI_BYTE, &status));
        }
        count_is(&status, bytes);
        int wrong = 0;
        for (long b = 0; b < BLOCK; b++) wrong += memory[b] != value(round, b);
        SAME(wrong, 0);
        OK(MPI_File_get_position(file, &at));
        SAME(at, bytes);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Type_free(&filetype));
        OK(MPI_File_set_size(file, 0));
    }
    OK(MPI_File_close(&file));
    munmap(memory, (size_t)bytes);
    MPI_Finalize();
    return verdict();
}
