/* The mistakes of the program whose main function is in unchecked.c. */
#ifndef UNCHECKED_H
#define UNCHECKED_H

#include <mpi.h>

extern int rank, size;
extern MPI_Comm halo;

/* unchecked_messages.c: a structure of two elements. */
MPI_Datatype pair_of(MPI_Datatype first, MPI_Datatype second);
void received_in_another_type(void);
void sent_in_another_type(void);
void sent_in_types_that_fit(void);
void ready_without_receive(void);
void ready_with_receive(void);
void elements_in_one_place(void);
void no_memory(void);
void never_started(void);
void freed_while_active(void);
void partition_changed(void);
void packed_in_use(void);
void partitions_fit(void);
void attached_in_use(void);
void attached_buffers_fit(void);

/* unchecked_pieces.c */
void long_lengths_differ(void);
void counts_differ(void);
void lists_differ(void);
void scattered_lists_differ(void);
void types_of_pieces_differ(void);
void types_of_pieces_fit(void);
void edges_of_grids_fit(void);
void mixtures_differ(void);

/* unchecked_windows.c */
void accessed_by_two(void);
void received_where_others_put(void);
void accesses_fit(void);
void fence_asserts_wrongly(void);

/* unchecked_threads.c: the thread level that a mistake asks for. */
int level_of(const char *mistake);
void called_by_another_thread(void);
void called_at_once(void);
void collective_at_once(void);
void awaited_by_two(void);

/* unchecked_comms.c */
void split_types_differ(void);
void grids_differ(void);
void partitions_in_use(void);
void groups_of_roots_differ(void);
void root_of_nobody(void);
void roots_between_groups_fit(void);
void making_functions_differ(void);
void groups_differ(void);
void groups_fit(void);
void group_call_left_out(void);
void group_calls_fit(void);
void starts_differ(void);
void starts_fit(void);

#endif
