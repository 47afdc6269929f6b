/* The program whose main function is in mistakes.c. */
#ifndef MISTAKES_H
#define MISTAKES_H

#include <mpi.h>
#include <string.h>

extern int rank;

static inline int is(const char *name, const char *wanted) { return strcmp(name, wanted) == 0; }

static inline void receive(int from, int tag, MPI_Comm comm)
{
    int value;
    MPI_Recv(&value, 1, MPI_INT, from, tag, comm, MPI_STATUS_IGNORE);
}

static inline void send(int to, int tag, MPI_Comm comm)
{
    int value = 0;
    MPI_Send(&value, 1, MPI_INT, to, tag, comm);
}

/* mistakes_threads.c: a thread that is in no call of MPI, one that waits until nobody wakes it, and the mistake of this name. */
void start_idle(void);
void start_waiting(void);
void mistake_of_threads(const char *mistake);

#endif
