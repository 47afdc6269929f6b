/* As coll_oracle.c, of memory that all ranks see, and longer: members that share CPUs, or are two, reduce, broadcast
 * and exchange it in one step, unless the results of some lie elsewhere.
 * RANKS: 2 3 5 8
 * ENV: PERUSAL_USABLE_CPUS=2
 * ENV: PERUSAL_COPY_REMAP_AFTER=4294967295
 * EXPECT: all agree
 */
#define IN_HEAP 1
#define MOST 262144
#define LENGTHS 4096, 8192, 16384, 16390, 32768, 50000, 65536, 65538, 80000, 100000, 131072, 160000, 200000, MOST
#define SHORTER 1
#include "coll_oracle.c"
