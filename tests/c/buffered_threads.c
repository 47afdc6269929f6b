/* The same while another thread runs progress, which sleeps.
 * RANKS: 2
 * ENV: PERUSAL_COPY_ENGINE=read
 * FLAGS: -pthread
 */
#define SEVERAL 1
#include "buffered_behind_others.c"
