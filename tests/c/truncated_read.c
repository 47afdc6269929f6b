/* As truncated.c, when large messages are copied in one way only.
 * RANKS: 2
 * ENV: PERUSAL_COPY_ENGINE=read
 */
#include "truncated.c"
