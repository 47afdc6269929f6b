/* The same where each member sets a flag when it arrives, as up to eight do that have a CPU each.
 * RANKS: 2 3 5
 * ENV: PERUSAL_COLL_BARRIER=flagged
 * ENV: PERUSAL_COLL_BCAST=flagged
 * ENV: PERUSAL_COLL_ALLGATHER=flagged
 * ENV: PERUSAL_COLL_ALLTOALL=flagged
 * ENV: PERUSAL_COLL_REDUCE=flagged
 * ENV: PERUSAL_COLL_ALLREDUCE=flagged
 * ENV: PERUSAL_COLL_GATHER=flagged
 * ENV: PERUSAL_COLL_SCATTER=flagged
 * ENV: PERUSAL_COLL_REDUCE_SCATTER=flagged
 * ENV: PERUSAL_COLL_SCAN=flagged
 * EXPECT: all agree
 */
#include "coll_oracle.c"
