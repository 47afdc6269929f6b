/* The same where members add to a count when they arrive, as more than eight do that have a CPU each.
 * RANKS: 2 3 5
 * ENV: PERUSAL_COLL_BARRIER=counted
 * ENV: PERUSAL_COLL_BCAST=counted
 * ENV: PERUSAL_COLL_ALLGATHER=counted
 * ENV: PERUSAL_COLL_ALLTOALL=counted
 * ENV: PERUSAL_COLL_REDUCE=counted
 * ENV: PERUSAL_COLL_ALLREDUCE=counted
 * ENV: PERUSAL_COLL_GATHER=counted
 * ENV: PERUSAL_COLL_SCATTER=counted
 * ENV: PERUSAL_COLL_REDUCE_SCATTER=counted
 * ENV: PERUSAL_COLL_SCAN=counted
 * EXPECT: all agree
 */
#include "coll_oracle.c"
