/* The random messages through rings that are nearly always full, large ones in chunks.
 * RANKS: 3
 * ENV: PERUSAL_RING_CELLS=16
 * ENV: PERUSAL_RING_BULK=4096
 * ENV: PERUSAL_COPY_ENGINE=chunks
 */
#include "random_messages.c"
