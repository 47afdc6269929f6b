/* The variable match_short decides when a queue turns from comparing its entries side by side to bins: on communicators
 * that are made after it was set, the search of twenty receives for the last compares twenty entries, or one.
 * RANKS: 1
 */
#include "check.h"

#define DEEP 20

static MPI_T_pvar_session session;
static MPI_T_pvar_handle attempts;

/* How many entries the search for the youngest of twenty receives compares. */
static unsigned long long compared(MPI_Comm comm) {
    int values[DEEP], value = 5;
    unsigned long long n = 0;
    MPI_Request requests[DEEP];
    for (int tag = 0; tag < DEEP; tag++) MPI_Irecv(&values[tag], 1, MPI_INT, 0, tag, comm, &requests[tag]);
    OK(MPI_T_pvar_reset(session, attempts));
    MPI_Send(&value, 1, MPI_INT, 0, DEEP - 1, comm);
    OK(MPI_T_pvar_read(session, attempts, &n));
    for (int tag = 0; tag < DEEP - 1; tag++) MPI_Send(&tag, 1, MPI_INT, 0, tag, comm);
    MPI_Waitall(DEEP, requests, MPI_STATUSES_IGNORE);
    SAME(values[DEEP - 1], 5);
    for (int tag = 0; tag < DEEP - 1; tag++) SAME(values[tag], tag);
    return n;
}

int main(int argc, char **argv) {
    int provided, index, count;
    unsigned long shortest = 16;
    MPI_T_cvar_handle limit;
    MPI_Comm later;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_Init(&argc, &argv));
    OK(MPI_T_pvar_session_create(&session));
    OK(MPI_T_pvar_get_index("posted_recvq_match_attempts", MPI_T_PVAR_CLASS_COUNTER, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &attempts, &count));
    OK(MPI_T_pvar_start(session, attempts));
    OK(MPI_T_cvar_get_index("match_short", &index));
    OK(MPI_T_cvar_handle_alloc(index, NULL, &limit, &count));
    OK(MPI_T_cvar_write(limit, &shortest));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &later));
    SAME(compared(MPI_COMM_SELF), DEEP);
    SAME(compared(later), 1);
    SAME(compared(MPI_COMM_SELF), DEEP);
    OK(MPI_Comm_free(&later));
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return verdict();
}
