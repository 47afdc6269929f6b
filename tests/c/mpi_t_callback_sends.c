/* An MPI_T callback that runs at once may make local enquiries; one that communicates ends the job, where errors are
 * fatal, which says why in MPI_T's terms.
 * RANKS: 1
 * EXIT: 16
 * EXPECT: asked: MPI_COMM_WORLD 1 4
 * STDERR: MPI_Send: an MPI_T callback that runs where its event happens may call MPI_T and local enquiries only
 */
#include "mpi_t_event.h"

static void sends(MPI_T_event_instance event, MPI_T_event_registration handle, MPI_T_cb_safety safety, void *data)
{
    char name[MPI_MAX_OBJECT_NAME];
    int length, ranks, size;
    (void)event, (void)handle, (void)data;
    SAME(safety, MPI_T_CB_REQUIRE_MPI_RESTRICTED);
    OK(MPI_Comm_get_name(MPI_COMM_WORLD, name, &length));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
    OK(MPI_Type_size(MPI_INT, &size));
    if (!failures) printf("asked: %s %d %d\n", name, ranks, size);
    fflush(stdout);
    MPI_Send(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    initialise_tools();
    MPI_Init(&argc, &argv);
    listen_to(type_of("PERUSE_COMM_REQ_ACTIVATE_all"), NULL, 0, sends, NULL);
    MPI_Send(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
