/* The random messages of several threads through rings that are nearly always full.
 * RANKS: 2
 * FLAGS: -pthread
 * ENV: PERUSAL_RING_CELLS=16
 * ENV: PERUSAL_RING_BULK=4096
 */
#include "random_threads.c"
