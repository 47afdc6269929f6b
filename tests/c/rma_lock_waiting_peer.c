/* A rank that waits for the lock of a window is seen waiting for the rank that holds it,
 * which is not the one whose memory is locked.
 * RANKS: 3
 */
#include "pvars.h"
#include <pthread.h>
#include <unistd.h>

/* As long as this file is there, rank 0 has not been seen waiting: whoever watches may not call MPI beside the rank. */
static char path[64] = "rma_lock_waiting_peer.XXXXXX";

/* Looks until the rank is seen waiting for a lock; a hang is what the time limit of the test is for. */
static void *watch(void *result) {
    MPI_T_pvar_handle state = handle_of("waiting_for", MPI_T_PVAR_CLASS_STATE);
    MPI_T_pvar_handle peer = handle_of("waiting_peer", MPI_T_PVAR_CLASS_GENERIC);
    int value = 0;
    do {
        usleep(2000);
        OK(MPI_T_pvar_read(session, state, &value));
        OK(MPI_T_pvar_read(session, peer, result));
    } while (value != 9);
    unlink(path);
    return NULL;
}

int main(int argc, char **argv) {
    int provided, rank, *memory;
    MPI_Win win;
    MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    OK(MPI_T_pvar_session_create(&session));
    MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    if (rank == 0) close(mkstemp(path));
    MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 1) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        pthread_t watcher;
        int seen = -1;
        pthread_create(&watcher, NULL, watch, &seen);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, win);
        pthread_join(watcher, NULL);
        MPI_Win_unlock(2, win);
        SAME(seen, 1);
    } else if (rank == 1) {
        while (access(path, F_OK) == 0) usleep(2000);
        MPI_Win_unlock(2, win);
    }
    MPI_Win_free(&win);
    MPI_Finalize();
    MPI_T_finalize();
    return verdict();
}
