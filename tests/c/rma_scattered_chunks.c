/* Accumulates of elements that lie apart, on private memory by messages.
 * RANKS: 3
 * ENV: PERUSAL_COPY_ENGINE=chunks
 */
#include "rma_scattered.c"
