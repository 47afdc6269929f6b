/* A Fortran binding on top of the ABI has the conversions itself.
 * RANKS: 1
 * FLAGS: -DPERUSAL_NO_FORTRAN_HANDLES
 */
#include "check.h"

typedef int MPI_Fint;
MPI_Fint MPI_Comm_c2f(MPI_Comm comm);
MPI_Fint MPI_Comm_c2f(MPI_Comm comm) { return MPI_Comm_toint(comm) + 1000; }

int main(int argc, char **argv) {
    OK(MPI_Init(&argc, &argv));
    SAME(MPI_Comm_c2f(MPI_COMM_SELF), MPI_Comm_toint(MPI_COMM_SELF) + 1000);
    OK(MPI_Finalize());
    return verdict();
}
