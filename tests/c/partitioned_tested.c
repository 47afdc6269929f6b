/* A partition that comes while the event of the arrival of another one is delivered:
 * MPI_Parrived says of it what events have said by then.
 * RANKS: 2
 */
#include "mpi_t_event.h"
#include <sched.h>

enum { PARTS = 3, ROUNDS = 20 };
/* The last rounds in which that happened. */
static volatile int *first_is_delivered, *last_is_ready;
static int round_now, arrived_index, tested_index, last_is_delivered, tests, tested_early;

static int read_of(MPI_T_event_instance instance, int index, const char *name)
{
    int value = -9;
    OK(MPI_T_event_read(instance, element_of(index, name), &value));
    return value;
}

/* While the event of the first partition is delivered, the last one comes. */
static void on_arrival(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    int partition = read_of(instance, arrived_index, "partition");
    (void)handle, (void)level, (void)data;
    if (partition == PARTS - 1) last_is_delivered = 1;
    if (partition != 0) return;
    *first_is_delivered = round_now;
    while (*last_is_ready != round_now) sched_yield();
}

static void on_test(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    (void)handle, (void)level, (void)data;
    tests++;
    if (read_of(instance, tested_index, "arrived") != last_is_delivered) tested_early++;
}

int main(int argc, char **argv)
{
    int data[PARTS] = {0}, rank, flag, unit;
    volatile int *words;
    MPI_Aint size;
    MPI_T_event_registration arrival, test;
    MPI_Request request;
    MPI_Win win;
    MPI_Comm comm;
    initialise_tools();
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Win_allocate_shared(rank ? 0 : 2 * sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &words, &win));
    OK(MPI_Win_shared_query(win, 0, &size, &unit, &words));
    first_is_delivered = words, last_is_ready = words + 1;
    arrived_index = type_of("PERUSAL_PART_ARRIVED"), tested_index = type_of("PERUSAL_PART_TESTED");
    arrival = listen_to(arrived_index, &comm, 0, on_arrival, NULL);
    test = listen_to(tested_index, &comm, 0, on_test, NULL);
    OK(rank ? MPI_Precv_init(data, PARTS, 1, MPI_INT, 0, 0, comm, MPI_INFO_NULL, &request)
            : MPI_Psend_init(data, PARTS, 1, MPI_INT, 1, 0, comm, MPI_INFO_NULL, &request));
    if (!rank) *first_is_delivered = *last_is_ready = 0;
    for (round_now = 1; round_now <= ROUNDS; round_now++) {
        last_is_delivered = 0;
        if (rank) OK(MPI_Start(&request));
        OK(MPI_Barrier(comm));
        if (!rank) {
            OK(MPI_Start(&request));
            OK(MPI_Pready(0, request));
            /* Data moves while this rank is in a call. */
            while (*first_is_delivered != round_now) OK(MPI_Iprobe(1, 0, comm, &flag, MPI_STATUS_IGNORE));
            OK(MPI_Pready(PARTS - 1, request));
            *last_is_ready = round_now;
            OK(MPI_Pready(1, request));
        } else {
            for (flag = 0; !flag;) {
                OK(MPI_Parrived(request, PARTS - 1, &flag));
                SAME(flag, last_is_delivered);
            }
        }
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    if (rank) CHECK(tests >= ROUNDS);
    SAME(tested_early, 0);
    OK(MPI_Request_free(&request));
    OK(MPI_T_event_handle_free(arrival, NULL, NULL));
    OK(MPI_T_event_handle_free(test, NULL, NULL));
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return verdict();
}
