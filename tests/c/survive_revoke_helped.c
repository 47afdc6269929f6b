/* As survive_revoke, while a progress thread takes notice of what is revoked beside the program's calls.
 * RANKS: 2 4
 * ENV: PERUSAL_PROGRESS_THREAD=on
 */
#include "survive_revoke.c"
