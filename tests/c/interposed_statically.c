/* The same with the static library.
 * RANKS: 1 3
 * FLAGS: -static-mpi
 */
#include "interposed.c"
