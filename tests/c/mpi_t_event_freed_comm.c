/* What is pending on a communicator when it is freed (MPI 5.0 section 7.4.3) ends in events, too: those who listen to
 * all communicators find an end to each beginning; handles that are bound to the communicator hear nothing any more.
 * RANKS: 2
 */
#include "mpi_t_event.h"

enum { INSERTS, REMOVES, ACTIVATES, COMPLETES, NOTIFIES, BEGINS, ENDS, TYPES };

static const char *names[TYPES] = {"PERUSE_COMM_REQ_INSERT_IN_POSTED_Q", "PERUSE_COMM_REQ_REMOVE_FROM_POSTED_Q",
                                   "PERUSE_COMM_REQ_ACTIVATE",           "PERUSE_COMM_REQ_COMPLETE",
                                   "PERUSE_COMM_REQ_NOTIFY",             "PERUSAL_COLL_BEGIN",
                                   "PERUSAL_COLL_END"};

static void count(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    (void)instance, (void)handle, (void)level;
    ++*(int *)data;
}

int main(int argc, char **argv)
{
    int rank, in = 0, out = 7, sum = 0, go = 0, all[TYPES] = {0}, own[TYPES] = {0}, before;
    MPI_T_event_registration handles[2][TYPES];
    MPI_Request requests[2];
    MPI_Comm comm;
    initialise_tools();
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int i = 0; i < TYPES; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s_all", names[i]);
        handles[0][i] = listen_to(type_of(name), NULL, 0, count, &all[i]);
        handles[1][i] = listen_to(type_of(names[i]), &comm, 0, count, &own[i]);
    }
    if (rank == 0) {
        OK(MPI_Irecv(&in, 1, MPI_INT, 1, 3, comm, &requests[0]));
        OK(MPI_Iallreduce(&out, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[1]));
        SAME(own[INSERTS], 1);
        OK(MPI_Comm_free(&comm));
        before = own[REMOVES] + own[COMPLETES] + own[ENDS];
        OK(MPI_Send(&go, 1, MPI_INT, 1, 1, MPI_COMM_WORLD));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        SAME(in, 7);
        SAME(before, 0);
        SAME(own[REMOVES] + own[COMPLETES] + own[NOTIFIES] + own[ENDS], 0);
    } else {
        OK(MPI_Recv(&go, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Send(&out, 1, MPI_INT, 0, 3, comm));
        OK(MPI_Iallreduce(&out, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[0]));
        OK(MPI_Comm_free(&comm));
        OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    }
    SAME(sum, 14);
    SAME(all[REMOVES], all[INSERTS]);
    SAME(all[COMPLETES], all[ACTIVATES]);
    SAME(all[NOTIFIES], all[ACTIVATES]);
    SAME(all[BEGINS], 1);
    SAME(all[ENDS], 1);
    for (int i = 0; i < 2 * TYPES; i++) OK(MPI_T_event_handle_free(handles[i / TYPES][i % TYPES], NULL, NULL));
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return verdict();
}
