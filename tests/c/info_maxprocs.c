/* MPI_INFO_ENV has the number of processes that were asked for, of the launcher or of MPI_Comm_spawn, and the numbers
 * that would do, if there were such.
 * RANKS: 1 3
 */
#include "check.h"

static void about(const char *key, const char *expected)
{
    char value[20] = "";
    int flag = 0, length = sizeof value;
    OK(MPI_Info_get_string(MPI_INFO_ENV, key, &length, value, &flag));
    SAME(flag, expected != NULL);
    if (expected) SAME(strcmp(value, expected), 0);
}

static void asked(const char *number) { about("maxprocs", number); }

int main(int argc, char **argv)
{
    MPI_Comm parent, children;
    MPI_Info soft;
    int size, sum = 0, wrong;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        /* Two of four: what was asked for counts, not what came of it. */
        asked("4");
        about("soft", "0:3:2");
        OK(MPI_Reduce(&failures, NULL, 1, MPI_INT, MPI_SUM, 0, parent));
        OK(MPI_Comm_disconnect(&parent));
        OK(MPI_Finalize());
        return verdict();
    }
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    /* One rank is started without the launcher. */
    asked(size == 1 ? NULL : "3");
    about("soft", NULL);
    OK(MPI_Info_create(&soft));
    OK(MPI_Info_set(soft, "soft", "0:3:2"));
    OK(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 4, soft, 0, MPI_COMM_SELF, &children, MPI_ERRCODES_IGNORE));
    OK(MPI_Info_free(&soft));
    OK(MPI_Comm_remote_size(children, &size));
    SAME(size, 2);
    wrong = -1;
    OK(MPI_Reduce(&sum, &wrong, 1, MPI_INT, MPI_SUM, MPI_ROOT, children));
    SAME(wrong, 0);
    OK(MPI_Comm_disconnect(&children));
    OK(MPI_Finalize());
    return verdict();
}
