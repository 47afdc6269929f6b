/* As peruse_pair.c, when both ranks' buffer lies in the shared heap.
 * RANKS: 2
 * FLAGS: -DSHARED=3
 */
#include "peruse_pair.c"
