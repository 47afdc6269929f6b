/* Ranks that the user has bound, to however many CPUs, stay where the scheduler puts them.
 * RANKS: 2
 * ENV: PERUSAL_KEEP_APART=on
 * ENV: PERUSAL_YIELDS=200
 * ENV: PERUSAL_SPIN_US=1
 * ENV: PERUSAL_BIND_TO=socket
 */
#include "keep_apart.h"

int main(int argc, char **argv)
{
    if (!begin(&argc, &argv)) return end();
    for (int i = 0; i < 4; i++) SAME(talk_together(2000), 0);
    return end();
}
