/* MPI_INFO_ENV has the number of processes that were asked for, of the launcher or of MPI_Comm_spawn.
 * RANKS: 1 3
 */
#include "check.h"

static void asked(const char *number)
{
    char value[20] = "";
    int flag = 0, length = sizeof value;
    OK(MPI_Info_get_string(MPI_INFO_ENV, "maxprocs", &length, value, &flag));
    SAME(flag, number != NULL);
    if (number) SAME(strcmp(value, number), 0);
}

int main(int argc, char **argv)
{
    MPI_Comm parent, children;
    int size, sum = 0, wrong;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        asked("2");
        OK(MPI_Reduce(&failures, NULL, 1, MPI_INT, MPI_SUM, 0, parent));
        OK(MPI_Comm_disconnect(&parent));
        OK(MPI_Finalize());
        return verdict();
    }
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    /* One rank is started without the launcher. */
    asked(size == 1 ? NULL : "3");
    OK(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children, MPI_ERRCODES_IGNORE));
    wrong = -1;
    OK(MPI_Reduce(&sum, &wrong, 1, MPI_INT, MPI_SUM, MPI_ROOT, children));
    SAME(wrong, 0);
    OK(MPI_Comm_disconnect(&children));
    OK(MPI_Finalize());
    return verdict();
}
