/* Ranks die at random moments of random operations until one is left; each time the others find together again.
 * RANKS: 4 9
 * OPTIONS: --survive
 */
#include "survive.h"

enum { LONG = 1 << 16 };
static int in[LONG], out[LONG];
static unsigned seed;

static unsigned next(void) {
    seed = seed * 1103515245u + 12345u;
    return seed >> 16;
}

/* One operation that all members begin alike. */
static int one(MPI_Comm comm, unsigned kind, int rank, int size) {
    MPI_Request requests[4];
    int right = (rank + 1) % size, left = (rank + size - 1) % size, sum = -1, error;
    int count = kind & 64 ? LONG : 5;
    switch (kind % 8) {
    case 0: return MPI_Barrier(comm);
    case 1:
        error = MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
        if (error == MPI_SUCCESS) SAME(sum, size * (size - 1) / 2);
        return error;
    case 2:
        for (int i = 0; i < count; i++) in[i] = rank == size / 2 ? i : -1;
        error = MPI_Bcast(in, count, MPI_INT, size / 2, comm);
        if (error == MPI_SUCCESS) for (int i = 0; i < count; i++) if (in[i] != i) { SAME(in[i], i); break; }
        return error;
    case 3:
        for (int i = 0; i < count; i++) in[i] = rank;
        error = MPI_Sendrecv(in, count, MPI_INT, right, 1, out, count, MPI_INT, left, 1, comm, MPI_STATUS_IGNORE);
        if (error == MPI_SUCCESS) SAME(out[count - 1], left);
        return error;
    case 4:
        for (int i = 0; i < count; i++) in[i] = rank;
        MPI_Isend(in, count, MPI_INT, right, 2, comm, &requests[0]);
        MPI_Irecv(out, count, MPI_INT, left, 2, comm, &requests[1]);
        error = MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        if (error != MPI_SUCCESS) {
            /* Both are over only once nobody else waits for them. */
            MPIX_Comm_revoke(comm);
            for (int i = 0; i < 2; i++) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        }
        return error;
    case 5:
        error = MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_MAX, comm, &requests[0]);
        if (error == MPI_SUCCESS) error = MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        if (error == MPI_SUCCESS) SAME(sum, size - 1);
        return error;
    case 6:
        return MPI_Allgather(&rank, 1, MPI_INT, out, 1, MPI_INT, comm);
    default:
        for (int i = 0; i < count; i++) in[i] = 1;
        error = MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, comm);
        if (error == MPI_SUCCESS) SAME(out[count - 1], size);
        return error;
    }
}

int main(int argc, char **argv) {
    int rank, size, me, provided;
    MPI_Comm now, new;
    MPI_Init_thread(&argc, &argv, argc > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_dup(MPI_COMM_WORLD, &now);
    MPI_Comm_set_errhandler(now, MPI_ERRORS_RETURN);
    unsigned step = 0;
    for (;;) {
        OK(MPI_Comm_rank(now, &rank));
        OK(MPI_Comm_size(now, &size));
        if (size == 1) break;
        seed = 7919 * ++step;
        int victim = next() % size, when = next() % 300, error = MPI_SUCCESS;
        for (int i = 0; error == MPI_SUCCESS; i++) {
            if (rank == victim && i == when) die();
            error = one(now, next(), rank, size);
        }
        int class = MPI_SUCCESS;
        MPI_Error_class(error, &class);
        CHECK(class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED || class == MPI_ERR_IN_STATUS);
        OK(MPIX_Comm_revoke(now));
        new = shrunk(now, size - 1);
        OK(MPI_Comm_free(&now));
        now = new;
    }
    OK(MPI_Comm_free(&now));
    MPI_Finalize();
    return verdict();
}
