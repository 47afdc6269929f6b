/* What a rank waits for, and how long it has slept, seen by a thread of its own while it waits. The message that ends
 * the wait is sent when all has been seen.
 * RANKS: 2
 */
#include "pvars.h"
#include <pthread.h>
#include <unistd.h>

/* As long as this file is there, rank 1 has not been seen waiting: whoever watches may not call MPI beside the rank. */
static char path[64] = "mpi_t_waiting.XXXXXX";
static MPI_T_pvar_handle state, peer, share, asleep, sleeps;

/* Looks until the rank is seen waiting for rank 0 and has slept; a hang is what the time limit of the test is for. */
static void *watch(void *unused) {
    unsigned long long times = 0;
    int value = 0, from = -1;
    do {
        usleep(2000);
        OK(MPI_T_pvar_read(session, state, &value));
        OK(MPI_T_pvar_read(session, peer, &from));
        OK(MPI_T_pvar_read(session, sleeps, &times));
    } while (value != 1 || from != 0 || times == 0);
    unlink(path);
    return unused;
}

int main(int argc, char **argv) {
    int provided, rank, c = 0;
    MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    OK(MPI_T_pvar_session_create(&session));
    state = handle_of("waiting_for", MPI_T_PVAR_CLASS_STATE);
    peer = handle_of("waiting_peer", MPI_T_PVAR_CLASS_GENERIC);
    share = handle_of("time_asleep", MPI_T_PVAR_CLASS_PERCENTAGE);
    asleep = handle_of("time_asleep", MPI_T_PVAR_CLASS_TIMER);
    sleeps = handle_of("sleeps", MPI_T_PVAR_CLASS_COUNTER);
    OK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    if (rank == 1) {
        pthread_t watcher;
        double seconds, part;
        unsigned long long times;
        int value;
        close(mkstemp(path));
        MPI_Send(path, sizeof path, MPI_CHAR, 0, 6, MPI_COMM_WORLD);
        pthread_create(&watcher, NULL, watch, NULL);
        MPI_Recv(&c, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        pthread_join(watcher, NULL);
        OK(MPI_T_pvar_read(session, asleep, &seconds));
        OK(MPI_T_pvar_read(session, share, &part));
        OK(MPI_T_pvar_read(session, sleeps, &times));
        OK(MPI_T_pvar_read(session, state, &value));
        SAME(value, 0);
        CHECK(times >= 1 && seconds > 0 && part > 0 && part <= 1);
        MPI_Send(&c, 1, MPI_INT, 0, 8, MPI_COMM_WORLD);
    } else {
        MPI_Recv(path, sizeof path, MPI_CHAR, 1, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        while (access(path, F_OK) == 0) usleep(2000);
        MPI_Send(&c, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
        MPI_Recv(&c, 1, MPI_INT, 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    MPI_T_finalize();
    return verdict();
}
