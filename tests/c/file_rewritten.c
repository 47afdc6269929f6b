/* Collective writes of many short runs again and again over the same part of the file, as time steps are: each one is
 * in the file, and sets the time of its last change; also where a rank has nothing to write, where the file was cut off
 * in between, and where one rank may not map it.
 * RANKS: 2 3 4
 */
#include "file.h"
#include <fcntl.h>
#include <sys/stat.h>

enum { RUN = 300, RUNS = 200, ROUNDS = 24 };

static unsigned char byte_of(int round, int writer, int run) { return (unsigned char)(1 + (round * 31 + writer * 7 + run) % 250); }

int main(int argc, char **argv)
{
    static unsigned char data[RUN * RUNS], oracle[4 * RUN * RUNS], seen[4 * RUN * RUNS];
    MPI_File file;
    MPI_Datatype filetype;
    MPI_Info info;
    MPI_Init(&argc, &argv);
    name_file("file_rewritten");
    const size_t span = (size_t)RUN * RUNS * (size_t)size;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_Type_vector(RUNS, RUN, RUN * size, MPI_BYTE, &filetype));
    OK(MPI_Type_commit(&filetype));
    OK(MPI_File_set_view(file, rank * RUN, MPI_BYTE, filetype, "native", MPI_INFO_NULL));
    for (int round = 0; round < ROUNDS; round++) {
        const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
        const int lazy = round % 5 == 4 ? round % size : -1;
        struct stat after;
        MPI_Status status;
        int count;
        if (round % 9 == 6) {
            OK(MPI_File_set_size(file, 5000));
            memset(oracle + 5000, 0, sizeof oracle - 5000);
        }
        if (round == 15) {
            OK(MPI_Info_create(&info));
            if (rank == 1) OK(MPI_Info_set(info, "romio_ds_write", "disable"));
            OK(MPI_File_set_info(file, info));
            OK(MPI_Info_free(&info));
        }
        for (int r = 0; r < size; r++)
            for (int run = 0; run < RUNS && r != lazy; run++) memset(oracle + (run * size + r) * RUN, byte_of(round, r, run), RUN);
        for (int run = 0; run < RUNS; run++) memset(data + run * RUN, byte_of(round, rank, run), RUN);
        if (rank == 0) SAME(utimensat(AT_FDCWD, name, old, 0), 0);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_File_write_at_all(file, 0, data, rank == lazy ? 0 : RUN * RUNS, MPI_BYTE, &status));
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        SAME(count, rank == lazy ? 0 : RUN * RUNS);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        SAME(stat(name, &after), 0);
        CHECK(after.st_mtime > 1000);
        int fd = open(name, O_RDONLY);
        SAME(pread(fd, seen, sizeof seen, 0), span);
        close(fd);
        SAME(memcmp(seen, oracle, span), 0);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (failures) {
            fprintf(stderr, "rank %d, round %d\n", rank, round);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    OK(MPI_Type_free(&filetype));
    OK(MPI_File_close(&file));
    MPI_Finalize();
    return verdict();
}
