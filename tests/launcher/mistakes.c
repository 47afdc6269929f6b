/* One classic mistake for each argument: programs that hang.
 * tests/launcher/mistakes.rs has what the launcher must say of each. */
#include "mistakes.h"
#include <stdio.h>
#include <stdlib.h>

int rank, size, next, before, value;
const char *program, *argument;
const MPI_Comm world = MPI_COMM_WORLD;

static const struct mistake *const mistakes[] = {
    mistakes_messages, mistakes_collectives, mistakes_comms, mistakes_windows, mistakes_threads, mistakes_none,
};

static const struct mistake *find(const char *name)
{
    for (size_t subject = 0; subject < sizeof mistakes / sizeof *mistakes; subject++) {
        for (const struct mistake *each = mistakes[subject]; each->name; each++) {
            if (is(name, each->name)) return each;
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    const char *name = argc > 1 ? argv[1] : "";
    const struct mistake *mistake = find(name);
    /* Members that share memory notice these themselves. */
    if (is(name, "bcast-roots") || is(name, "nonblocking-different")) setenv("PERUSAL_COLL_SHARED", "off", 1);
    int threads = getenv("MISTAKE_THREADS") || strncmp(name, "thread", 6) == 0;
    MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    if (getenv("MISTAKE_IDLE_THREAD")) start_idle();
    if (getenv("MISTAKE_WAITING_THREAD")) start_waiting();
    program = argv[0];
    argument = argc > 2 ? argv[2] : NULL;
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    next = (rank + 1) % size;
    before = (rank + size - 1) % size;
    if (!mistake) {
        fprintf(stderr, "no such mistake: %s\n", name);
        MPI_Abort(world, 3);
    }
    mistake->make();
    MPI_Finalize();
    return 0;
}
