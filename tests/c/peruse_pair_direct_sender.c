/* As peruse_pair.c, when the sender's buffer lies in the shared heap.
 * RANKS: 2
 * FLAGS: -DSHARED=1
 */
#include "peruse_pair.c"
