/* A communicator that is revoked during MPI_Comm_spawn. Where the root has to give up, the process that it has started,
 * and that no death concerns, is refused: it does not wait in MPI_Init for ever. Where the root has all that it needs,
 * its spawn succeeds, though a member that comes later learns of the revocation: so it is with every collective
 * operation (User Level Failure Mitigation), and who needs to know what the others got asks by MPIX_Comm_agree.
 * RANKS: 3
 * OPTIONS: --survive --universe 16
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

static void create(const char *base, const char *what) {
    FILE *made = fopen(file(base, what), "w");
    CHECK(made != NULL);
    if (made) fclose(made);
}

/* Waits for a file, and removes it. */
static void await(const char *base, const char *what) {
    while (unlink(file(base, what)) != 0) usleep(1000);
}

/* What a spawned process does: it says that it is there, and comes once it may; or it comes at once. */
static int newcomer(const char *task, const char *base) {
    MPI_Comm parent;
    int waits = !strcmp(task, "waits");
    if (waits) {
        FILE *about = fopen(file(base, "new"), "w");
        if (about == NULL) return 1;
        fprintf(about, "%d", (int)getpid());
        fclose(about);
        char there[128];
        snprintf(there, sizeof there, "%s", file(base, "there"));
        if (rename(file(base, "new"), there) != 0) return 1;
        await(base, "come");
    }
    MPI_Init(NULL, NULL);
    MPI_Comm_get_parent(&parent);
    MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
    /* Some of the parents do not know of it: its root revokes it. */
    CLASS(MPI_Barrier(parent), MPIX_ERR_REVOKED);
    MPI_Comm_free(&parent);
    MPI_Finalize();
    return verdict();
}

/* The root cannot finish: a member revokes the communicator while the process that was started is not there yet. */
static void root_gives_up(const char *program, MPI_Comm comm, int rank) {
    MPI_Comm between;
    char *arguments[] = {"newcomer", "waits", folder, NULL};
    int pid = 0;
    if (rank == 1) {
        FILE *about;
        while ((about = fopen(file(folder, "there"), "r")) == NULL) usleep(1000);
        CHECK(fscanf(about, "%d", &pid) == 1);
        fclose(about);
        OK(MPIX_Comm_revoke(comm));
    }
    CLASS(MPI_Comm_spawn((char *)program, arguments, 1, MPI_INFO_NULL, 0, comm, &between, MPI_ERRCODES_IGNORE),
          MPIX_ERR_REVOKED);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 1) {
        create(folder, "come");
        while (kill(pid, 0) == 0) usleep(1000);
        unlink(file(folder, "there"));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* The root has finished, and rank 1 has not begun. */
static void root_succeeds(const char *program, MPI_Comm comm, int rank) {
    MPI_Comm between = MPI_COMM_NULL;
    char *arguments[] = {"newcomer", "comes", folder, NULL};
    int error = MPI_SUCCESS, word = 0, all_have;
    if (rank == 1) {
        OK(MPI_Recv(&word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPIX_Comm_revoke(comm));
    }
    error = MPI_Comm_spawn((char *)program, arguments, 1, MPI_INFO_NULL, 0, comm, &between, MPI_ERRCODES_IGNORE);
    if (rank == 0) {
        OK(error);
        OK(MPI_Send(&word, 1, MPI_INT, 1, 1, MPI_COMM_WORLD));
    }
    if (rank == 1) CLASS(error, MPIX_ERR_REVOKED);
    all_have = error == MPI_SUCCESS;
    OK(MPIX_Comm_agree(MPI_COMM_WORLD, &all_have));
    SAME(all_have, 0);
    if (between != MPI_COMM_NULL) {
        OK(MPI_Comm_set_errhandler(between, MPI_ERRORS_RETURN));
        OK(MPIX_Comm_revoke(between));
        OK(MPI_Comm_free(&between));
    }
}

int main(int argc, char **argv) {
    int rank;
    MPI_Comm comm;
    if (argc > 3) return newcomer(argv[2], argv[3]);
    MPI_Init(&argc, &argv);
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) snprintf(folder, sizeof folder, "/tmp/survive_spawn_revoked.%d", (int)getpid());
    OK(MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    root_gives_up(argv[0], comm, rank);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    root_succeeds(argv[0], comm, rank);
    OK(MPI_Comm_free(&comm));
    MPI_Finalize();
    return verdict();
}
