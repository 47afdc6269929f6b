/* A spawn tells its begin, each process that it has made, by its process id, and its end, with the intercommunicator;
 * one that fails tells that there are none.
 * RANKS: 2
 */
#include "mpi_t_event.h"
#include <unistd.h>

enum { CHILDREN = 3, MOST = 32 };
enum { BEGIN, PROCESS, END, TYPES };
static const char *names[] = {"PERUSAL_SPAWN_BEGIN_all", "PERUSAL_PROCESS_SPAWNED_all", "PERUSAL_SPAWN_END_all"};
static int numbers[] = {0, 1, 2}, indices[TYPES], count;
static struct {
    int type, root, pid;
    uint32_t processes;
    uint64_t id, comm, intercomm;
} events[MOST];

static void on_event(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    int type = *(int *)data, index = indices[type];
    (void)handle, (void)level;
    if (count == MOST) return;
    events[count].type = type;
    OK(MPI_T_event_read(instance, element_of(index, "id"), &events[count].id));
    OK(MPI_T_event_read(instance, element_of(index, "comm"), &events[count].comm));
    if (type == PROCESS) {
        OK(MPI_T_event_read(instance, element_of(index, "pid"), &events[count].pid));
    } else {
        OK(MPI_T_event_read(instance, element_of(index, "root"), &events[count].root));
        OK(MPI_T_event_read(instance, element_of(index, "processes"), &events[count].processes));
        OK(MPI_T_event_read(instance, element_of(index, "intercomm"), &events[count].intercomm));
    }
    count++;
}

int main(int argc, char **argv)
{
    MPI_T_event_registration handles[TYPES];
    MPI_Comm parent, children;
    int rank, pids[CHILDREN], none[] = {0}, own = (int)getpid();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        OK(MPI_Gather(&own, 1, MPI_INT, none, 0, MPI_INT, 1, parent));
        OK(MPI_Comm_disconnect(&parent));
        MPI_Finalize();
        return verdict();
    }
    initialise_tools();
    for (int i = 0; i < TYPES; i++) {
        indices[i] = type_of(names[i]);
        handles[i] = listen_to(indices[i], NULL, 0, on_event, &numbers[i]);
    }
    OK(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 1, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE));
    OK(MPI_Gather(none, 0, MPI_INT, pids, 1, MPI_INT, rank == 1 ? MPI_ROOT : MPI_PROC_NULL, children));
    SAME(count, rank == 1 ? 2 + CHILDREN : 2);
    SAME(events[0].type, BEGIN);
    SAME(events[0].root, 1);
    CHECK(events[0].processes == (rank == 1 ? CHILDREN : UINT32_MAX));
    SAME(events[0].intercomm, 0);
    for (int i = 1; i < count - 1; i++) {
        SAME(events[i].type, PROCESS);
        SAME(events[i].pid, pids[i - 1]);
    }
    SAME(events[count - 1].type, END);
    SAME(events[count - 1].processes, CHILDREN);
    CHECK(events[count - 1].intercomm == (uint64_t)(uintptr_t)children);
    for (int i = 0; i < count; i++) {
        SAME(events[i].id == events[0].id, 1);
        CHECK(events[i].comm == (uint64_t)(uintptr_t)MPI_COMM_WORLD);
    }
    OK(MPI_Comm_disconnect(&children));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    count = 0;
    CLASS(MPI_Comm_spawn("/nowhere/at/all", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE), MPI_ERR_SPAWN);
    SAME(count, 2);
    SAME(events[0].type, BEGIN);
    SAME(events[1].type, END);
    SAME(events[1].processes, 0);
    SAME(events[1].intercomm, 0);
    for (int i = 0; i < TYPES; i++) OK(MPI_T_event_handle_free(handles[i], NULL, NULL));
    OK(MPI_T_finalize());
    MPI_Finalize();
    return verdict();
}
