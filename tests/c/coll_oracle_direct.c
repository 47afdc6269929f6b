/* As coll_oracle.c, with nearly all data copied out of the other members' memory in one step.
 * RANKS: 2 3 5 8
 * ENV: PERUSAL_COLL_DIRECT_FROM=64
 * EXPECT: all agree
 */
#include "coll_oracle.c"
