/* The buffers of shared_buffers.c, where the receiver always copies alone.
 * RANKS: 2
 * ENV: PERUSAL_COPY_SHARE_FROM=4294967295
 */
#include "shared_buffers.c"
