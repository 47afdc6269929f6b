/* Of two ranks that wait for nobody but each other and share a CPU the higher one moves, is not bound by that, and
 * tells; never where the program has bound them, nor when the variable is off.
 * RANKS: 2
 * ENV: PERUSAL_KEEP_APART=on
 * ENV: PERUSAL_YIELDS=200
 * ENV: PERUSAL_SPIN_US=1
 * ENV: PERUSAL_BIND_TO=none
 */
#include "keep_apart.h"

static int delivered, place = -1, element;

static void on_move(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    (void)handle, (void)level, (void)data;
    OK(MPI_T_event_read(instance, element, &place));
    delivered++;
}

static void turn_off(void)
{
    MPI_T_cvar_handle handle;
    int index = -1, count, off = 0;
    OK(MPI_T_cvar_get_index("keep_apart", &index));
    OK(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count));
    OK(MPI_T_cvar_write(handle, &off));
    OK(MPI_T_cvar_handle_free(&handle));
}

int main(int argc, char **argv)
{
    if (!begin(&argc, &argv)) return end();
    int type = type_of("PERUSAL_PLACED");
    element = element_of(type, "cpu");
    MPI_T_event_registration handle = handle_of(type, NULL, 0);
    OK(MPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL, NULL, on_move));

    /* Bound by the program: there is nowhere to go. */
    use_first();
    SAME(talk(5000), 0);
    cpu_set_t now;
    SAME(sched_getaffinity(0, sizeof now, &now), 0);
    CHECK(CPU_COUNT(&now) == 1 && sched_getcpu() == first_cpu);

    /* The kernel may part them first; then they are put together again.
     * A hang is what the time limit of the test is for. */
    while (talk_together(5000) == 0) continue;
    SAME(sched_getaffinity(0, sizeof now, &now), 0);
    CHECK(CPU_EQUAL(&now, &allowed));
    SAME(delivered, moves());
    if (rank == 0)
        SAME(moves(), 0);
    else
        CHECK(moves() > 0 && place >= 0 && CPU_ISSET(place, &allowed));

    turn_off();
    unsigned long long before = talk(1);
    for (int i = 0; i < 4; i++) SAME(talk_together(2000), before);
    return end();
}
