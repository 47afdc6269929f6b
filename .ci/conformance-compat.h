/* Put before every file of MPICH's test suite. The suite asks for four things that the standard ABI does not have:
 * conversions of Fortran's handles under the names of the profiling interface (the ABI has ..._toint and ..._fromint, which do the same),
 * in its datatype pools, two MPI-1 names that MPI 3.0 removed in favour of the ones given here,
 * for files, the requests that ROMIO had before they became MPI's, and the functions of mpi-ext.h in mpi.h. */
#ifndef PERUSAL_CONFORMANCE_COMPAT_H
#define PERUSAL_CONFORMANCE_COMPAT_H
#include <mpi.h>
/* MPICH itself, whose suite runs over the provider, has them in mpi.h. */
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#define PMPI_Message_c2f PMPI_Message_toint
#define PMPI_Message_f2c PMPI_Message_fromint
#define MPI_Type_hvector MPI_Type_create_hvector
#define MPI_Type_hindexed MPI_Type_create_hindexed
/* Without these, programs leave out what they are there to test, and pass: the first two stand for what MPICH alone had at their time. */
#define TEST_NEIGHB_COLL 1
#define TEST_HINDEXED_BLOCK 1
#define HAVE_MPI_TYPE_CREATE_STRUCT 1
#define MPIO_Request MPI_Request
#define MPIO_Wait MPI_Wait
#endif
