/* The program whose main function is in mistakes.c: each of the other files has mistakes of one subject. */
#ifndef MISTAKES_H
#define MISTAKES_H

#include <mpi.h>
#include <string.h>

/* What a mistake's name makes the ranks do. */
struct mistake {
    const char *name;
    void (*make)(void);
};

/* They end with one that has no name. */
extern const struct mistake mistakes_messages[], mistakes_collectives[], mistakes_comms[], mistakes_windows[], mistakes_threads[],
    mistakes_none[];

/* The ranks on both sides, and what messages carry. */
extern int rank, size, next, before, value;
/* The program's name, and its argument behind that of the mistake. */
extern const char *program, *argument;
extern const MPI_Comm world;

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

static inline MPI_Comm named_dup(const char *name)
{
    MPI_Comm comm;
    MPI_Comm_dup(world, &comm);
    MPI_Comm_set_name(comm, name);
    return comm;
}

/* mistakes_threads.c: a thread that is in no call of MPI, and one that waits until nobody wakes it. */
void start_idle(void);
void start_waiting(void);

#endif
