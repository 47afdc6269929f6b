/* What a spawned process knows of groups: its rank in those of its own world and of its parents,
 * and the process sets of a session.
 * RANKS: 2
 */
#include "check.h"

enum { CHILDREN = 3 };

static void rank_is(MPI_Group group, int wanted)
{
    int rank = -1;
    OK(MPI_Group_rank(group, &rank));
    SAME(rank, wanted);
    OK(MPI_Group_free(&group));
}

/* The process set of that name has the members of `comm`, and a communicator can be made of it. */
static void set_is(MPI_Session session, const char *name, MPI_Comm comm)
{
    MPI_Group set, group;
    MPI_Comm made;
    int same = -1, one = 1, sum = 0, size;
    OK(MPI_Group_from_session_pset(session, name, &set));
    OK(MPI_Comm_group(comm, &group));
    OK(MPI_Group_compare(set, group, &same));
    SAME(same, MPI_IDENT);
    OK(MPI_Comm_create_from_group(set, name, MPI_INFO_NULL, MPI_ERRORS_RETURN, &made));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, made));
    OK(MPI_Comm_size(comm, &size));
    SAME(sum, size);
    OK(MPI_Comm_free(&made));
    OK(MPI_Group_free(&set));
    OK(MPI_Group_free(&group));
}

int main(int argc, char **argv)
{
    MPI_Comm parents, inter;
    MPI_Group group;
    MPI_Session session;
    int rank;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_get_parent(&parents));
    inter = parents;
    if (parents == MPI_COMM_NULL)
        OK(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
    rank_is(group, rank);
    OK(MPI_Comm_group(MPI_COMM_SELF, &group));
    rank_is(group, 0);
    OK(MPI_Comm_group(inter, &group));
    rank_is(group, rank);
    OK(MPI_Comm_remote_group(inter, &group));
    rank_is(group, MPI_UNDEFINED);
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    set_is(session, "mpi://WORLD", MPI_COMM_WORLD);
    set_is(session, "mpi://SELF", MPI_COMM_SELF);
    OK(MPI_Session_finalize(&session));
    OK(MPI_Comm_disconnect(&inter));
    OK(MPI_Finalize());
    return verdict();
}
