/* A PERUSE callback that communicates ends the job, where errors are fatal, which says why in PERUSE's terms.
 * RANKS: 1
 * EXIT: 16
 * STDERR: MPI_Send: an event callback may call PERUSE and local enquiries only (PERUSE 2.0, section 5.1.2)
 */
#include "check.h"
#include <peruse.h>

static int sends(peruse_event_h handle, MPI_Aint id, peruse_comm_spec_t *spec, void *param)
{
    (void)handle, (void)id, (void)spec, (void)param;
    MPI_Send(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    peruse_event_h handle;
    MPI_Init(&argc, &argv);
    OK(PERUSE_Init());
    OK(PERUSE_Event_comm_register(PERUSE_COMM_REQ_ACTIVATE, MPI_COMM_WORLD, sends, NULL, &handle));
    OK(PERUSE_Event_activate(handle));
    MPI_Send(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
