/* Waits and tests of several requests, some of which need a rank that has died: each has its own error in its status,
 * and those that may still come stay active.
 * RANKS: 3
 * OPTIONS: --survive
 */
#include "survive.h"

enum { N = 4 };

static MPI_Request all[N], part;
static MPI_Status statuses[N];
static int values[N], indices[N];

/* From the living, from the dead, from anybody, and from the dead again. */
static void begin(int tag) {
    int from[N] = {1, 2, MPI_ANY_SOURCE, 2};
    for (int i = 0; i < N; i++) OK(MPI_Irecv(&values[i], 1, MPI_INT, from[i], tag + i, MPI_COMM_WORLD, &all[i]));
}

static void forget(void) {
    for (int i = 0; i < N; i++) statuses[i].MPI_ERROR = 77;
}

/* Statuses of a call that has ended for receives that do not come: from the dead they are over, the others stay. */
static void check_all(void) {
    SAME(statuses[0].MPI_ERROR, MPI_ERR_PENDING);
    SAME(statuses[1].MPI_ERROR, MPIX_ERR_PROC_FAILED);
    SAME(statuses[2].MPI_ERROR, MPIX_ERR_PROC_FAILED_PENDING);
    SAME(statuses[3].MPI_ERROR, MPIX_ERR_PROC_FAILED);
    CHECK(all[0] != MPI_REQUEST_NULL && all[2] != MPI_REQUEST_NULL);
    CHECK(all[1] == MPI_REQUEST_NULL && all[3] == MPI_REQUEST_NULL);
}

static void drop(void) {
    for (int i = 0; i < N; i++) {
        if (all[i] == MPI_REQUEST_NULL) continue;
        OK(MPI_Cancel(&all[i]));
        OK(MPI_Wait(&all[i], MPI_STATUS_IGNORE));
    }
}

int main(void) {
    int rank, flag = 0, count = 0, value = 5, go = 1;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) OK(MPI_Precv_init(values, 1, 1, MPI_INT, 2, 50, MPI_COMM_WORLD, MPI_INFO_NULL, &part));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 2) die();
    await_deaths(MPI_COMM_WORLD, 1);
    if (rank == 0) {
        /* Nobody waits for what the living send, once one of the others cannot come. */
        begin(10);
        forget();
        CLASS(MPI_Waitall(N, all, statuses), MPI_ERR_IN_STATUS);
        check_all();
        drop();

        begin(20);
        forget();
        CLASS(MPI_Testall(N, all, &flag, statuses), MPI_ERR_IN_STATUS);
        SAME(flag, 1);
        check_all();
        drop();

        begin(30);
        forget();
        CLASS(MPI_Waitsome(N, all, &count, indices, statuses), MPI_ERR_IN_STATUS);
        SAME(count, 3);
        for (int i = 0; i < 3; i++) {
            SAME(indices[i], i + 1);
            SAME(statuses[i].MPI_ERROR, i == 1 ? MPIX_ERR_PROC_FAILED_PENDING : MPIX_ERR_PROC_FAILED);
        }
        /* Now the one from anybody is alone in that. */
        forget();
        CLASS(MPI_Testsome(N, all, &count, indices, statuses), MPI_ERR_IN_STATUS);
        SAME(count, 1);
        SAME(indices[0], 2);
        SAME(statuses[0].MPI_ERROR, MPIX_ERR_PROC_FAILED_PENDING);
        CLASS(MPI_Waitany(N, all, indices, statuses), MPIX_ERR_PROC_FAILED_PENDING);
        SAME(indices[0], 2);
        drop();

        /* What is over comes first. */
        OK(MPI_Irecv(&values[0], 1, MPI_INT, MPI_ANY_SOURCE, 40, MPI_COMM_WORLD, &all[0]));
        OK(MPI_Irecv(&values[1], 1, MPI_INT, MPI_PROC_NULL, 40, MPI_COMM_WORLD, &all[1]));
        OK(MPI_Waitany(2, all, indices, statuses));
        SAME(indices[0], 1);
        drop();

        /* A partitioned receive from the dead stays, too. */
        OK(MPI_Start(&part));
        OK(MPI_Irecv(&values[1], 1, MPI_INT, MPI_PROC_NULL, 40, MPI_COMM_WORLD, &all[0]));
        all[1] = part;
        forget();
        CLASS(MPI_Waitall(2, all, statuses), MPI_ERR_IN_STATUS);
        SAME(statuses[0].MPI_ERROR, MPI_SUCCESS);
        SAME(statuses[1].MPI_ERROR, MPIX_ERR_PROC_FAILED);

        /* Those that stay go on where the death is acknowledged. */
        OK(MPI_Irecv(&values[0], 1, MPI_INT, 1, 60, MPI_COMM_WORLD, &all[0]));
        OK(MPI_Irecv(&values[1], 1, MPI_INT, MPI_ANY_SOURCE, 61, MPI_COMM_WORLD, &all[1]));
        CLASS(MPI_Waitall(2, all, statuses), MPI_ERR_IN_STATUS);
        OK(MPIX_Comm_failure_ack(MPI_COMM_WORLD));
        OK(MPI_Send(&go, 1, MPI_INT, 1, 3, MPI_COMM_WORLD));
        OK(MPI_Waitall(2, all, statuses));
        SAME(values[0], 5);
        SAME(values[1], 5);
    } else {
        OK(MPI_Recv(&go, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Send(&value, 1, MPI_INT, 0, 60, MPI_COMM_WORLD));
        OK(MPI_Send(&value, 1, MPI_INT, 0, 61, MPI_COMM_WORLD));
    }
    MPI_Finalize();
    return verdict();
}
