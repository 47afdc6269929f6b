/* Communicators that not all make, and processes that are spawned. */
#include "mistakes.h"

/* Not every MPI has mpi-ext.h. */
int MPIX_Comm_agree(MPI_Comm comm, int *flag);
int MPIX_Comm_shrink(MPI_Comm comm, MPI_Comm *newcomm);

static void idup_missing(void)
{
    MPI_Request request;
    MPI_Comm new;
    if (rank == 0) receive(1, 3, world);
    MPI_Comm_idup(world, &new, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void spawned_and_nothing_sent(void)
{
    MPI_Comm parent, children;
    char *arguments[] = {"spawned-and-nothing-sent", NULL};
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL) {
        MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, world, &children, MPI_ERRCODES_IGNORE);
        MPI_Comm_set_name(children, "children");
        receive(0, 1, children);
    } else {
        MPI_Comm_set_name(parent, "parents");
        receive(0, 1, parent);
    }
}

static void spawned_and_left(void)
{
    MPI_Comm parent, children;
    char *arguments[] = {"spawned-and-left", NULL};
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL) {
        MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, world, &children, MPI_ERRCODES_IGNORE);
        MPI_Comm_set_name(children, "children");
        MPI_Barrier(children);
    } else if (rank == 0) {
        MPI_Barrier(parent);
    }
}

/* The child waits for its parent's message among its own kind. */
static void spawned_and_wrong_communicator(void)
{
    MPI_Comm parent, children;
    char *arguments[] = {"spawned-and-wrong-communicator", NULL};
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL) {
        MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, world, &children, MPI_ERRCODES_IGNORE);
        send(1, 4, children);
    } else if (rank == 1) {
        receive(0, 4, world);
    }
}

/* A communicator between the ranks of even and of odd numbers. */
static MPI_Comm bridge_of_halves(void)
{
    MPI_Comm half, bridge;
    MPI_Comm_split(world, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, world, 1 - rank % 2, 5, &bridge);
    MPI_Comm_set_name(bridge, "bridge");
    return bridge;
}

static void intercomm_root(void)
{
    /* Rank 0 is the root; the other group names the second rank of its group, rank 2, as the root. */
    int four[4] = {0};
    MPI_Bcast(four, 4, MPI_INT, rank % 2 ? 1 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, bridge_of_halves());
    MPI_Barrier(world);
}

static void intercomm_without_root(void) { MPI_Bcast(&value, 1, MPI_INT, 0, bridge_of_halves()); }

/* The group that has the root says that it is another one's: it goes on. */
static void intercomm_of_no_root(void)
{
    MPI_Bcast(&value, 1, MPI_INT, rank % 2 ? 0 : MPI_PROC_NULL, bridge_of_halves());
}

static void intercomm_of_two_roots(void)
{
    int sum;
    MPI_Reduce(&value, &sum, 1, MPI_INT, MPI_SUM, rank < 2 ? MPI_ROOT : MPI_PROC_NULL, bridge_of_halves());
}

static void split_by_some(void)
{
    MPI_Comm part;
    if (rank < 2) MPI_Comm_split(world, 0, rank, &part);
    MPI_Barrier(world);
}

static void numbers_after_creation(void)
{
    /* Calls that make something count as one each, whatever they send. */
    MPI_Comm halo = named_dup("halo"), made[4], parent;
    MPI_Win win;
    MPI_File file;
    char *arguments[] = {"numbers-after-creation", NULL};
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) return;
    MPI_Comm_dup(halo, &made[0]);
    MPI_Comm_split(halo, rank % 2, rank, &made[1]);
    MPI_Dist_graph_create(halo, 1, &rank, &(int){1}, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made[2]);
    MPI_Win_create(&value, sizeof value, sizeof value, MPI_INFO_NULL, halo, &win);
    MPI_File_open(halo, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, halo, &made[3], MPI_ERRCODES_IGNORE);
    MPI_Barrier(halo);
    if (rank == 0) receive(1, 3, halo);
    MPI_Comm_dup(halo, &made[0]);
}

static void intercomm_leader(void)
{
    /* Rank 1 is the leader of the odd ones. */
    MPI_Comm half, bridge;
    MPI_Comm_split(world, rank % 2, rank, &half);
    MPI_Comm_set_name(half, "half");
    MPI_Intercomm_create(half, 0, world, rank % 2 ? 0 : 3, 5, &bridge);
}

static MPI_Group group_of(const int *members, int count)
{
    MPI_Group all, group;
    MPI_Comm_group(world, &all);
    MPI_Group_incl(all, count, members, &group);
    return group;
}

/* The first member introduces the call, and goes on. */
static void group_strings(void)
{
    MPI_Group all;
    MPI_Comm made;
    MPI_Comm_group(world, &all);
    MPI_Comm_create_from_group(all, rank == 2 ? "solver" : "mesh", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &made);
    MPI_Barrier(world);
}

static void create_between_halves(const char *string)
{
    int half = rank % 2, own[] = {half, half + 2}, others[] = {1 - half, 3 - half};
    MPI_Comm made;
    MPI_Intercomm_create_from_groups(group_of(own, 2), 0, group_of(others, 2), 0, string, MPI_INFO_NULL,
                                     MPI_ERRORS_ARE_FATAL, &made);
}

static void strings_of_two_groups(void) { create_between_halves(rank % 2 ? "odd" : "even"); }
static void strings_of_one_group(void) { create_between_halves(rank == 3 ? "odd" : "even"); }

static void intercomm_tags(void)
{
    MPI_Comm half, bridge;
    MPI_Comm_split(world, rank % 2, rank, &half);
    MPI_Comm_set_name(half, "half");
    MPI_Intercomm_create(half, 0, world, 1 - rank % 2, 5 + rank % 2, &bridge);
}

/* A communicator of `count` members of world. */
static void make_group(const int *members, int count, int tag)
{
    MPI_Comm made;
    MPI_Comm_create_group(world, group_of(members, count), tag, &made);
}

static void group_tags(void)
{
    /* The first of them sends, and goes on. */
    int members[] = {0, 1};
    if (rank < 2) make_group(members, 2, 5 + rank);
    MPI_Barrier(world);
}

static void group_tags_of_two(void)
{
    int members[] = {0, 1, 2};
    make_group(members, 3, rank == 0 ? 5 : 4 + rank * 2);
}

static void group_and_receive(void)
{
    /* No call of all members: what ranks 2 and 3 wait in is another matter. */
    int members[] = {1, 0};
    if (rank == 0) make_group(members, 2, 5);
    if (rank == 1) receive(0, 3, world);
    MPI_Barrier(world);
}

static void agree_and_shrink(void)
{
    MPI_Comm halo = named_dup("halo"), living;
    if (rank == 0) MPIX_Comm_agree(halo, &value);
    else MPIX_Comm_shrink(halo, &living);
}

static void agree_and_finalize(void)
{
    if (rank == 0) MPIX_Comm_agree(world, &value);
}

static void agree_and_barrier(void)
{
    MPI_Comm halo = named_dup("halo");
    if (rank == 0) MPIX_Comm_agree(halo, &value);
    MPI_Barrier(halo);
}

const struct mistake mistakes_comms[] = {
    {"idup-missing", idup_missing},
    {"spawned-and-nothing-sent", spawned_and_nothing_sent},
    {"spawned-and-left", spawned_and_left},
    {"intercomm-root", intercomm_root},
    {"intercomm-without-root", intercomm_without_root},
    {"spawned-and-wrong-communicator", spawned_and_wrong_communicator},
    {"intercomm-of-no-root", intercomm_of_no_root},
    {"intercomm-leader", intercomm_leader},
    {"group-strings", group_strings},
    {"strings-of-two-groups", strings_of_two_groups},
    {"strings-of-one-group", strings_of_one_group},
    {"intercomm-of-two-roots", intercomm_of_two_roots},
    {"split-by-some", split_by_some},
    {"numbers-after-creation", numbers_after_creation},
    {"intercomm-tags", intercomm_tags},
    {"group-tags", group_tags},
    {"group-tags-of-two", group_tags_of_two},
    {"group-and-receive", group_and_receive},
    {"agree-and-barrier", agree_and_barrier},
    {"agree-and-shrink", agree_and_shrink},
    {"agree-and-finalize", agree_and_finalize},
    {NULL, NULL},
};
