/* Put before every file of MPICH's test suite. The suite asks for three things that the standard ABI does not have:
 * a Fortran integer and the conversions that go with it (the ABI has ..._toint and ..._fromint, which do the same),
 * and, in its datatype pools, two MPI-1 names that MPI 3.0 removed in favour of the ones given here. */
#ifndef PERUSAL_CONFORMANCE_COMPAT_H
#define PERUSAL_CONFORMANCE_COMPAT_H
#include <mpi.h>
typedef int MPI_Fint;
#define MPI_Message_c2f MPI_Message_toint
#define MPI_Message_f2c MPI_Message_fromint
#define PMPI_Message_c2f PMPI_Message_toint
#define PMPI_Message_f2c PMPI_Message_fromint
#define MPI_Type_hvector MPI_Type_create_hvector
#define MPI_Type_hindexed MPI_Type_create_hindexed
#endif
