/* The other half of mpi_t_cvar_fences.c: senders fence.
 * RANKS: 2
 */
#define SENDERS_FENCE 1
#include "mpi_t_cvar_fences.c"
