/* As coll_long_reduce_scatter.c, with a CPU for each rank, as far as the library knows, and through the bulk,
 * whatever the kernel allows.
 * RANKS: 3 5
 * ENV: PERUSAL_USABLE_CPUS=64
 * ENV: PERUSAL_COLL_DIRECT_FROM=4294967295
 */
#include "coll_long_reduce_scatter.c"
