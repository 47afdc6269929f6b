/* As peruse_pair.c, when large messages go through the ring in pieces.
 * RANKS: 2
 * ENV: PERUSAL_COPY_ENGINE=chunks
 */
#include "peruse_pair.c"
