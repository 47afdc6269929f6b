/* Extensions beyond the MPI standard: User Level Failure Mitigation (ULFM), as other MPIs have it.
 *
 * A job that is started with "mpiexec --survive" goes on when one of its processes dies. Operations that the dead
 * process keeps from ending then raise MPIX_ERR_PROC_FAILED, and the functions below bring the others together again.
 * The default error handler still ends the job: a program sets MPI_ERRORS_RETURN, or its own.
 * docs/surviving.md says what is raised where. */
#ifndef PERUSAL_MPI_EXT_H
#define PERUSAL_MPI_EXT_H

#include <mpi.h>

/* The functions below are there; as other MPIs say it. */
#define MPIX_HAVE_ULFM 1
#define OMPI_HAVE_MPI_EXT_FTMPI 1

/* A process that the operation needs has failed. */
#define MPIX_ERR_PROC_FAILED 101
/* A process that may be the source of the receive has failed;
 * the receive stays and goes on once that is acknowledged. */
#define MPIX_ERR_PROC_FAILED_PENDING 102
/* The communicator has been revoked. */
#define MPIX_ERR_REVOKED 103

/* Key of an attribute of every communicator: the address of an int, 1 if the job was started with --survive, else 0. */
#define MPIX_FT 1001

#ifdef __cplusplus
extern "C" {
#endif

/* Ends all operations on the communicator, those of the other members too, with MPIX_ERR_REVOKED. */
int MPIX_Comm_revoke(MPI_Comm comm);
int MPIX_Comm_is_revoked(MPI_Comm comm, int *flag);
/* Makes a communicator of the members that live. */
int MPIX_Comm_shrink(MPI_Comm comm, MPI_Comm *newcomm);
int MPIX_Comm_ishrink(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request);
/* Agrees on the bitwise and of the flags; raises MPIX_ERR_PROC_FAILED at all members if one has died and not all have
 * acknowledged that. */
int MPIX_Comm_agree(MPI_Comm comm, int *flag);
int MPIX_Comm_iagree(MPI_Comm comm, int *flag, MPI_Request *request);
/* The members that have died, in the order in which they did. */
int MPIX_Comm_get_failed(MPI_Comm comm, MPI_Group *failedgrp);
/* Acknowledges the first members of that group: receives from any source then wait for the others. */
int MPIX_Comm_ack_failed(MPI_Comm comm, int num_to_ack, int *num_acked);
/* The older names of the same: acknowledge all; which are acknowledged. */
int MPIX_Comm_failure_ack(MPI_Comm comm);
int MPIX_Comm_failure_get_acked(MPI_Comm comm, MPI_Group *failedgrp);

int PMPIX_Comm_revoke(MPI_Comm comm);
int PMPIX_Comm_is_revoked(MPI_Comm comm, int *flag);
int PMPIX_Comm_shrink(MPI_Comm comm, MPI_Comm *newcomm);
int PMPIX_Comm_ishrink(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request);
int PMPIX_Comm_agree(MPI_Comm comm, int *flag);
int PMPIX_Comm_iagree(MPI_Comm comm, int *flag, MPI_Request *request);
int PMPIX_Comm_get_failed(MPI_Comm comm, MPI_Group *failedgrp);
int PMPIX_Comm_ack_failed(MPI_Comm comm, int num_to_ack, int *num_acked);
int PMPIX_Comm_failure_ack(MPI_Comm comm);
int PMPIX_Comm_failure_get_acked(MPI_Comm comm, MPI_Group *failedgrp);

#ifdef __cplusplus
}
#endif

#endif
