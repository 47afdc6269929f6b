/* Partitioned messages where one thread is inside the library at a time.
 * RANKS: 1 2 5
 * FLAGS: -pthread
 * ENV: SINGLE=1
 */
#include "partitioned.c"
