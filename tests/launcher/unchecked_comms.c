/* Communicators that are made, and operations that are prepared once and started often: mistakes of unchecked.c. */
#include "unchecked.h"

void split_types_differ(void) {
    MPI_Comm comm;
    MPI_Comm_split_type(halo, rank ? MPI_COMM_TYPE_HW_UNGUIDED : MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
    if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
}

void grids_differ(void) {
    int dims[2] = {1 + rank, 2 - rank}, periods[2] = {0, 1};
    MPI_Comm comm;
    MPI_Cart_create(halo, 2, dims, periods, 0, &comm);
    MPI_Comm_free(&comm);
}

void making_functions_differ(void) {
    MPI_Comm comm;
    if (rank == 0) MPI_Comm_dup(halo, &comm);
    else MPI_Comm_split(halo, 0, 0, &comm);
    MPI_Comm_free(&comm);
}

/* A communicator between the ranks of even and of odd numbers. */
static MPI_Comm bridge_of_halves(void) {
    MPI_Comm half, bridge;
    MPI_Comm_split(halo, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, halo, 1 - rank % 2, 5, &bridge);
    MPI_Comm_set_name(bridge, "bridge");
    MPI_Comm_free(&half);
    return bridge;
}

/* Each group says that the root is in itself. */
void groups_of_roots_differ(void) {
    MPI_Comm bridge = bridge_of_halves();
    int value = 0;
    MPI_Bcast(&value, 1, MPI_INT, MPI_ROOT, bridge);
    MPI_Comm_free(&bridge);
}

/* One group sends to a root, and all of the other one say that they are not it. */
void root_of_nobody(void) {
    MPI_Comm bridge = bridge_of_halves();
    int value = 0, values[2];
    MPI_Gather(&value, 1, MPI_INT, values, 1, MPI_INT, rank % 2 ? 0 : MPI_PROC_NULL, bridge);
    MPI_Comm_free(&bridge);
}

/* Each rank in turn is the root, in operations that go to it and from it. */
void roots_between_groups_fit(void) {
    if (size < 2) return;
    MPI_Comm bridge = bridge_of_halves();
    int value = 0, sum, values[8];
    for (int root = 0; root < size; root++) {
        int place = rank % 2 != root % 2 ? root / 2 : rank == root ? MPI_ROOT : MPI_PROC_NULL;
        MPI_Bcast(&value, 1, MPI_INT, place, bridge);
        MPI_Gather(&value, 1, MPI_INT, values, 1, MPI_INT, place, bridge);
        MPI_Reduce(&value, &sum, 1, MPI_INT, MPI_SUM, place, bridge);
    }
    MPI_Comm_free(&bridge);
}

static MPI_Group group_of(int first, int members) {
    MPI_Group all, group;
    MPI_Comm_group(halo, &all);
    MPI_Group_range_incl(all, 1, &(int[1][3]){{first, first + members - 1, 1}}[0], &group);
    MPI_Group_free(&all);
    return group;
}

static void create(MPI_Group group) {
    MPI_Comm comm;
    MPI_Comm_create(halo, group, &comm);
    if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
    if (group != MPI_GROUP_EMPTY) MPI_Group_free(&group);
}

void groups_differ(void) { create(rank ? group_of(1, 1) : group_of(0, 2)); }

/* One group of all, one of the first alone, one for each rank, none. */
void groups_fit(void) {
    create(group_of(0, size));
    create(group_of(0, 1));
    create(group_of(rank, 1));
    create(rank ? MPI_GROUP_EMPTY : group_of(0, 1));
    create(MPI_GROUP_EMPTY);
}

/* A broadcast, whose root goes on at once: one of rank 1 starts is missing, and of the second one,
 * which nobody frees. */
void starts_differ(void) {
    static int values[2];
    MPI_Request requests[2];
    for (int i = 0; i < 2; i++) MPI_Bcast_init(&values[i], 1, MPI_INT, 0, halo, MPI_INFO_NULL, &requests[i]);
    for (int round = 0; round < 3 - rank; round++) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&requests[0]);
}

/* Some free theirs before others start theirs for the last time, and after the communicator. */
void starts_fit(void) {
    static int value;
    MPI_Request requests[2], never;
    MPI_Comm comm;
    MPI_Comm_dup(halo, &comm);
    MPI_Barrier_init(comm, MPI_INFO_NULL, &requests[1]);
    MPI_Bcast_init(&value, 1, MPI_INT, size - 1, comm, MPI_INFO_NULL, &requests[0]);
    MPI_Barrier_init(comm, MPI_INFO_NULL, &never);
    for (int round = 0; round < 3; round++) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Start(&requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Request_free(&never);
    MPI_Comm_free(&comm);
    for (int i = 0; i < 2; i++) MPI_Request_free(&requests[i]);
}

/* Rank 1 leaves out two calls that rank 0 makes with it, and that need not wait for it. */
void group_call_left_out(void) {
    MPI_Group all = group_of(0, 2);
    MPI_Comm comm;
    if (rank == 0) {
        MPI_Comm_create_group(halo, all, 3, &comm);
        MPI_Comm_free(&comm);
        MPI_Comm_create_from_group(all, "mesh", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
        MPI_Comm_free(&comm);
    }
    MPI_Barrier(halo);
    MPI_Group_free(&all);
}

/* Each rank with each other one, and all. */
void group_calls_fit(void) {
    MPI_Comm comm;
    for (int first = 0; first < size; first++) {
        MPI_Group group = group_of(first, first + 1 < size ? 2 : 1), all = group_of(0, size);
        if (rank == first || rank == first + 1) {
            MPI_Comm_create_group(halo, group, first, &comm);
            MPI_Comm_free(&comm);
        }
        MPI_Comm_create_from_group(all, "all", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
        MPI_Comm_free(&comm);
        MPI_Group_free(&group);
        MPI_Group_free(&all);
    }
}
