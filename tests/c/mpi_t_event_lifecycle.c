/* A tool that is there before MPI_Init and after MPI_Finalize hears the whole life of the process: beginning,
 * communicators made, named and freed, error handlers, collectives, the end; at once or from a buffer.
 */
#include "mpi_t_event.h"

static const char *names[] = {"PERUSAL_INITIALIZED", "PERUSAL_FINALIZING", "PERUSAL_COMM_CREATED", "PERUSAL_COMM_FREED",
    "PERUSAL_COMM_NAMED", "PERUSAL_ERRHANDLER_INVOKED", "PERUSAL_PLACED", "PERUSAL_COLL_BEGIN_all", "PERUSAL_COLL_END_all"};
enum { INITIALIZED, FINALIZING, CREATED, FREED, NAMED, ERRHANDLER, PLACED, BEGIN, END, EVENTS };

struct tool {
    int entries, seen[EVENTS], last_size, last_length, last_class, last_operation, in_order, began;
    uint64_t last_comm;
    MPI_T_event_registration handles[EVENTS];
} tools[2] = {{.entries = 0}, {.entries = 50}};

struct listener {
    struct tool *tool;
    int event;
} listeners[2][EVENTS];

static int element[EVENTS][2];

static void on_event(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    struct listener *me = data;
    struct tool *tool = me->tool;
    (void)level;
    CHECK(handle == tool->handles[me->event]);
    tool->seen[me->event]++;
    switch (me->event) {
    case CREATED: OK(MPI_T_event_read(instance, element[CREATED][0], &tool->last_size)); break;
    case NAMED:
        OK(MPI_T_event_read(instance, element[NAMED][0], &tool->last_length));
        OK(MPI_T_event_read(instance, element[NAMED][1], &tool->last_comm));
        break;
    case ERRHANDLER: OK(MPI_T_event_read(instance, element[ERRHANDLER][0], &tool->last_class)); break;
    case BEGIN:
        OK(MPI_T_event_read(instance, element[BEGIN][0], &tool->last_operation));
        tool->began++;
        break;
    case END: tool->began--; break;
    }
}

static void same_in_both(int event, int expected)
{
    int flag;
    OK(MPI_Comm_test_inter(MPI_COMM_SELF, &flag)); /* any MPI function: what waits is delivered */
    for (int t = 0; t < 2; t++)
        if (tools[t].seen[event] != expected) {
            fprintf(stderr, "tool %d has seen %d of %s, expected %d\n", t, tools[t].seen[event], names[event], expected);
            failures++;
        }
}

int main(int argc, char **argv)
{
    initialise_tools();
    for (int t = 0; t < 2; t++)
        for (int e = 0; e < EVENTS; e++) {
            listeners[t][e] = (struct listener){&tools[t], e};
            int index = type_of(names[e]);
            SAME(bind_of(index), MPI_T_BIND_NO_OBJECT);
            tools[t].handles[e] = handle_of(index, NULL, tools[t].entries);
            OK(MPI_T_event_register_callback(tools[t].handles[e], MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL, &listeners[t][e],
                                             on_event));
        }
    element[CREATED][0] = element_of(type_of(names[CREATED]), "size");
    element[NAMED][0] = element_of(type_of(names[NAMED]), "name_length");
    element[NAMED][1] = element_of(type_of(names[NAMED]), "comm");
    element[ERRHANDLER][0] = element_of(type_of(names[ERRHANDLER]), "error_class");
    element[BEGIN][0] = element_of(type_of(names[BEGIN]), "collective");
    SAME(tools[0].seen[INITIALIZED], 0);

    OK(MPI_Init(&argc, &argv));
    /* The end of MPI_Init is a safe place: what waits has been delivered. */
    SAME(tools[0].seen[INITIALIZED], 1);
    SAME(tools[1].seen[INITIALIZED], 1);
    same_in_both(PLACED, 1);
    same_in_both(CREATED, 2); /* MPI_COMM_WORLD and MPI_COMM_SELF */

    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    same_in_both(CREATED, 3);
    SAME(tools[0].last_size, 1);
    same_in_both(NAMED, 2); /* the same two */
    OK(MPI_Comm_set_name(comm, "hello"));
    same_in_both(NAMED, 3);
    for (int t = 0; t < 2; t++) {
        SAME(tools[t].last_length, 5);
        SAME(tools[t].last_comm, (uint64_t)comm);
    }
    int begun = tools[0].seen[BEGIN];
    OK(MPI_Barrier(comm));
    same_in_both(BEGIN, begun + 1);
    same_in_both(END, tools[0].seen[BEGIN]);
    int barrier = tools[0].last_operation;
    OK(MPI_Bcast(&begun, 1, MPI_INT, 0, comm));
    same_in_both(BEGIN, begun + 2);
    CHECK(tools[0].last_operation != barrier);
    SAME(tools[1].last_operation, tools[0].last_operation);

    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    CLASS(MPI_Send(NULL, 0, MPI_INT, 7, 0, comm), MPI_ERR_RANK);
    same_in_both(ERRHANDLER, 1);
    SAME(tools[1].last_class, MPI_ERR_RANK);
    OK(MPI_Comm_free(&comm));
    same_in_both(FREED, 1);

    OK(MPI_Finalize());
    for (int t = 0; t < 2; t++) {
        /* The end of MPI_Finalize is a safe place too. */
        SAME(tools[t].seen[FINALIZING], 1);
        SAME(tools[t].began, 0);
        for (int e = 0; e < EVENTS; e++) OK(MPI_T_event_handle_free(tools[t].handles[e], NULL, NULL));
    }
    OK(MPI_T_finalize());
    return verdict();
}
