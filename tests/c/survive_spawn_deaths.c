/* Deaths while the root of MPI_Comm_spawn waits for a process that it has started and that does not come: of another
 * one that it has started, of a member that has not made the call, and of one that has made it. The spawn fails at all
 * that live, within time, and the process that comes afterwards is refused: it does not wait in MPI_Init for ever.
 * RANKS: 3
 * OPTIONS: --survive --universe 32
 * STDERR: the process that has spawned it could not finish MPI_Comm_spawn
 */
#include "survive.h"

/* The beginning of the names of the files by which processes meet that MPI does not connect. */
static char folder[64];

static char *file(const char *base, const char *what) {
    static char name[128];
    snprintf(name, sizeof name, "%s.%s", base, what);
    return name;
}

static void create(const char *base, const char *what, int pid) {
    char done[128];
    FILE *made = fopen(file(base, "new"), "w");
    if (made == NULL) _exit(1);
    fprintf(made, "%d", pid);
    fclose(made);
    snprintf(done, sizeof done, "%s", file(base, what));
    if (rename(file(base, "new"), done) != 0) _exit(1);
}

/* Waits for a file, removes it, and returns the number in it. */
static int await(const char *base, const char *what) {
    int number = 0;
    FILE *there;
    while ((there = fopen(file(base, what), "r")) == NULL) usleep(1000);
    CHECK(fscanf(there, "%d", &number) == 1);
    fclose(there);
    unlink(file(base, what));
    return number;
}

/* What a spawned process does: it says that it is there, and comes once it may; or it dies once the other one is. */
static int newcomer(const char *task, const char *base) {
    if (!strcmp(task, "dies")) {
        while (access(file(base, "there"), F_OK) != 0) usleep(1000);
        die();
    }
    create(base, "there", (int)getpid());
    await(base, "come");
    MPI_Init(NULL, NULL);
    fprintf(stderr, "it was not refused\n");
    return 1;
}

/* Spawns processes that do these tasks over `comm`; expects the call to fail for a death. */
static void fails(const char *program, MPI_Comm comm, int count, char **tasks) {
    MPI_Comm between = MPI_COMM_NULL;
    char *programs[2] = {(char *)program, (char *)program}, *arguments[2][4], **all[2];
    int most[2] = {1, 1};
    MPI_Info infos[2] = {MPI_INFO_NULL, MPI_INFO_NULL};
    for (int i = 0; i < count; i++) {
        char *these[] = {"newcomer", tasks[i], folder, NULL};
        memcpy(arguments[i], these, sizeof these);
        all[i] = arguments[i];
    }
    int error = MPI_Comm_spawn_multiple(count, programs, all, most, infos, 0, comm, &between, MPI_ERRCODES_IGNORE);
    int class = MPI_SUCCESS;
    MPI_Error_class(error, &class);
    /* Members that have not lost one of their own know only that it has failed. */
    CHECK(class == MPIX_ERR_PROC_FAILED || (count > 1 && class == MPI_ERR_SPAWN));
    CHECK(between == MPI_COMM_NULL);
}

/* The process that was started may come now; it ends. */
static void let_it_come(int rank) {
    if (rank != 0) return;
    int pid = await(folder, "there");
    create(folder, "come", 0);
    while (kill(pid, 0) == 0) usleep(1000);
}

int main(int argc, char **argv) {
    int rank, size;
    char *two[] = {"waits", "dies"}, *one[] = {"waits"};
    MPI_Comm comm, living;
    if (argc > 3) return newcomer(argv[2], argv[3]);
    MPI_Init(&argc, &argv);
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) snprintf(folder, sizeof folder, "/tmp/survive_spawn_deaths.%d", (int)getpid());
    OK(MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    fails(argv[0], comm, 2, two);
    let_it_come(rank);
    OK(MPI_Barrier(comm));

    /* A member dies that has not made the call. */
    if (rank == 2) {
        while (access(file(folder, "there"), F_OK) != 0) usleep(1000);
        die();
    }
    fails(argv[0], comm, 1, one);
    let_it_come(rank);
    living = shrunk(comm, 2);

    /* One dies that has made it. */
    MPI_Comm_size(living, &size);
    if (rank == 1 && fork() == 0) {
        while (access(file(folder, "there"), F_OK) != 0) usleep(1000);
        usleep(200000);
        kill(getppid(), SIGKILL);
        _exit(0);
    }
    fails(argv[0], living, 1, one);
    let_it_come(rank);
    MPI_Finalize();
    return verdict();
}
