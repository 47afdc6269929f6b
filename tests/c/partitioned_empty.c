/* Partitions without elements, at one side or at both: their messages have rounds as others do.
 * A message without partitions is an error.
 * RANKS: 2
 */
#include "check.h"

enum { ROUNDS = 5, SHAPES = 3 };
static int rank;

/* Partitions and elements of each: what is sent, and what is received. */
static const int shapes[SHAPES][4] = {{3, 0, 5, 0}, {1, 0, 1, 0}, {4, 0, 4, 7}};

static void begin(MPI_Request request, int partitions) {
    OK(MPI_Start(&request));
    for (int part = 0; part < partitions; part++) OK(MPI_Pready(part, request));
}

static void ended(MPI_Request *request) {
    MPI_Status status;
    int count = -1;
    OK(MPI_Wait(request, &status));
    OK(MPI_Get_count(&status, MPI_CHAR, &count));
    SAME(count, 0);
}

/* What there is not is an error, also where there is nothing. */
static void none_of_them(MPI_Request send, MPI_Request receive, const int *shape) {
    int flag;
    if (send != MPI_REQUEST_NULL) {
        CLASS(MPI_Pready(shape[0], send), MPI_ERR_ARG);
        OK(MPI_Pready_list(0, NULL, send));
    }
    if (receive != MPI_REQUEST_NULL) CLASS(MPI_Parrived(receive, shape[2], &flag), MPI_ERR_ARG);
}

static void between_two(const int *shape, MPI_Datatype type) {
    MPI_Request request;
    char data[64] = {0};
    if (rank == 0) OK(MPI_Psend_init(data, shape[0], shape[1], type, 1, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    else OK(MPI_Precv_init(data, shape[2], shape[3], type, 0, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    for (int round = 0; round < ROUNDS; round++) {
        begin(request, rank == 0 ? shape[0] : 0);
        if (rank == 0) none_of_them(request, MPI_REQUEST_NULL, shape);
        else none_of_them(MPI_REQUEST_NULL, request, shape);
        if (rank == 1) ended(&request);
        else OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    OK(MPI_Request_free(&request));
}

static void with_itself(const int *shape) {
    MPI_Request send, receive;
    char in[64], out[64] = {0};
    OK(MPI_Precv_init(in, shape[2], shape[3], MPI_CHAR, 0, 4, MPI_COMM_SELF, MPI_INFO_NULL, &receive));
    OK(MPI_Psend_init(out, shape[0], shape[1], MPI_CHAR, 0, 4, MPI_COMM_SELF, MPI_INFO_NULL, &send));
    for (int round = 0; round < ROUNDS; round++) {
        begin(receive, 0);
        begin(send, shape[0]);
        none_of_them(send, receive, shape);
        ended(&receive);
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    }
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
}

/* MPI 5.0, section 4.2.1: the number of partitions is above zero. */
static void without_partitions(void) {
    static const int numbers[] = {0, -1};
    MPI_Request request = MPI_REQUEST_NULL;
    char data[8];
    for (int i = 0; i < 2; i++) {
        for (int peer = 0; peer < 2; peer++) {
            int other = peer == 0 ? 0 : MPI_PROC_NULL;
            CLASS(MPI_Psend_init(data, numbers[i], 1, MPI_CHAR, other, 4, MPI_COMM_SELF, MPI_INFO_NULL, &request), MPI_ERR_ARG);
            CLASS(MPI_Precv_init(data, numbers[i], 1, MPI_CHAR, other, 4, MPI_COMM_SELF, MPI_INFO_NULL, &request), MPI_ERR_ARG);
        }
    }
}

int main(int argc, char **argv) {
    MPI_Datatype sparse;
    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Type_create_resized(MPI_CHAR, 0, 3, &sparse));
    OK(MPI_Type_commit(&sparse));
    for (int i = 0; i < SHAPES; i++) {
        between_two(shapes[i], MPI_CHAR);
        between_two(shapes[i], sparse);
        with_itself(shapes[i]);
    }
    without_partitions();
    OK(MPI_Type_free(&sparse));
    OK(MPI_Finalize());
    return verdict();
}
