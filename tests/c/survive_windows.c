/* One-sided and partitioned communication with a rank that has died: synchronisation raises an error, nothing hangs.
 * RANKS: 3
 * OPTIONS: --survive
 */
#include "survive.h"

int main(void) {
    int rank, size, *memory, value = 1;
    MPI_Win win, other;
    MPI_Request request;
    char part[64] = {0};
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int dead = size - 1;
    OK(MPI_Win_allocate(sizeof(int), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    OK(MPI_Win_allocate(sizeof(int), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &other));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_set_errhandler(other, MPI_ERRORS_RETURN);
    OK(MPI_Win_fence(0, win));
    if (rank == dead) {
        /* It takes a lock with it. */
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, other);
        MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        die();
    }
    if (rank == 0) {
        OK(MPI_Recv(&value, 1, MPI_INT, dead, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Psend_init(part, 4, 16, MPI_CHAR, dead, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        OK(MPI_Start(&request));
        for (int i = 0; i < 4; i++) OK(MPI_Pready(i, request));
    } else {
        OK(MPI_Precv_init(part, 4, 16, MPI_CHAR, dead, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        OK(MPI_Start(&request));
    }
    CLASS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    CLASS(MPI_Win_fence(0, win), MPIX_ERR_PROC_FAILED);
    if (rank == 0) CLASS(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, other), MPIX_ERR_PROC_FAILED);
    if (rank < 2) {
        /* Between those that live nothing has changed, whatever the tag:
         * 1 is one whose messages go by the collective context. */
        sleep(1);
        for (int tag = 0; tag < 4; tag++) {
            char sent[64] = {0};
            memset(part, 0, sizeof part);
            if (rank == 0) {
                memset(sent, 'a' + tag, sizeof sent);
                OK(MPI_Psend_init(sent, 4, 16, MPI_CHAR, 1, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
            } else {
                OK(MPI_Precv_init(part, 4, 16, MPI_CHAR, 0, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
            }
            OK(MPI_Start(&request));
            if (rank == 0) OK(MPI_Pready_range(0, 3, request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            CHECK(rank == 0 || (part[0] == 'a' + tag && part[63] == 'a' + tag));
            OK(MPI_Request_free(&request));
        }
    }
    MPI_Win again;
    CLASS(MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &again), MPIX_ERR_PROC_FAILED);
    MPI_Comm living = shrunk(MPI_COMM_WORLD, size - 1);
    OK(MPI_Win_allocate(8, 1, MPI_INFO_NULL, living, &memory, &again));
    OK(MPI_Win_fence(0, again));
    OK(MPI_Win_free(&again));
    OK(MPI_Comm_free(&living));
    MPI_Finalize();
    return verdict();
}
