/* Dynamic windows on memory that only its own process reaches, by messages.
 * RANKS: 1 2 4
 * ENV: PERUSAL_COPY_ENGINE=chunks
 */
#include "rma_dynamic.c"
