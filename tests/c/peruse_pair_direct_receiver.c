/* As peruse_pair.c, when the receiver's buffer lies in the shared heap.
 * RANKS: 2
 * FLAGS: -DSHARED=2
 */
#include "peruse_pair.c"
