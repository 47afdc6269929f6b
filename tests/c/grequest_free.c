/* A generalized request that one thread frees while another completes it:
 * its free function is called, once, whoever comes last.
 * RANKS: 1
 * FLAGS: -pthread
 */
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>

enum { ROUNDS = 20000 };

static MPI_Request shared[ROUNDS];
static atomic_int freed[ROUNDS];
static atomic_int turn = -1;

static int query(void *extra, MPI_Status *status)
{
    (void)extra;
    MPI_Status_set_elements(status, MPI_INT, 0);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int release(void *extra)
{
    atomic_fetch_add((atomic_int *)extra, 1);
    return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
    (void)extra, (void)complete;
    return MPI_SUCCESS;
}

static void *completer(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        while (atomic_load(&turn) < i) {}
        OK(MPI_Grequest_complete(shared[i]));
    }
    return unused;
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t thread;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    errors_return();
    pthread_create(&thread, NULL, completer, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        OK(MPI_Grequest_start(query, release, cancel, &freed[i], &shared[i]));
        MPI_Request mine = shared[i];
        atomic_store(&turn, i);
        OK(MPI_Request_free(&mine));
    }
    pthread_join(thread, NULL);
    for (int i = 0; i < ROUNDS; i++) SAME(atomic_load(&freed[i]), 1);

    /* Complete first, then freed; and twice complete is an error. */
    atomic_int last = 0;
    MPI_Request request;
    OK(MPI_Grequest_start(query, release, cancel, &last, &request));
    OK(MPI_Grequest_complete(request));
    CLASS(MPI_Grequest_complete(request), MPI_ERR_REQUEST);
    SAME(atomic_load(&last), 0);
    OK(MPI_Request_free(&request));
    SAME(atomic_load(&last), 1);
    MPI_Finalize();
    return verdict();
}
