/* Blocking, nonblocking and persistent collectives tell their begin and end, which of the three they are,
 * and how they are done.
 * RANKS: 2
 */
#include "mpi_t_event.h"

enum { MODES = 3, BYTES = 1000 };
static int elements[2][4], events[2][MODES], open_ones;
static uint64_t last_id[MODES];

static void on_event(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    int end = *(int *)data, mode = -1, collective = -1;
    uint64_t id = 0, bytes = 0;
    (void)handle, (void)level;
    OK(MPI_T_event_read(instance, elements[end][0], &id));
    OK(MPI_T_event_read(instance, elements[end][1], &mode));
    OK(MPI_T_event_read(instance, elements[end][2], &collective));
    OK(MPI_T_event_read(instance, elements[end][3], &bytes));
    CHECK(mode >= 0 && mode < MODES);
    if (mode < 0 || mode >= MODES) return;
    /* MPI_Alltoall with two ranks. */
    SAME(collective, 5);
    SAME(bytes, 2 * BYTES);
    events[end][mode]++;
    open_ones += end ? -1 : 1;
    if (end) SAME(id, last_id[mode]);
    else last_id[mode] = id;
}

static void expect(int blocking, int nonblocking, int persistent)
{
    for (int end = 0; end < 2; end++) {
        SAME(events[end][0], blocking);
        SAME(events[end][1], nonblocking);
        SAME(events[end][2], persistent);
    }
    SAME(open_ones, 0);
}

int main(int argc, char **argv)
{
    static const char *names[] = {"PERUSAL_COLL_BEGIN_all", "PERUSAL_COLL_END_all"};
    static const char *wanted[] = {"id", "mode", "collective", "bytes"};
    static int ends[] = {0, 1};
    static char mine[2 * BYTES], theirs[2 * BYTES];
    MPI_T_event_registration handles[2];
    MPI_Request request, persistent;
    MPI_Comm comm;
    initialise_tools();
    OK(MPI_Init(&argc, &argv));
    for (int end = 0; end < 2; end++) {
        int type = type_of(names[end]);
        for (int i = 0; i < 4; i++) elements[end][i] = element_of(type, wanted[i]);
        handles[end] = listen_to(type, NULL, 0, on_event, &ends[end]);
    }
    OK(MPI_Alltoall(mine, BYTES, MPI_CHAR, theirs, BYTES, MPI_CHAR, MPI_COMM_WORLD));
    expect(1, 0, 0);
    OK(MPI_Ialltoall(mine, BYTES, MPI_CHAR, theirs, BYTES, MPI_CHAR, MPI_COMM_WORLD, &request));
    SAME(events[0][1], 1);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    expect(1, 1, 0);
    /* Making it is no operation yet; each start is one. */
    OK(MPI_Alltoall_init(mine, BYTES, MPI_CHAR, theirs, BYTES, MPI_CHAR, MPI_COMM_WORLD, MPI_INFO_NULL, &persistent));
    expect(1, 1, 0);
    for (int start = 1; start < 4; start++) {
        OK(MPI_Start(&persistent));
        SAME(events[0][2], start);
        OK(MPI_Wait(&persistent, MPI_STATUS_IGNORE));
        expect(1, 1, start);
    }
    OK(MPI_Request_free(&persistent));
    /* What a call does by itself is no collective operation of the program's. */
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_disconnect(&comm));
    expect(1, 1, 3);
    for (int end = 0; end < 2; end++) OK(MPI_T_event_handle_free(handles[end], NULL, NULL));
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return verdict();
}
