/* survive_storm under MPI_THREAD_MULTIPLE.
 * RANKS: 6
 * ARGS: threads
 * OPTIONS: --survive
 */
#include "survive_storm.c"
