/* A variable whose name is nearly that of a control variable has no effect, and that is said:
 * by the launcher, or where there is none.
 * RANKS: 1 2
 * ENV: PERUSAL_EAGER_LIMTI=0
 * ENV: PERUSAL_ROOT=/opt
 * STDERR: note: PERUSAL_EAGER_LIMTI is no variable of perusal's and has no effect; is PERUSAL_EAGER_LIMIT meant?
 */
#include "check.h"

int main(int argc, char **argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Finalize());
    return verdict();
}
