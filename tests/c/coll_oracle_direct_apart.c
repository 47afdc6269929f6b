/* As coll_oracle.c, with a CPU for each rank, as far as the library knows,
 * and nearly all data copied out of the other members' memory in one step.
 * RANKS: 3 5
 * ENV: PERUSAL_USABLE_CPUS=64
 * ENV: PERUSAL_COLL_DIRECT_FROM=64
 * EXPECT: all agree
 */
#include "coll_oracle.c"
