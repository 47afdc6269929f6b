/* Groups from C; the operations themselves are checked against lists in Rust.
 * RANKS: 1 2 4
 */
#include "check.h"

int main(void) {
    int rank, size, n, result;
    MPI_Group world, all, none, odd, rest, copy;
    OK(MPI_Init(NULL, NULL));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_size(world, &n));
    SAME(n, size);
    OK(MPI_Group_rank(world, &n));
    SAME(n, rank);
    OK(MPI_Group_rank(MPI_GROUP_EMPTY, &n));
    SAME(n, MPI_UNDEFINED);

    int backwards[1][3] = {{size - 1, 0, -1}};
    OK(MPI_Group_range_incl(world, 1, backwards, &all));
    OK(MPI_Group_compare(world, all, &result));
    SAME(result, size == 1 ? MPI_IDENT : MPI_SIMILAR);
    OK(MPI_Group_range_excl(world, 1, backwards, &none));
    CHECK(none == MPI_GROUP_EMPTY);
    int ranks[3] = {0, MPI_PROC_NULL, size - 1}, there[3];
    OK(MPI_Group_translate_ranks(world, 3, ranks, all, there));
    SAME(there[0], size - 1); SAME(there[1], MPI_PROC_NULL); SAME(there[2], 0);
    OK(MPI_Group_translate_ranks(world, 1, ranks, none, there));
    SAME(there[0], MPI_UNDEFINED);

    int first[1] = {0};
    OK(MPI_Group_incl(world, 1, first, &odd));
    OK(MPI_Group_excl(world, 1, first, &rest));
    OK(MPI_Group_union(rest, odd, &copy));
    OK(MPI_Group_compare(copy, world, &result));
    SAME(result, size == 1 ? MPI_IDENT : MPI_SIMILAR);
    OK(MPI_Group_free(&copy));
    OK(MPI_Group_intersection(rest, odd, &copy));
    CHECK(copy == MPI_GROUP_EMPTY);
    OK(MPI_Group_difference(world, rest, &copy));
    OK(MPI_Group_compare(copy, odd, &result));
    SAME(result, MPI_IDENT);
    OK(MPI_Group_free(&copy));
    CHECK(copy == MPI_GROUP_NULL);

    int twice[2] = {0, 0}, zero[1][3] = {{0, 0, 0}};
    CLASS(MPI_Group_incl(world, 2, twice, &copy), MPI_ERR_RANK);
    CLASS(MPI_Group_incl(world, 1, &size, &copy), MPI_ERR_RANK);
    CLASS(MPI_Group_incl(world, -1, twice, &copy), MPI_ERR_ARG);
    CLASS(MPI_Group_range_incl(world, 1, zero, &copy), MPI_ERR_ARG);
    CLASS(MPI_Group_size(MPI_GROUP_NULL, &n), MPI_ERR_GROUP);
    CLASS(MPI_Group_size((MPI_Group)99999, &n), MPI_ERR_GROUP);
    CLASS(MPI_Group_free(&copy), MPI_ERR_GROUP);
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&odd));
    OK(MPI_Group_free(&rest));
    OK(MPI_Group_free(&none));
    OK(MPI_Finalize());
    return verdict();
}
