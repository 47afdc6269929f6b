/* A callback that does not return MPI_SUCCESS ends the job, and the message says which one (PERUSE 2.0 section 5.1.2).
 * RANKS: 1 2
 * EXIT: 16
 * STDERR: returned 17
 * STDERR: PERUSE_COMM_REQ_ACTIVATE
 */
#include "check.h"
#include <peruse.h>

static int fails(peruse_event_h handle, MPI_Aint id, peruse_comm_spec_t *spec, void *param)
{
    (void)handle, (void)id, (void)spec, (void)param;
    return 17;
}

int main(int argc, char **argv)
{
    peruse_event_h handle;
    MPI_Init(&argc, &argv);
    errors_return();
    OK(PERUSE_Init());
    OK(PERUSE_Event_comm_register(PERUSE_COMM_REQ_ACTIVATE, MPI_COMM_WORLD, fails, NULL, &handle));
    OK(PERUSE_Event_activate(handle));
    MPI_Send(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    printf("still here\n");
    MPI_Finalize();
    return 0;
}
