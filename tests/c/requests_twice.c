/* One request twice in an array of MPI_Waitall: the second one is an error, as one that has been completed,
 * also where no call takes its fast path.
 * RANKS: 1
 * ENV: PERUSAL_CHECK=on
 */
#include "check.h"

int main(void) {
    MPI_Request pair[2];
    MPI_Status statuses[2];
    int in = 0, out = 1, class;
    MPI_Init(NULL, NULL);
    errors_return();
    for (int collective = 0; collective < 2; collective++) {
        if (collective) MPI_Ibarrier(MPI_COMM_SELF, &pair[0]);
        else MPI_Irecv(&in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &pair[0]);
        pair[1] = pair[0];
        if (!collective) MPI_Send(&out, 1, MPI_INT, 0, 1, MPI_COMM_SELF);
        SAME(MPI_Waitall(2, pair, statuses), MPI_ERR_IN_STATUS);
        SAME(statuses[0].MPI_ERROR, MPI_SUCCESS);
        MPI_Error_class(statuses[1].MPI_ERROR, &class);
        SAME(class, MPI_ERR_REQUEST);
        SAME(in, 1);
    }
    MPI_Finalize();
    return verdict();
}
