/* As coll_pair.c, where ranks share no memory for collectives.
 * RANKS: 2 3
 * ENV: PERUSAL_COLL_SHARED=off
 */
#include "coll_pair.c"
