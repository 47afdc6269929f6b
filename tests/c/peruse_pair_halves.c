/* As peruse_pair.c, when both ranks copy a half of a large message.
 * RANKS: 2
 * ENV: PERUSAL_COPY_ENGINE=halves
 */
#include "peruse_pair.c"
