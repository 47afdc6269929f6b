/* Under MPI_THREAD_MULTIPLE three threads register, free and register again handles of the same events while others
 * raise them: after PERUSE_Event_release no callback runs, PERUSE_Lock excludes,
 * and no event is lost to a handle that is there all the time.
 * RANKS: 2
 * FLAGS: -pthread
 */
#include "check.h"
#include <peruse.h>
#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 2, GUESTS = 3, MESSAGES = 2000, TOOLS = 300 };

static int rank, completed; /* `completed` is guarded by PERUSE_Lock alone */
static atomic_int talking = THREADS, late;

struct tool {
    atomic_int alive;
};

static int on_passing(peruse_event_h handle, MPI_Aint id, peruse_comm_spec_t *spec, void *param)
{
    struct tool *tool = param;
    (void)handle, (void)id, (void)spec;
    if (!atomic_load(&tool->alive)) atomic_fetch_add(&late, 1);
    return MPI_SUCCESS;
}

static int on_complete(peruse_event_h handle, MPI_Aint id, peruse_comm_spec_t *spec, void *param)
{
    (void)handle, (void)id, (void)spec, (void)param;
    if (PERUSE_Lock() != PERUSE_SUCCESS) return MPI_ERR_INTERN;
    completed++;
    return PERUSE_Unlock();
}

static void *talk(void *param)
{
    int tag = *(int *)param, value = 0;
    for (int i = 0; i < MESSAGES; i++) {
        MPI_Request r[2];
        MPI_Irecv(&value, 1, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD, &r[0]);
        MPI_Isend(&i, 1, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD, &r[1]);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        if (value != i) atomic_fetch_add(&late, 1000000);
    }
    atomic_fetch_sub(&talking, 1);
    return NULL;
}

static void *come_and_go(void *param)
{
    struct tool *tools = calloc(TOOLS, sizeof *tools); /* never given back: a late callback must find the flag */
    (void)param;
    for (int i = 0; i < TOOLS && atomic_load(&talking) > 0; i++) {
        peruse_event_h handle[4];
        atomic_store(&tools[i].alive, 1);
        for (int event = 0; event < 4; event++) {
            OK(PERUSE_Event_comm_register(PERUSE_COMM_REQ_XFER_BEGIN + event, MPI_COMM_WORLD, on_passing, &tools[i],
                                          &handle[event]));
            OK(PERUSE_Event_activate(handle[event]));
        }
        for (int event = 0; event < 4; event++) {
            if (event & 1) OK(PERUSE_Event_deactivate(handle[event]));
            OK(PERUSE_Event_release(&handle[event]));
        }
        atomic_store(&tools[i].alive, 0);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t talkers[THREADS], guests[GUESTS];
    peruse_event_h handle;
    int provided, tags[THREADS], value = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    SAME(provided, MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    OK(PERUSE_Init());
    OK(PERUSE_Event_comm_register(PERUSE_COMM_REQ_COMPLETE, MPI_COMM_WORLD, on_complete, NULL, &handle));
    OK(PERUSE_Event_activate(handle));
    for (int i = 0; i < THREADS; i++) {
        tags[i] = i + 1;
        pthread_create(&talkers[i], NULL, talk, &tags[i]);
    }
    for (int i = 0; i < GUESTS; i++) pthread_create(&guests[i], NULL, come_and_go, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(talkers[i], NULL);
    for (int i = 0; i < GUESTS; i++) pthread_join(guests[i], NULL);
    OK(PERUSE_Event_release(&handle));
    SAME(atomic_load(&late), 0);
    SAME(completed, 2 * THREADS * MESSAGES);
    MPI_Sendrecv(&value, 1, MPI_INT, 1 - rank, 9, &provided, 1, MPI_INT, 1 - rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return verdict();
}
