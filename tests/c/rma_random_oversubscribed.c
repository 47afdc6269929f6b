/* The random one-sided operations of more ranks than most machines have CPUs.
 * RANKS: 8
 */
#define ROUNDS 40
#include "rma_random.c"
