/* As peruse_pair.c, when the receiver copies large messages by itself.
 * RANKS: 2
 * ENV: PERUSAL_COPY_ENGINE=read
 */
#include "peruse_pair.c"
