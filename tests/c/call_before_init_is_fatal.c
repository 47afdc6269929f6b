/* A call that needs a running MPI ends the process with a message that names it.
 * RANKS: 1
 * EXIT: 16
 * STDERR: MPI_Get_processor_name called before MPI_Init
 */
#include <mpi.h>

int main(void) {
    char name[MPI_MAX_PROCESSOR_NAME];
    int length;
    MPI_Get_processor_name(name, &length);
    return 0;
}
