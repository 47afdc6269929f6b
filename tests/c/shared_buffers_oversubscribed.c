/* The buffers of shared_buffers.c, where ranks outnumber CPUs but have to share copies all the same.
 * RANKS: 5
 * ENV: PERUSAL_COPY_SHARE_FROM=65536
 */
#include "shared_buffers.c"
