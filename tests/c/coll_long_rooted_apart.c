/* As coll_long_rooted.c, with a CPU for each rank, as far as the library knows.
 * RANKS: 3 5
 * ENV: PERUSAL_USABLE_CPUS=64
 */
#include "coll_long_rooted.c"
