/* Writes many short runs again and again through one view: each write is in the file, sets the time of its last change,
 * and goes on where the file was cut off and extended between two writes, and in another part of it.
 * RANKS: 1 2
 * EXPECT: all good
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RUN = 100, RUNS = 500, ROUNDS = 12 };

static int rank, size;

static void check(int good, const char *what, int round)
{
    if (good) return;
    fprintf(stderr, "rank %d, round %d: %s\n", rank, round, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static char byte_of(int round, int writer, int run) { return (char)(1 + (round * 31 + writer * 7 + run) % 120); }

int main(int argc, char **argv)
{
    char name[64] = "", *data = malloc(RUN * RUNS), *seen;
    MPI_Datatype filetype;
    MPI_File file;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) snprintf(name, sizeof name, "/tmp/file_mapping_kept.%d", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    MPI_Type_vector(RUNS, RUN, RUN * size, MPI_BYTE, &filetype);
    MPI_Type_commit(&filetype);
    size_t span = (size_t)RUN * RUNS * size;
    seen = malloc(span);
    for (int round = 0; round < ROUNDS; round++) {
        /* Every fourth round elsewhere: 40 MiB on, which no mapping of the others has. */
        MPI_Offset base = round % 4 == 3 ? (MPI_Offset)40 << 20 : 0;
        struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
        struct stat after;
        if (round % 5 == 4) {
            MPI_File_set_size(file, 0);
            MPI_File_set_size(file, round % 2 ? 5000 : 0);
        }
        MPI_File_set_view(file, base + rank * RUN, MPI_BYTE, filetype, "native", MPI_INFO_NULL);
        for (int run = 0; run < RUNS; run++) memset(data + run * RUN, byte_of(round, rank, run), RUN);
        if (rank == 0) check(utimensat(AT_FDCWD, name, old, 0) == 0, "the file's times cannot be set", round);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_File_write_at(file, 0, data, RUN * RUNS, MPI_BYTE, MPI_STATUS_IGNORE);
        check(stat(name, &after) == 0 && after.st_mtime > 1000, "the time of the last change is an old one", round);
        MPI_Barrier(MPI_COMM_WORLD);
        int fd = open(name, O_RDONLY);
        check(pread(fd, seen, span, base) == (ssize_t)span, "the file is too short", round);
        close(fd);
        for (size_t at = 0; at < span; at++)
            check(seen[at] == byte_of(round, (int)(at / RUN % size), (int)(at / RUN / size)), "a byte is wrong", round);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Type_free(&filetype);
    MPI_File_close(&file);
    if (rank == 0) puts("all good");
    free(seen);
    free(data);
    MPI_Finalize();
    return 0;
}
