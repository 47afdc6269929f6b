/* Receives from any source, while deaths are not acknowledged and afterwards.
 * RANKS: 3 4
 * OPTIONS: --survive
 */
#include "survive.h"

int main(void) {
    int rank, size, value = 0, flag, index, count;
    MPI_Request request, two[2], exchanges[2];
    MPI_Status status;
    MPI_Group failed, world;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int dead = size - 1;
    if (rank == dead) die();
    if (rank == 0) {
        /* A blocking one is over, a nonblocking one stays. */
        CLASS(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status), MPIX_ERR_PROC_FAILED);
        OK(MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &request));
        CLASS(MPI_Wait(&request, &status), MPIX_ERR_PROC_FAILED_PENDING);
        CHECK(request != MPI_REQUEST_NULL);
        CLASS(MPI_Test(&request, &flag, &status), MPIX_ERR_PROC_FAILED_PENDING);
        two[0] = MPI_REQUEST_NULL;
        two[1] = request;
        CLASS(MPI_Waitany(2, two, &index, &status), MPIX_ERR_PROC_FAILED_PENDING);
        /* The same of one that has begun with a send. */
        int out = 8, in = 0, both = 9;
        OK(MPI_Isendrecv(&out, 1, MPI_INT, 1, 5, &in, 1, MPI_INT, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &exchanges[0]));
        OK(MPI_Isendrecv_replace(&both, 1, MPI_INT, 1, 5, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &exchanges[1]));
        for (int i = 0; i < 2; i++) {
            CLASS(MPI_Test(&exchanges[i], &flag, &status), MPIX_ERR_PROC_FAILED_PENDING);
            CLASS(MPI_Wait(&exchanges[i], &status), MPIX_ERR_PROC_FAILED_PENDING);
            CHECK(exchanges[i] != MPI_REQUEST_NULL);
        }
        CLASS(MPI_Probe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &status), MPIX_ERR_PROC_FAILED);
        OK(MPIX_Comm_get_failed(MPI_COMM_WORLD, &failed));
        OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
        int zero = 0, which = -1;
        OK(MPI_Group_translate_ranks(failed, 1, &zero, world, &which));
        SAME(which, dead);
        OK(MPI_Group_free(&failed));
        CLASS(MPIX_Comm_ack_failed(MPI_COMM_WORLD, -1, &count), MPI_ERR_ARG);
        OK(MPIX_Comm_ack_failed(MPI_COMM_WORLD, 0, &count));
        SAME(count, 0);
        OK(MPIX_Comm_ack_failed(MPI_COMM_WORLD, 1, &count));
        SAME(count, 1);
        /* Whoever wants to acknowledge all gives the size. */
        OK(MPIX_Comm_ack_failed(MPI_COMM_WORLD, 3, &count));
        SAME(count, 1);
        OK(MPIX_Comm_failure_ack(MPI_COMM_WORLD));
        OK(MPIX_Comm_failure_get_acked(MPI_COMM_WORLD, &failed));
        OK(MPI_Group_size(failed, &count));
        SAME(count, 1);
        OK(MPI_Group_free(&failed));
        OK(MPI_Group_free(&world));
        int go = 1;
        OK(MPI_Send(&go, 1, MPI_INT, 1, 3, MPI_COMM_WORLD));
        OK(MPI_Wait(&request, &status));
        SAME(value, 5);
        SAME(status.MPI_SOURCE, 1);
        OK(MPI_Waitall(2, exchanges, MPI_STATUSES_IGNORE));
        SAME(in, 8);
        SAME(both, 9);
        OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        SAME(value, 6);
        /* A communicator with other members is not concerned. */
        OK(MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &request));
        OK(MPI_Send(&go, 1, MPI_INT, 0, 0, MPI_COMM_SELF));
        OK(MPI_Wait(&request, &status));
    } else if (rank == 1) {
        OK(MPI_Recv(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &status));
        value = 5;
        OK(MPI_Send(&value, 1, MPI_INT, 0, 2, MPI_COMM_WORLD));
        for (int tag = 6; tag <= 7; tag++) {
            OK(MPI_Recv(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, &status));
            OK(MPI_Send(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD));
        }
        value = 6;
        OK(MPI_Send(&value, 1, MPI_INT, 0, 4, MPI_COMM_WORLD));
    }
    MPI_Finalize();
    return verdict();
}
