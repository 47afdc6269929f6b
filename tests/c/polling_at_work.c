/* A program that works and asks now and then for what comes late gives the CPU away now and then only,
 * not at every question.
 * RANKS: 8
 */
#include "check.h"
#include "mpi_t_counter.h"

enum { QUESTIONS = 20000, TAG = 5 };

int main(void) {
    int rank, size, level, mine, theirs = -1, over = 0;
    unsigned work = 1;
    MPI_Request request;
    MPI_Init(NULL, NULL);
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &level));
    OK(MPI_T_pvar_session_create(&session));
    MPI_T_pvar_handle yields = counter("yields");
    unsigned long long cpus = number_of_cpus();
    OK(MPI_Irecv(&theirs, 1, MPI_INT, previous, TAG, MPI_COMM_WORLD, &request));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    unsigned long long before = read_of(yields);
    for (int i = 0; i < QUESTIONS; i++) {
        work = work * 1664525u + 1013904223u;
        OK(MPI_Test(&request, &over, MPI_STATUS_IGNORE));
        CHECK(!over);
    }
    unsigned long long spent = read_of(yields) - before;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    mine = (int)(work >> 1);
    OK(MPI_Send(&mine, 1, MPI_INT, next, TAG, MPI_COMM_WORLD));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(theirs == mine);
    CHECK(spent < QUESTIONS / 8);
    if (size > (int)cpus) CHECK(spent > 0);
    OK(MPI_T_finalize());
    MPI_Finalize();
    return verdict();
}
