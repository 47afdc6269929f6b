/* Of buffered sends that wait for room to their receiver, and have all had the same request, the last is taken back,
 * and none before it.
 * RANKS: 2
 * ENV: PERUSAL_RING_CELLS=16
 */
#include "check.h"
#include <unistd.h>

int main(int argc, char **argv) {
    enum { MANY = 300, UNWANTED = 1, WANTED = 2 };
    static char buffer[MANY * (sizeof(int) + MPI_BSEND_OVERHEAD)];
    int rank, value, flag = 0, size;
    void *back;
    MPI_Request request;
    MPI_Status status;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Buffer_attach(buffer, sizeof buffer));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        for (value = 0; value < MANY; value++) {
            OK(MPI_Ibsend(&value, 1, MPI_INT, 1, UNWANTED, MPI_COMM_WORLD, &request));
            if (value == MANY - 1) OK(MPI_Cancel(&request));
            OK(MPI_Wait(&request, &status));
        }
        OK(MPI_Test_cancelled(&status, &flag));
        CHECK(flag);
        OK(MPI_Send(NULL, 0, MPI_INT, 1, WANTED, MPI_COMM_WORLD));
    } else {
        /* Longer than the sends take: nothing leaves the ring meanwhile. */
        usleep(100000);
        OK(MPI_Recv(NULL, 0, MPI_INT, 0, WANTED, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < MANY - 1; i++) {
            OK(MPI_Recv(&value, 1, MPI_INT, 0, UNWANTED, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            SAME(value, i);
        }
        OK(MPI_Iprobe(0, UNWANTED, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);
    }
    OK(MPI_Buffer_detach(&back, &size));
    MPI_Finalize();
    return verdict();
}
