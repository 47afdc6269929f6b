/* A function of a tool may initialise MPI_T and finalize it again. While the last MPI_T_finalize waits for that
 * function to return it cannot: it is refused, and nobody waits for ever.
 * FLAGS: -pthread
 */
#include "mpi_t_event.h"
#include <pthread.h>
#include <stdatomic.h>

static atomic_int inside, answered;

static void nested(void)
{
    int provided;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_finalize());
}

static void while_others_end(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    int provided = -1, n;
    (void)instance, (void)handle, (void)level, (void)data;
    nested();
    atomic_store(&inside, 1);
    /* Until the last MPI_T_finalize is at work. */
    while (MPI_T_cvar_get_num(&n) == MPI_SUCCESS) continue;
    SAME(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided), MPI_T_ERR_CANNOT_INIT);
    SAME(provided, -1);
    SAME(MPI_T_finalize(), MPI_T_ERR_NOT_INITIALIZED);
    SAME(MPI_T_cvar_get_num(&n), MPI_T_ERR_NOT_INITIALIZED);
    atomic_fetch_add(&answered, 1);
}

static void on_free(MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    (void)handle, (void)level, (void)data;
    nested();
    atomic_fetch_add(&answered, 1);
}

static void *name_it(void *name)
{
    OK(MPI_Comm_set_name(MPI_COMM_SELF, name));
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t other;
    initialise_tools();
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    SAME(provided, MPI_THREAD_MULTIPLE);
    int named = type_of("PERUSAL_COMM_NAMED");
    listen_to(named, NULL, 0, while_others_end, NULL);
    pthread_create(&other, NULL, name_it, "one");
    while (!atomic_load(&inside)) continue;
    OK(MPI_T_finalize());
    SAME(answered, 1);
    pthread_join(other, NULL);

    /* Afterwards it can be initialised as before, and the free callback of a handle may do so. */
    initialise_tools();
    MPI_T_event_registration handle = handle_of(named, NULL, 0);
    OK(MPI_T_event_handle_free(handle, NULL, on_free));
    SAME(answered, 2);
    OK(MPI_T_finalize());
    OK(MPI_Finalize());
    return verdict();
}
