/* A token goes round a ring of ranks that poll for it, by each function that can;
 * where they outnumber the CPUs, they give them away.
 * RANKS: 2 8
 */
#include "check.h"
#include "mpi_t_counter.h"

enum { ROUNDS = 200, WAYS = 6 };

int main(void) {
    int rank, size, level, token = 0;
    MPI_Init(NULL, NULL);
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &level));
    OK(MPI_T_pvar_session_create(&session));
    MPI_T_pvar_handle yields = counter("yields");
    unsigned long long cpus = number_of_cpus();
    for (int i = 0; i < ROUNDS * WAYS; i++) {
        int over = 0, way = i % WAYS, index;
        MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        MPI_Message message;
        if (rank == 0) OK(MPI_Send(&token, 1, MPI_INT, next, way, MPI_COMM_WORLD));
        if (way < 4) OK(MPI_Irecv(&token, 1, MPI_INT, previous, way, MPI_COMM_WORLD, &requests[1]));
        while (!over) {
            switch (way) {
            case 0: OK(MPI_Test(&requests[1], &over, MPI_STATUS_IGNORE)); break;
            case 1: OK(MPI_Testall(2, requests, &over, MPI_STATUSES_IGNORE)); break;
            case 2: OK(MPI_Testany(2, requests, &index, &over, MPI_STATUS_IGNORE)); break;
            case 3: OK(MPI_Request_get_status(requests[1], &over, MPI_STATUS_IGNORE)); break;
            case 4: OK(MPI_Iprobe(previous, way, MPI_COMM_WORLD, &over, MPI_STATUS_IGNORE)); break;
            default: OK(MPI_Improbe(previous, way, MPI_COMM_WORLD, &over, &message, MPI_STATUS_IGNORE));
            }
        }
        if (way == 3) OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
        if (way == 4) OK(MPI_Recv(&token, 1, MPI_INT, previous, way, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        if (way == 5) OK(MPI_Mrecv(&token, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
        if (rank != 0) OK(MPI_Send(&token, 1, MPI_INT, next, way, MPI_COMM_WORLD));
    }
    if (size > (int)cpus) CHECK(read_of(yields) >= ROUNDS);
    OK(MPI_T_finalize());
    MPI_Finalize();
    return verdict();
}
