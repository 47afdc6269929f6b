/* The mistakes of the program whose main function is in unchecked.c. */
#ifndef UNCHECKED_H
#define UNCHECKED_H

#include <mpi.h>

extern int rank, size;
extern MPI_Comm halo;

void long_lengths_differ(void);
void counts_differ(void);
void lists_differ(void);
void scattered_lists_differ(void);

#endif
