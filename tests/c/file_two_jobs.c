/* Several jobs on one file in atomic mode: the launched one, and for each of its ranks a job of one process. What
 * anybody reads, one of them has written as a whole, also where an access has gaps.
 * RANKS: 1 2
 */
#include "check.h"
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 3000, TURNS = 60 };

extern char **environ;

static int use_file(const char *name, int own, MPI_Comm comm)
{
    static int words[WORDS];
    MPI_File file;
    MPI_Datatype strided;
    OK(MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_Type_vector(WORDS, 1, 2, MPI_INT, &strided));
    OK(MPI_Type_commit(&strided));
    OK(MPI_File_set_view(file, 0, MPI_INT, strided, "native", MPI_INFO_NULL));
    OK(MPI_File_set_atomicity(file, 1));
    for (int turn = 0; turn < TURNS; turn++) {
        for (int i = 0; i < WORDS; i++) words[i] = own * TURNS + turn;
        OK(MPI_File_write_at(file, 0, words, WORDS, MPI_INT, MPI_STATUS_IGNORE));
        OK(MPI_File_read_at(file, 0, words, WORDS, MPI_INT, MPI_STATUS_IGNORE));
        int torn = 0;
        for (int i = 1; i < WORDS; i++) torn += words[i] != words[0];
        SAME(torn, 0);
    }
    OK(MPI_Type_free(&strided));
    OK(MPI_File_close(&file));
    return failures;
}

int main(int argc, char **argv)
{
    char name[64];
    int pipes[2], id = 0, rank, status = 0;
    if (pipe(pipes) != 0) return 2;
    pid_t child = fork();
    if (child == 0) {
        /* It knows nothing of the job, so it is one of its own; it begins when the file's name is known. */
        for (char **entry = environ; *entry;) {
            char key[128];
            size_t length = strcspn(*entry, "=");
            if (strncmp(*entry, "PERUSAL_", 8) == 0 && length < sizeof key) {
                memcpy(key, *entry, length);
                key[length] = 0;
                unsetenv(key);
            } else {
                entry++;
            }
        }
        if (read(pipes[0], &id, sizeof id) != sizeof id) return 3;
        MPI_Init(NULL, NULL);
        snprintf(name, sizeof name, "file_two_jobs.%d", id);
        int failed = use_file(name, 50, MPI_COMM_WORLD);
        MPI_Finalize();
        return failed ? 1 : 0;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    id = (int)getpid();
    MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(name, sizeof name, "file_two_jobs.%d", id);
    SAME(write(pipes[1], &id, sizeof id), sizeof id);
    use_file(name, rank, MPI_COMM_WORLD);
    waitpid(child, &status, 0);
    SAME(status, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) OK(MPI_File_delete(name, MPI_INFO_NULL));
    MPI_Finalize();
    return verdict();
}
