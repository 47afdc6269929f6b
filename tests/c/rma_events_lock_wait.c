/* A wait for a lock is an event with its holder, as far as that is known; a lock that is free waits for nobody.
 * Counters count both.
 * RANKS: 3
 */
#include "mpi_t_event.h"
#include <unistd.h>

static int begun, ended, holder = -7, target = -7, lock = -7, places[3], previous = -7;
static uint64_t ids[2];
/* In rank 0's memory, which all map: rank 1 waits. */
static volatile long *waits;

static void on_wait(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    int end = *(int *)data;
    (void)handle, (void)level;
    *(end ? &ended : &begun) += 1;
    if (!end) *waits = 1;
    OK(MPI_T_event_read(instance, 0, &ids[end]));
    OK(MPI_T_event_read(instance, places[0], &target));
    OK(MPI_T_event_read(instance, places[1], &holder));
    OK(MPI_T_event_read(instance, places[2], &lock));
}

static void on_acquired(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    (void)handle, (void)level, (void)data;
    OK(MPI_T_event_read(instance, places[1], &previous));
}

int main(int argc, char **argv)
{
    static int ends[] = {0, 1};
    MPI_T_event_registration handles[3];
    MPI_Win win;
    long *base, value = 1;
    int rank, unit;
    MPI_Aint size;
    void *shared;
    initialise_tools();
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    base[0] = 0;
    OK(MPI_Win_shared_query(win, 0, &size, &unit, &shared));
    waits = shared;
    MPI_Barrier(MPI_COMM_WORLD);
    int type = type_of("PERUSAL_WIN_LOCK_WAIT_BEGIN");
    places[0] = element_of(type, "target");
    places[1] = element_of(type, "holder");
    places[2] = element_of(type, "lock");
    SAME(element_of(type, "id"), 0);
    handles[0] = listen_to(type, &win, 0, on_wait, &ends[0]);
    handles[1] = listen_to(type_of("PERUSAL_WIN_LOCK_WAIT_END"), &win, 0, on_wait, &ends[1]);
    handles[2] = listen_to(type_of("PERUSAL_WIN_LOCK_ACQUIRED"), &win, 0, on_acquired, NULL);

    if (rank == 0) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, win));
        SAME(previous, -1);
        MPI_Barrier(MPI_COMM_WORLD);
        while (!*waits) usleep(1000);
        OK(MPI_Win_unlock(2, win));
        SAME(begun, 0);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 1) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 2, 0, win));
        OK(MPI_Put(&value, 1, MPI_LONG, 2, 0, 1, MPI_LONG, win));
        OK(MPI_Win_unlock(2, win));
        SAME(begun, 1);
        SAME(ended, 1);
        SAME(target, 2);
        SAME(holder, 0);
        SAME(lock, 1);
        SAME(previous, 0);
        CHECK(ids[0] != 0 && ids[0] == ids[1]);
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win));
        OK(MPI_Win_unlock(1, win));
        SAME(begun, 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 3; i++) OK(MPI_T_event_handle_free(handles[i], NULL, NULL));
    OK(MPI_Win_free(&win));
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return failures != 0;
}
