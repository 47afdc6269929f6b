/* A receiver that starts each round late: partitions that are ready before it wait in the background, as one operation
 * however many rounds there are, and arrive.
 * RANKS: 2
 */
#include "check.h"

enum { PARTS = 4, INTS = 1000, ROUNDS = 40, MARKED = 0, STARTED = 1 };

int main(void)
{
    int rank, *buffer, *words;
    MPI_Win win;
    MPI_Request request;
    OK(MPI_Init(NULL, NULL));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    MPI_T_pvar_session session;
    MPI_T_pvar_handle in_background;
    int provided, index, one;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_pvar_session_create(&session));
    OK(MPI_T_pvar_get_index("operations_in_background", MPI_T_PVAR_CLASS_LEVEL, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &in_background, &one));
    /* What the ranks tell each other outside of MPI. */
    MPI_Aint bytes;
    int unit;
    OK(MPI_Win_allocate_shared(2 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &words, &win));
    words[0] = words[1] = 0;
    OK(MPI_Win_shared_query(win, 0, &bytes, &unit, &words));
    volatile int *shared = words;
    /* Memory that the sender writes to, so that only MPI_Start makes it ready. */
    OK(MPI_Alloc_mem(PARTS * INTS * sizeof(int), MPI_INFO_NULL, &buffer));
    if (rank == 0) OK(MPI_Psend_init(buffer, PARTS, INTS, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    else OK(MPI_Precv_init(buffer, PARTS, INTS, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int round = 1; round <= ROUNDS && failures == 0; round++) {
        if (rank == 0) {
            for (int i = 0; i < PARTS * INTS; i++) buffer[i] = i + round;
            OK(MPI_Start(&request));
            OK(MPI_Pready_range(0, PARTS - 1, request));
            shared[MARKED] = round;
            while (shared[STARTED] < round) {}
        } else {
            while (shared[MARKED] < round) {}
            OK(MPI_Start(&request));
            shared[STARTED] = round;
        }
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        for (int i = 0; i < PARTS * INTS && rank == 1 && failures == 0; i++) SAME(buffer[i], i + round);
    }
    unsigned long long left = 0;
    OK(MPI_T_pvar_read(session, in_background, &left));
    CHECK(left <= 1);
    OK(MPI_Request_free(&request));
    OK(MPI_Free_mem(buffer));
    OK(MPI_Win_free(&win));
    OK(MPI_T_finalize());
    OK(MPI_Finalize());
    return verdict();
}
