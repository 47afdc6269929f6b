/* As mpi_t_event_wait.c, of a rank with threads, of which one drives progress while others wait for it.
 * RANKS: 2
 * FLAGS: -pthread
 * ARGS: threads
 */
#include "mpi_t_event_wait.c"
