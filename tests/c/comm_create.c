/* Communicators: dup, split, create, between groups and back; contexts stay apart; names, comparison, errors.
 * RANKS: 1 2 3 4 5
 */
#include "check.h"

static int rank, size;

static int sum_of_ranks(MPI_Comm comm) {
    int one, sum = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &one);
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    return sum;
}

static void duplicates(void) {
    MPI_Comm dup;
    int result, flag;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_compare(MPI_COMM_WORLD, dup, &result));
    SAME(result, MPI_CONGRUENT);
    OK(MPI_Comm_compare(dup, dup, &result));
    SAME(result, MPI_IDENT);
    SAME(sum_of_ranks(dup), size * (size - 1) / 2);
    /* Messages of one are not seen in the other. */
    int to = (rank + 1) % size, from = (rank + size - 1) % size, out[2] = {rank, rank + 100}, in[2] = {-1, -1};
    MPI_Request requests[2];
    OK(MPI_Isend(&out[0], 1, MPI_INT, to, 7, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isend(&out[1], 1, MPI_INT, to, 7, dup, &requests[1]));
    OK(MPI_Recv(&in[1], 1, MPI_INT, from, 7, dup, MPI_STATUS_IGNORE));
    OK(MPI_Recv(&in[0], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    SAME(in[0], from);
    SAME(in[1], from + 100);
    OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, dup, &flag, MPI_STATUS_IGNORE));
    SAME(flag, 0);
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    OK(MPI_Comm_get_name(MPI_COMM_WORLD, name, &length));
    CHECK(strcmp(name, "MPI_COMM_WORLD") == 0 && length == 14);
    OK(MPI_Comm_get_name(dup, name, &length));
    SAME(length, 0);
    OK(MPI_Comm_set_name(dup, "mine"));
    OK(MPI_Comm_get_name(dup, name, &length));
    CHECK(strcmp(name, "mine") == 0);
    OK(MPI_Comm_free(&dup));
    CHECK(dup == MPI_COMM_NULL);
}

/* Contexts come back: far more than there are at once. */
static void many(void) {
    for (int i = 0; i < 3000; i++) {
        MPI_Comm dup;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
        OK(MPI_Comm_free(&dup));
    }
}

static void splits(void) {
    MPI_Comm part, whole, none;
    int r, n, result;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part));
    OK(MPI_Comm_rank(part, &r));
    OK(MPI_Comm_size(part, &n));
    SAME(n, (size + 1 - rank % 2) / 2);
    SAME(r, n - 1 - rank / 2);
    int expected = 0;
    for (int i = rank % 2; i < size; i += 2) expected += i;
    SAME(sum_of_ranks(part), expected);
    OK(MPI_Comm_free(&part));

    OK(MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 3, 0, &none));
    CHECK((none == MPI_COMM_NULL) == (rank == 0));
    if (rank) OK(MPI_Comm_free(&none));

    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -rank, MPI_INFO_NULL, &whole));
    OK(MPI_Comm_compare(MPI_COMM_WORLD, whole, &result));
    SAME(result, size > 1 ? MPI_SIMILAR : MPI_CONGRUENT);
    OK(MPI_Comm_free(&whole));
}

static void creates(void) {
    MPI_Group world, evens, odds, mine;
    MPI_Comm comm;
    int range[1][3] = {{0, size - 1, 2}}, r;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_range_incl(world, 1, range, &evens));
    OK(MPI_Group_difference(world, evens, &odds));
    /* Disjoint groups in one call. */
    mine = rank % 2 ? odds : evens;
    OK(MPI_Comm_create(MPI_COMM_WORLD, mine, &comm));
    OK(MPI_Comm_rank(comm, &r));
    SAME(r, rank / 2);
    OK(MPI_Comm_free(&comm));
    /* A group that some are not in. */
    OK(MPI_Comm_create(MPI_COMM_WORLD, evens, &comm));
    CHECK((comm == MPI_COMM_NULL) == (rank % 2 == 1));
    if (comm != MPI_COMM_NULL) OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &comm));
    CHECK(comm == MPI_COMM_NULL);
    /* Only its members call. */
    if (rank % 2 == 0) {
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, evens, 5, &comm));
        OK(MPI_Comm_rank(comm, &r));
        SAME(r, rank / 2);
        OK(MPI_Barrier(comm));
        OK(MPI_Comm_disconnect(&comm));
        OK(MPI_Comm_create_from_group(evens, "org.example", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
        OK(MPI_Barrier(comm));
        CLASS(MPI_Send(NULL, 0, MPI_INT, size + 5, 0, comm), MPI_ERR_RANK);
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&evens));
    if (odds != MPI_GROUP_EMPTY) OK(MPI_Group_free(&odds));
}

static void between(void) {
    MPI_Comm half, inter, merged, dup, sub;
    int flag, n, r, odd = rank % 2, other = 1 - odd, near = (size + other) / 2, far = size - near;
    OK(MPI_Comm_split(MPI_COMM_WORLD, odd, rank, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, other, 11, &inter));
    OK(MPI_Comm_test_inter(inter, &flag));
    SAME(flag, 1);
    OK(MPI_Comm_remote_size(inter, &n));
    SAME(n, far);
    OK(MPI_Comm_size(inter, &n));
    SAME(n, near);
    /* A message across, from my rank to the same rank there. */
    OK(MPI_Comm_rank(inter, &r));
    if (r < far && r < near) {
        int got = -1;
        MPI_Status status;
        OK(MPI_Sendrecv(&rank, 1, MPI_INT, r, 3, &got, 1, MPI_INT, r, 3, inter, &status));
        SAME(got, 2 * r + other);
        SAME(status.MPI_SOURCE, r);
    }
    /* What one gets is the other side's. */
    int sum = -1, all[8], mine = 100 + rank, theirs = 0, data[2] = {-1, -1};
    for (int i = other; i < size; i += 2) theirs += 100 + i;
    OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter));
    SAME(sum, theirs);
    OK(MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, inter));
    for (int i = 0; i < far; i++) SAME(all[i], 100 + 2 * i + other);
    /* The last even rank is a root. */
    int root = odd ? (size + 1) / 2 - 1 : r == near - 1 ? MPI_ROOT : MPI_PROC_NULL;
    if (root == MPI_ROOT) data[0] = 41, data[1] = 42;
    OK(MPI_Bcast(data, 2, MPI_INT, root, inter));
    if (odd) SAME(data[1], 42);
    sum = -1;
    OK(MPI_Reduce(&mine, &sum, 1, MPI_INT, MPI_MAX, root, inter));
    if (root == MPI_ROOT) SAME(sum, 100 + (size % 2 ? size - 2 : size - 1));
    OK(MPI_Barrier(inter));

    OK(MPI_Comm_dup(inter, &dup));
    OK(MPI_Comm_compare(inter, dup, &flag));
    SAME(flag, MPI_CONGRUENT);
    OK(MPI_Barrier(dup));
    OK(MPI_Comm_free(&dup));

    OK(MPI_Intercomm_merge(inter, odd == 0, &merged));
    OK(MPI_Comm_rank(merged, &n));
    SAME(n, odd ? r : r + size / 2);
    OK(MPI_Comm_free(&merged));

    /* Pairs: color r; those without a partner get nothing. */
    OK(MPI_Comm_split(inter, r, 0, &sub));
    CHECK((sub == MPI_COMM_NULL) == (r >= far || r >= near));
    if (sub != MPI_COMM_NULL) {
        OK(MPI_Comm_remote_size(sub, &n));
        SAME(n, 1);
        OK(MPI_Comm_free(&sub));
    }
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
}

static void errors(void) {
    MPI_Comm comm = MPI_COMM_WORLD;
    int n;
    errors_return();
    CLASS(MPI_Comm_free(&comm), MPI_ERR_COMM);
    CLASS(MPI_Comm_size(MPI_COMM_NULL, &n), MPI_ERR_COMM);
    CLASS(MPI_Comm_size((MPI_Comm)123456789, &n), MPI_ERR_COMM);
    CLASS(MPI_Comm_remote_size(MPI_COMM_WORLD, &n), MPI_ERR_COMM);
    CLASS(MPI_Comm_split(MPI_COMM_WORLD, -2, 0, &comm), MPI_ERR_ARG);
    CLASS(MPI_Comm_rank(MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
    CLASS(MPI_Bcast(&n, 1, MPI_INT, size, MPI_COMM_WORLD), MPI_ERR_ROOT);
    CLASS(MPI_Bcast(&n, -1, MPI_INT, 0, MPI_COMM_WORLD), MPI_ERR_COUNT);
    CLASS(MPI_Bcast(&n, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD), MPI_ERR_TYPE);
    CLASS(MPI_Bcast(NULL, 1, MPI_INT, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    CLASS(MPI_Allreduce(&n, &n, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    CLASS(MPI_Allreduce(MPI_IN_PLACE, &n, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD), MPI_ERR_OP);
    CLASS(MPI_Allreduce(MPI_IN_PLACE, &n, 1, MPI_FLOAT, MPI_BAND, MPI_COMM_WORLD), MPI_ERR_OP);
    CLASS(MPI_Comm_create_group(MPI_COMM_WORLD, MPI_GROUP_NULL, 0, &comm), MPI_ERR_GROUP);
}

int main(void) {
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    duplicates();
    many();
    splits();
    creates();
    if (size > 1) between();
    errors();
    OK(MPI_Finalize());
    return verdict();
}
