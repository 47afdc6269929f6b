/* The random one-sided operations, on private memory by messages.
 * RANKS: 3
 * ENV: PERUSAL_COPY_ENGINE=chunks
 */
#define ROUNDS 40
#include "rma_random.c"
