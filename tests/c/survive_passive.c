/* Windows with a rank that has died: accesses to the memory of those that live go on, epochs that need the dead raise
 * an error, and freeing the window ends.
 * RANKS: 3 4
 * OPTIONS: --survive
 */
#include "survive.h"

static int failed(int error) {
    int class = MPI_SUCCESS;
    if (error != MPI_SUCCESS) MPI_Error_class(error, &class);
    return class == MPIX_ERR_PROC_FAILED;
}

int main(void) {
    int rank, size, *memory, *others, one = 1, old = -1;
    MPI_Win win, fenced, exposed;
    MPI_Group world, target, origin;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int dead = size - 1;
    OK(MPI_Win_allocate(4 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    OK(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &others, &fenced));
    OK(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &others, &exposed));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_set_errhandler(fenced, MPI_ERRORS_RETURN);
    MPI_Win_set_errhandler(exposed, MPI_ERRORS_RETURN);
    memory[0] = memory[1] = 0;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 1, &dead, &target));
    OK(MPI_Group_incl(world, 1, &dead, &origin));
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == dead) {
        /* In an epoch of its own, with an access under way. */
        MPI_Fetch_and_op(&one, &old, MPI_INT, 0, 0, MPI_SUM, win);
        die();
    }
    await_deaths(MPI_COMM_WORLD, 1);
    /* Among those that live nothing has changed. */
    for (int i = 0; i < 100; i++) {
        OK(MPI_Fetch_and_op(&one, &old, MPI_INT, 0, 1, MPI_SUM, win));
        OK(MPI_Win_flush(0, win));
    }
    MPI_Comm living = shrunk(MPI_COMM_WORLD, size - 1);
    OK(MPI_Barrier(living));
    if (rank == 0) {
        OK(MPI_Win_sync(win));
        SAME(memory[1], 100 * (size - 1));
    }
    /* With the dead: it ends, and what has failed is called so. */
    int put = MPI_Put(&one, 1, MPI_INT, dead, 2, 1, MPI_INT, win);
    int flushed = put == MPI_SUCCESS ? MPI_Win_flush(dead, win) : put;
    if (flushed != MPI_SUCCESS) SAME(failed(flushed), 1);
    int unlocked = MPI_Win_unlock_all(win);
    if (unlocked != MPI_SUCCESS) SAME(failed(unlocked), 1);
    if (rank == 0) {
        int started = MPI_Win_start(target, 0, exposed);
        if (started == MPI_SUCCESS) started = MPI_Win_complete(exposed);
        SAME(failed(started), 1);
    } else {
        int flag = 0, error = MPI_SUCCESS;
        OK(MPI_Win_post(origin, 0, exposed));
        /* A program that tests must come to know of it, too. */
        if (rank == 1) while (error == MPI_SUCCESS && !flag) error = MPI_Win_test(exposed, &flag);
        else error = MPI_Win_wait(exposed);
        SAME(failed(error), 1);
    }
    CLASS(MPI_Win_fence(0, fenced), MPIX_ERR_PROC_FAILED);
    MPI_Win *windows[] = {&win, &fenced, &exposed};
    for (int i = 0; i < 3; i++) {
        CLASS(MPI_Win_free(windows[i]), MPIX_ERR_PROC_FAILED);
        SAME(*windows[i] == MPI_WIN_NULL, 1);
    }
    MPI_Group_free(&world);
    MPI_Group_free(&target);
    MPI_Group_free(&origin);
    OK(MPI_Barrier(living));
    OK(MPI_Comm_free(&living));
    MPI_Finalize();
    return verdict();
}
