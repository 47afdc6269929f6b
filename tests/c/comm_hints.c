/* Hints of a communicator that a call does not name stay as they are, and so do those to which it gives a value that
 * makes no sense. A duplicate has the defaults, and those that it is made with (MPI 5.0 §7.4.4).
 * RANKS: 2
 */
#include "check.h"

static void hint(MPI_Comm comm, const char *key, const char *expected) {
    MPI_Info used;
    char value[MPI_MAX_INFO_VAL] = "";
    int flag, length = sizeof value;
    OK(MPI_Comm_get_info(comm, &used));
    OK(MPI_Info_get_string(used, key, &length, value, &flag));
    if (flag != !!expected || (expected && strcmp(value, expected))) {
        fprintf(stderr, "hint %s is %s, expected %s\n", key, flag ? value : "(none)", expected ? expected : "(none)");
        failures++;
    }
    OK(MPI_Info_free(&used));
}

static MPI_Info one(const char *key, const char *value) {
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, key, value));
    return info;
}

static void set(MPI_Comm comm, const char *key, const char *value) {
    MPI_Info info = one(key, value);
    OK(MPI_Comm_set_info(comm, info));
    OK(MPI_Info_free(&info));
}

int main(int argc, char **argv) {
    MPI_Comm comm, copy;
    MPI_Info info = one("mpi_assert_no_any_tag", "true");
    MPI_Init(&argc, &argv);
    errors_return();
    OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm));
    hint(comm, "mpi_assert_no_any_tag", "true");
    set(comm, "mpi_assert_exact_length", "true");
    hint(comm, "mpi_assert_no_any_tag", "true");
    hint(comm, "mpi_assert_exact_length", "true");
    set(comm, "mpi_assert_no_any_tag", "false");
    hint(comm, "mpi_assert_no_any_tag", "false");
    hint(comm, "mpi_assert_exact_length", "true");
    OK(MPI_Comm_set_info(comm, MPI_INFO_NULL));
    hint(comm, "mpi_assert_exact_length", "true");
    OK(MPI_Comm_dup(comm, &copy));
    hint(copy, "mpi_assert_exact_length", "false");
    hint(copy, "mpi_assert_no_any_tag", "false");
    hint(copy, "mpi_assert_no_any_source", "false");
    hint(copy, "mpi_assert_allow_overtaking", "false");
    hint(copy, "mpi_assert_strict_persistent_collective_ordering", "false");
    hint(copy, "mpi_assert_memory_alloc_kinds", NULL);
    set(copy, "mpi_assert_no_any_tag", "TRUE");
    set(copy, "mpi_assert_no_any_tag", "perhaps");
    hint(copy, "mpi_assert_no_any_tag", "true");
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, info, &copy));
    hint(copy, "mpi_assert_no_any_tag", "true");
    OK(MPI_Comm_free(&copy));
    OK(MPI_Dist_graph_create_adjacent(comm, 0, NULL, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, info, 0, &copy));
    hint(copy, "mpi_assert_no_any_tag", "true");
    OK(MPI_Comm_free(&copy));
    OK(MPI_Dist_graph_create(comm, 0, NULL, NULL, NULL, MPI_UNWEIGHTED, info, 0, &copy));
    hint(copy, "mpi_assert_no_any_tag", "true");
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Info_free(&info));
    MPI_Finalize();
    return verdict();
}
