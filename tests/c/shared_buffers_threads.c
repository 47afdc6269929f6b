/* The buffers of shared_buffers.c with MPI_THREAD_MULTIPLE.
 * RANKS: 2
 * ARGS: multiple
 */
#include "shared_buffers.c"
