/* Counters of MPI_T: a session, counters started in it, and what they have counted. */
#ifndef MPI_T_COUNTER_H
#define MPI_T_COUNTER_H

#include "check.h"

static MPI_T_pvar_session session;

static MPI_T_pvar_handle counter(const char *name)
{
    int index, count;
    MPI_T_pvar_handle handle;
    OK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
    OK(MPI_T_pvar_start(session, handle));
    return handle;
}

static unsigned long long read_of(MPI_T_pvar_handle handle)
{
    unsigned long long value = 0;
    OK(MPI_T_pvar_read(session, handle, &value));
    return value;
}

/* CPUs that the job may use. */
static inline unsigned long long number_of_cpus(void)
{
    int index, count;
    MPI_T_pvar_handle handle;
    OK(MPI_T_pvar_get_index("job_cpus", MPI_T_PVAR_CLASS_SIZE, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
    return read_of(handle);
}

#endif
