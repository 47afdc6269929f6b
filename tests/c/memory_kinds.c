/* The kinds of memory that the library takes, of all objects and sessions,
 * as the program was started or the session opened (MPI 5.0 §11.4.3).
 * RANKS: 2
 * OPTIONS: -universe 8 -memory-alloc-kinds system,mpi:alloc_mem,cuda:device
 */
#include "check.h"

static const char *const KEY = "mpi_memory_alloc_kinds";
static const char *const ALWAYS = "mpi,system", *const ASKED = "mpi,system,mpi:alloc_mem";

/* Takes the info object. */
static void kinds(int line, MPI_Info used, const char *expected) {
    char value[MPI_MAX_INFO_VAL] = "";
    int flag, length = sizeof value;
    OK(MPI_Info_get_string(used, KEY, &length, value, &flag));
    if (!flag || strcmp(value, expected)) {
        fprintf(stderr, "line %d: %s is %s, expected %s\n", line, KEY, flag ? value : "(none)", expected);
        failures++;
    }
    OK(MPI_Info_free(&used));
}

#define KINDS(object, handle, expected)                     \
    do {                                                    \
        MPI_Info used_ = MPI_INFO_NULL;                     \
        OK(MPI_##object##_get_info(handle, &used_));        \
        kinds(__LINE__, used_, expected);                   \
    } while (0)

static MPI_Info asking(const char *value) {
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, KEY, value));
    return info;
}

/* What is made from `comm` has what it has, and no call changes that. */
static void derived(MPI_Comm comm, const char *expected) {
    MPI_Info info = asking("none");
    MPI_Comm copy, part;
    MPI_Win win;
    MPI_File file;
    char name[64];
    int *base, rank;
    KINDS(Comm, comm, expected);
    OK(MPI_Comm_set_info(comm, info));
    KINDS(Comm, comm, expected);
    OK(MPI_Comm_dup_with_info(comm, info, &copy));
    KINDS(Comm, copy, expected);
    OK(MPI_Comm_rank(copy, &rank));
    OK(MPI_Comm_split(copy, 0, -rank, &part));
    KINDS(Comm, part, expected);
    OK(MPI_Win_allocate(8, 1, info, part, &base, &win));
    KINDS(Win, win, expected);
    OK(MPI_Win_set_info(win, info));
    KINDS(Win, win, expected);
    OK(MPI_Win_free(&win));
    snprintf(name, sizeof name, "kinds-%d.%d", rank, (int)(expected == ALWAYS));
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info, &file));
    OK(MPI_File_set_info(file, info));
    KINDS(File, file, ASKED);
    OK(MPI_File_close(&file));
    OK(MPI_Comm_free(&part));
    OK(MPI_Comm_free(&copy));
    OK(MPI_Info_free(&info));
}

static void session(const char *asked, const char *expected) {
    MPI_Info info = asked ? asking(asked) : MPI_INFO_NULL;
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    OK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
    KINDS(Session, session, expected);
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, "kinds", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    derived(comm, expected);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Group_free(&group));
    OK(MPI_Session_finalize(&session));
    if (asked) OK(MPI_Info_free(&info));
}

/* Spawned processes have what their spawn asks for, not what their parents have. */
static void spawned(char *self, const char *asked, const char *expected) {
    MPI_Info info = asked ? asking(asked) : MPI_INFO_NULL;
    MPI_Comm inter;
    char *arguments[] = {(char *)expected, NULL};
    int bad;
    OK(MPI_Comm_spawn(self, arguments, 1, info, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    KINDS(Comm, inter, ASKED);
    OK(MPI_Bcast(&bad, 1, MPI_INT, 0, inter));
    SAME(bad, 0);
    OK(MPI_Comm_disconnect(&inter));
    if (asked) OK(MPI_Info_free(&info));
}

static int child(MPI_Comm parent, const char *expected) {
    KINDS(Comm, MPI_COMM_WORLD, expected);
    KINDS(Comm, parent, expected);
    OK(MPI_Bcast(&failures, 1, MPI_INT, MPI_ROOT, parent));
    OK(MPI_Comm_disconnect(&parent));
    OK(MPI_Finalize());
    return verdict();
}

int main(int argc, char **argv) {
    MPI_Comm parent;
    char value[MPI_MAX_INFO_VAL] = "";
    int flag, length = sizeof value;
    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) return child(parent, argv[1]);
    /* What was asked for, as it was asked for. */
    OK(MPI_Info_get_string(MPI_INFO_ENV, KEY, &length, value, &flag));
    CHECK(flag && strcmp(value, "system,mpi:alloc_mem,cuda:device") == 0);
    KINDS(Comm, MPI_COMM_SELF, ASKED);
    derived(MPI_COMM_WORLD, ASKED);
    session(NULL, ASKED);
    session("", ALWAYS);
    session("system", ALWAYS);
    session("mpi:win_allocate_shared:alloc_mem, rocm", "mpi,system,mpi:win_allocate_shared:alloc_mem");
    spawned(argv[0], NULL, ALWAYS);
    spawned(argv[0], "mpi:win_allocate", "mpi,system,mpi:win_allocate");
    OK(MPI_Finalize());
    return verdict();
}
