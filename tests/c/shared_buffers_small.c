/* The buffers of shared_buffers.c, where messages of a few bytes are copied straight, and by both ranks.
 * RANKS: 2
 * ENV: PERUSAL_EAGER_LIMIT=50
 * ENV: PERUSAL_COPY_DIRECT_FROM=51
 * ENV: PERUSAL_COPY_SHARE_FROM=51
 */
#include "shared_buffers.c"
