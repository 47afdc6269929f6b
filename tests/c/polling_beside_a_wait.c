/* A thread that polls while another one of its rank waits, and runs progress,
 * gives its CPU away where threads outnumber the CPUs.
 * RANKS: 2 8
 * FLAGS: -pthread
 */
#include "check.h"
#include "mpi_t_counter.h"
#include <pthread.h>
#include <unistd.h>

/* Where yields change nothing, one poll in a thousand yields. */
enum { POLLS = 20000, LEAST = POLLS / 1000, STOP = 1, NEVER = 2 };

static void *await_stop(void *unused)
{
    OK(MPI_Recv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, STOP, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return unused;
}

int main(void)
{
    int rank, size, provided, flag;
    pthread_t thread;
    MPI_Request request;
    OK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided));
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_pvar_session_create(&session));
    MPI_T_pvar_handle yields = counter("yields");
    unsigned long long cpus = number_of_cpus();
    pthread_create(&thread, NULL, await_stop, NULL);
    /* Until it sleeps. */
    usleep(300000);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    usleep(300000);
    OK(MPI_Irecv(NULL, 0, MPI_INT, rank, NEVER, MPI_COMM_WORLD, &request));
    unsigned long long before = read_of(yields);
    for (int i = 0; i < POLLS; i++) {
        if (i % 2) OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
        else OK(MPI_Iprobe(rank, NEVER, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        SAME(flag, 0);
    }
    if (2 * size > (int)cpus) CHECK(read_of(yields) - before >= LEAST);
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Send(NULL, 0, MPI_INT, (rank + 1) % size, STOP, MPI_COMM_WORLD));
    pthread_join(thread, NULL);
    OK(MPI_T_finalize());
    OK(MPI_Finalize());
    return verdict();
}
