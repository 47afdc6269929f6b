/* Windows and files: locks, epochs, collective calls. */
#include "mistakes.h"
#include <unistd.h>

static MPI_Win named_window(void)
{
    MPI_Win win;
    MPI_Win_create(&value, sizeof value, sizeof value, MPI_INFO_NULL, world, &win);
    MPI_Win_set_name(win, "counters");
    return win;
}

static void window_lock(void)
{
    MPI_Win win;
    MPI_Win_create(&value, sizeof value, sizeof value, MPI_INFO_NULL, world, &win);
    if (rank == 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Barrier(world);
    if (rank != 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Barrier(world);
}

static void window_start(void)
{
    MPI_Win win;
    MPI_Group group, other;
    int peer = 1 - rank;
    MPI_Win_create(&value, sizeof value, sizeof value, MPI_INFO_NULL, world, &win);
    MPI_Comm_group(world, &group);
    MPI_Group_incl(group, 1, &peer, &other);
    if (rank == 0) MPI_Win_start(other, 0, win);
    MPI_Barrier(world);
}

static void two_locks(void)
{
    MPI_Win win = named_window();
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
    MPI_Barrier(world);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1 - rank, 0, win);
}

static void lock_of_a_third(void)
{
    MPI_Win win = named_window();
    if (rank == 1) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, win);
    MPI_Barrier(world);
    if (rank == 1) receive(0, 3, world);
    if (rank != 2) MPI_Win_lock(MPI_LOCK_SHARED, 2, 0, win);
}

static void lock_of_own_window(void)
{
    MPI_Win win = named_window();
    if (rank == 1) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Barrier(world);
    if (rank == 1) receive(0, 3, world);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
}

static void lock_kept(void)
{
    MPI_Win win = named_window();
    if (rank == 1) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, win);
    MPI_Barrier(world);
    if (rank == 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, win);
}

static void lock_shared(void)
{
    MPI_Win win = named_window();
    if (rank) MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    MPI_Barrier(world);
    if (rank == 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
    if (rank == 2) receive(0, 3, world);
}

static void lock_shared_by_one(void)
{
    MPI_Win win = named_window();
    if (rank) MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    if (rank == 1) MPI_Win_unlock(1, win);
    MPI_Barrier(world);
    if (rank == 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
    if (rank == 2) receive(0, 3, world);
}

static void lock_handed_over(void)
{
    /* Rank 1 releases the lock when the others wait for it, perhaps asleep;
     * the one that gets it waits for the other. */
    MPI_Win win = named_window();
    if (rank == 1) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
    MPI_Barrier(world);
    if (rank == 1) {
        usleep(700000);
        MPI_Win_unlock(1, win);
    } else {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
        receive(2 - rank, 3, world);
    }
}

static void fence_missing(void)
{
    MPI_Win win = named_window();
    MPI_Win_fence(0, win);
    if (rank == 1) receive(0, 3, world);
    MPI_Win_fence(0, win);
}

static void window_freed_by_some(void)
{
    MPI_Win win = named_window();
    if (rank != 2) MPI_Win_free(&win);
}

static void window_freed_and_fenced(void)
{
    MPI_Win win = named_window();
    if (rank == 0) MPI_Win_free(&win);
    else MPI_Win_fence(0, win);
}

static void post_without_start(void)
{
    MPI_Win win = named_window();
    MPI_Group group, other;
    int peer = 1;
    MPI_Comm_group(world, &group);
    MPI_Group_incl(group, 1, &peer, &other);
    if (rank == 0) {
        MPI_Win_post(other, 0, win);
        MPI_Win_wait(win);
    }
    MPI_Barrier(world);
}

static void file_opened_by_one(void)
{
    MPI_File file;
    if (rank == 0) MPI_File_open(world, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_Barrier(world);
}

static void file_written_by_some(void)
{
    MPI_File file;
    MPI_File_open(world, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    if (rank == 1) receive(0, 3, world);
    MPI_File_write_ordered(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
}

const struct mistake mistakes_windows[] = {
    {"window-lock", window_lock},
    {"window-start", window_start},
    {"two-locks", two_locks},
    {"lock-of-a-third", lock_of_a_third},
    {"lock-of-own-window", lock_of_own_window},
    {"lock-kept", lock_kept},
    {"lock-shared", lock_shared},
    {"lock-shared-by-one", lock_shared_by_one},
    {"lock-handed-over", lock_handed_over},
    {"fence-missing", fence_missing},
    {"window-freed-by-some", window_freed_by_some},
    {"window-freed-and-fenced", window_freed_and_fenced},
    {"post-without-start", post_without_start},
    {"file-opened-by-one", file_opened_by_one},
    {"file-written-by-some", file_written_by_some},
    {NULL, NULL},
};
