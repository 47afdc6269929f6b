/* Memory that is not attached, where only its own process reaches it, by messages.
 * RANKS: 2
 * ENV: PERUSAL_COPY_ENGINE=chunks
 */
#include "rma_unattached.c"
