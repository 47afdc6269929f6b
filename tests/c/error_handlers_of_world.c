/* Errors that belong to no object go to MPI_COMM_WORLD's error handler until MPI_COMM_SELF is given one.
 * RANKS: 1
 */
#include "check.h"

static int of_world, of_self;
static void world_handler(MPI_Comm *comm, int *code, ...) { (void)comm, (void)code, of_world++; }
static void self_handler(MPI_Comm *comm, int *code, ...)
{
    CHECK(*comm == MPI_COMM_SELF && *code == MPI_ERR_GROUP);
    of_self++;
}

int main(void)
{
    MPI_Errhandler handler;
    MPI_Group group;
    int n;
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    CLASS(MPI_Group_size(MPI_GROUP_NULL, &n), MPI_ERR_GROUP);
    CLASS(MPI_Comm_group(MPI_COMM_NULL, &group), MPI_ERR_COMM);
    CLASS(MPI_Type_size(MPI_DATATYPE_NULL, &n), MPI_ERR_TYPE);
    OK(MPI_Comm_create_errhandler(world_handler, &handler));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler));
    OK(MPI_Errhandler_free(&handler));
    CLASS(MPI_Group_size(MPI_GROUP_NULL, &n), MPI_ERR_GROUP);
    SAME(of_world, 1);
    OK(MPI_Comm_create_errhandler(self_handler, &handler));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, handler));
    OK(MPI_Errhandler_free(&handler));
    CLASS(MPI_Group_size(MPI_GROUP_NULL, &n), MPI_ERR_GROUP);
    SAME(of_world, 1);
    SAME(of_self, 1);
    MPI_Finalize();
    return verdict();
}
