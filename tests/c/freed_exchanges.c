/* A combined send and receive whose request is freed arrives, and the copy of what it sends is given back.
 * RANKS: 2
 */
#include "check.h"
#include <unistd.h>

enum { ROUNDS = 40, LONG = 4 << 20 };

static char data[LONG];

static long resident(void)
{
    long all = 0, here = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file) {
        SAME(fscanf(file, "%ld %ld", &all, &here), 2);
        fclose(file);
    }
    return here * sysconf(_SC_PAGESIZE);
}

int main(void)
{
    int rank, there = 0;
    MPI_Request request;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    memset(data, rank, LONG);
    long before = resident();
    for (int round = 0; round < ROUNDS; round++) {
        if (rank == 0) {
            OK(MPI_Isendrecv_replace(data, LONG, MPI_CHAR, 1, 0, 1, 0, MPI_COMM_WORLD, &request));
            OK(MPI_Request_free(&request));
            SAME(request == MPI_REQUEST_NULL, 1);
            /* Now the other one receives and sends. */
            OK(MPI_Send(NULL, 0, MPI_CHAR, 1, 1, MPI_COMM_WORLD));
            OK(MPI_Recv(NULL, 0, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        } else {
            OK(MPI_Recv(NULL, 0, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Recv(data, LONG, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            SAME(data[LONG - 1], round);
            memset(data, round + 1, LONG);
            OK(MPI_Send(data, LONG, MPI_CHAR, 0, 0, MPI_COMM_WORLD));
            OK(MPI_Send(NULL, 0, MPI_CHAR, 0, 1, MPI_COMM_WORLD));
        }
        /* Nobody tells when a freed receive is over but what it has brought. */
        while (rank == 0 && *(volatile char *)&data[LONG - 1] != round + 1)
            OK(MPI_Iprobe(1, 2, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    CHECK(resident() - before < ROUNDS / 2 * (long)LONG);
    /* The last one is sent although nobody waits for it. */
    if (rank == 0) {
        OK(MPI_Isendrecv_replace(data, LONG, MPI_CHAR, 1, 3, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &request));
        OK(MPI_Request_free(&request));
        memset(data, 99, LONG);
    } else {
        usleep(50000);
        OK(MPI_Recv(data, LONG, MPI_CHAR, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        SAME(data[LONG - 1], ROUNDS);
    }
    MPI_Finalize();
    return verdict();
}
