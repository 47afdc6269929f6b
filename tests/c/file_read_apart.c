/* Reads of many short runs again and again through one view: each has what any rank or program has written since, ends
 * where the file ends, and goes on where the file was cut off and extended in between, and in another part of it; for
 * reading alone and for both, with and without mappings.
 * RANKS: 1 2
 */
#include "file.h"
#include <fcntl.h>
#include <stdlib.h>

enum { RUN = 100, RUNS = 500, ROUNDS = 24, MOST = 2 * RUN * RUNS };

static unsigned char byte_of(int round, long at) { return (unsigned char)(1 + (round * 31 + at * 7 + at / 251) % 250); }

/* Fills the file's first `bytes` bytes from `base` on by system calls, and cuts it off there. */
static void fill(int round, MPI_Offset base, long bytes)
{
    static unsigned char data[MOST];
    int fd = open(name, O_RDWR);
    CHECK(fd >= 0);
    for (long at = 0; at < bytes; at++) data[at] = byte_of(round, at);
    SAME(pwrite(fd, data, (size_t)bytes, base), bytes);
    SAME(ftruncate(fd, base + bytes), 0);
    close(fd);
}

/* Reads the runs of this rank twice, of a file with so many bytes from `base` on. */
static void look(MPI_File file, int round, MPI_Offset base, long bytes)
{
    static unsigned char seen[RUN * RUNS + 1];
    MPI_Datatype filetype;
    MPI_Status status;
    OK(MPI_Type_vector(RUNS, RUN, RUN * size, MPI_BYTE, &filetype));
    OK(MPI_Type_commit(&filetype));
    OK(MPI_File_set_view(file, base + rank * RUN, MPI_BYTE, filetype, "native", MPI_INFO_NULL));
    OK(MPI_Type_free(&filetype));
    for (int again = 0; again < 2; again++) {
        int count, expected = 0, right = 0;
        memset(seen, 0, sizeof seen);
        OK(MPI_File_read_at(file, 0, seen, RUN * RUNS, MPI_BYTE, &status));
        for (int i = 0; i < RUN * RUNS; i++) {
            const long at = (long)(i / RUN) * RUN * size + rank * RUN + i % RUN;
            expected += at < bytes;
            right += seen[i] == (at < bytes ? byte_of(round, at) : 0);
        }
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        SAME(count, expected);
        SAME(right, RUN * RUNS);
        SAME(seen[RUN * RUNS], 0);
    }
}

int main(int argc, char **argv)
{
    MPI_File both, reader, unmapped;
    MPI_Info info;
    MPI_Init(&argc, &argv);
    name_file("file_read_apart");
    const long whole = (long)RUN * RUNS * size;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &both));
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &reader));
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "romio_ds_read", "disable"));
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, info, &unmapped));
    OK(MPI_Info_free(&info));
    for (int round = 0; round < ROUNDS; round++) {
        /* Every fourth round elsewhere, which no mapping of the others has, or where one begins. */
        const MPI_Offset base = round % 4 == 3 ? ((MPI_Offset)(round % 8 == 3 ? 40 : 16) << 20) - 5000 : 0;
        const long bytes = round % 3 == 1 ? whole - 1 - round * 997 : round % 7 == 6 ? 0 : whole;
        if (rank == 0) fill(round, base, bytes);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        look(both, round, base, bytes);
        look(reader, round, base, bytes);
        look(unmapped, round, base, bytes);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    /* What is written through the view is what is read through it. */
    static unsigned char data[RUN * RUNS];
    if (rank == 0) fill(ROUNDS, 0, whole);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    look(both, ROUNDS, 0, whole);
    for (int i = 0; i < RUN * RUNS; i++) data[i] = byte_of(ROUNDS + 1, (long)(i / RUN) * RUN * size + rank * RUN + i % RUN);
    OK(MPI_File_write_at(both, 0, data, RUN * RUNS, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    look(both, ROUNDS + 1, 0, whole);
    look(reader, ROUNDS + 1, 0, whole);
    OK(MPI_File_close(&unmapped));
    OK(MPI_File_close(&reader));
    OK(MPI_File_close(&both));
    MPI_Finalize();
    return verdict();
}
