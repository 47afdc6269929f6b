/* As coll_pair.c, with a CPU for each rank, as far as the library knows.
 * RANKS: 3
 * ENV: PERUSAL_USABLE_CPUS=64
 */
#include "coll_pair.c"
