/* Ends that programs seldom come to: packed sizes beyond int, long chains of datatypes, callbacks of generalized
 * requests that fail, buffers whose size is no int.
 * RANKS: 1
 */
#include "check.h"

static void packed_sizes(void) {
    MPI_Datatype large;
    MPI_Count wide;
    int size = 0;
    OK(MPI_Type_contiguous(1 << 20, MPI_DOUBLE, &large));
    OK(MPI_Type_commit(&large));
    OK(MPI_Pack_size(1 << 10, large, MPI_COMM_WORLD, &size));
    SAME(size, MPI_UNDEFINED);
    OK(MPI_Pack_size(10, large, MPI_COMM_WORLD, &size));
    SAME(size, 10 << 23);
    OK(MPI_Pack_size_c(1 << 10, large, MPI_COMM_WORLD, &wide));
    SAME(wide, 1LL << 33);
    OK(MPI_Type_free(&large));
}

/* Each type is made of the one before, which is freed. */
static void chains(void) {
    MPI_Datatype type, next;
    int from[4] = {1, 2, 3, 4}, to[4] = {0};
    OK(MPI_Type_contiguous(1, MPI_INT, &type));
    for (int i = 0; i < 300000; i++) {
        if (i % 2) OK(MPI_Type_dup(type, &next));
        else OK(MPI_Type_create_resized(type, 0, 4 + i % 4 * 4, &next));
        OK(MPI_Type_free(&type));
        type = next;
    }
    OK(MPI_Type_commit(&type));
    OK(MPI_Sendrecv(from, 1, type, 0, 0, to, 1, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    SAME(to[0], 1);
    OK(MPI_Type_free(&type));
}

static int query_fails, free_fails, freed;

static int query(void *extra, MPI_Status *status) {
    (void)extra;
    MPI_Status_set_elements(status, MPI_INT, 0);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = status->MPI_TAG = 0;
    return query_fails;
}

static int free_it(void *extra) {
    (void)extra;
    freed++;
    return free_fails;
}

static int cancel(void *extra, int complete) {
    (void)extra, (void)complete;
    return MPI_SUCCESS;
}

static MPI_Request begin(int of_query, int of_free) {
    MPI_Request request;
    query_fails = of_query;
    free_fails = of_free;
    freed = 0;
    OK(MPI_Grequest_start(query, free_it, cancel, NULL, &request));
    return request;
}

static void callbacks(void) {
    MPI_Request request = begin(MPI_ERR_ARG, MPI_SUCCESS), same;
    OK(MPI_Grequest_complete(request));
    CLASS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    request = begin(MPI_ERR_ARG, MPI_ERR_IO);
    OK(MPI_Grequest_complete(request));
    CLASS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_IO);
    SAME(freed, 1);
    request = begin(MPI_SUCCESS, MPI_ERR_IO);
    OK(MPI_Grequest_complete(request));
    CLASS(MPI_Request_free(&request), MPI_ERR_IO);
    CHECK(request == MPI_REQUEST_NULL);
    SAME(freed, 1);
    same = request = begin(MPI_SUCCESS, MPI_ERR_IO);
    OK(MPI_Request_free(&same));
    SAME(freed, 0);
    CLASS(MPI_Grequest_complete(request), MPI_ERR_IO);
    SAME(freed, 1);
    CLASS(MPI_Grequest_complete(request), MPI_ERR_REQUEST);
}

/* A function that looks at a status, and leaves the request, fails as the query function says, too. */
static void looks(void) {
    MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status statuses[3];
    int over = 0, index = 7, count = 0, indices[3], received, code, mine;
    OK(MPI_Add_error_code(MPI_ERR_ARG, &mine));
    requests[1] = begin(mine, MPI_SUCCESS);
    OK(MPI_Request_get_status(requests[1], &over, MPI_STATUS_IGNORE));
    SAME(over, 0);
    OK(MPI_Grequest_complete(requests[1]));
    SAME(MPI_Request_get_status(requests[1], &over, MPI_STATUS_IGNORE), mine);
    SAME(over, 1);
    over = 0;
    SAME(MPI_Request_get_status_any(2, requests, &index, &over, MPI_STATUS_IGNORE), mine);
    SAME(over, 1);
    SAME(index, 1);
    /* Beside it one that is well and one that has failed, whose error is the wait's to give. */
    OK(MPI_Irecv(&received, 0, MPI_INT, 0, 5, MPI_COMM_SELF, &requests[2]));
    OK(MPI_Send(&count, 1, MPI_INT, 0, 5, MPI_COMM_SELF));
    OK(MPI_Request_get_status(requests[2], &over, MPI_STATUS_IGNORE));
    SAME(over, 1);
    over = 0;
    for (int i = 0; i < 3; i++) statuses[i].MPI_ERROR = 77;
    CLASS(MPI_Request_get_status_all(3, requests, &over, statuses), MPI_ERR_IN_STATUS);
    SAME(over, 1);
    SAME(statuses[0].MPI_ERROR, MPI_SUCCESS);
    SAME(statuses[1].MPI_ERROR, mine);
    OK(MPI_Error_class(statuses[2].MPI_ERROR, &code));
    SAME(code, MPI_ERR_TRUNCATE);
    CLASS(MPI_Request_get_status_some(3, requests, &count, indices, statuses), MPI_ERR_IN_STATUS);
    SAME(count, 2);
    SAME(indices[0], 1);
    SAME(indices[1], 2);
    SAME(statuses[0].MPI_ERROR, mine);
    CLASS(MPI_Request_get_status_all(2, requests, &over, MPI_STATUSES_IGNORE), MPI_ERR_IN_STATUS);
    query_fails = MPI_SUCCESS;
    OK(MPI_Request_get_status_all(3, requests, &over, statuses));
    OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    CLASS(MPI_Wait(&requests[2], MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    OK(MPI_Remove_error_code(mine));
}

static void large_buffer(void) {
    const MPI_Count bytes = 3LL << 30;
    char *buffer = malloc((size_t)bytes);
    void *back = NULL;
    MPI_Count given = 0;
    int size = 0;
    if (!buffer) return;
    OK(MPI_Buffer_attach_c(buffer, bytes));
    OK(MPI_Buffer_detach(&back, &size));
    CHECK(back == buffer);
    SAME(size, MPI_UNDEFINED);
    OK(MPI_Buffer_attach_c(buffer, bytes));
    OK(MPI_Buffer_detach_c(&back, &given));
    CHECK(back == buffer);
    SAME(given, bytes);
    free(buffer);
}

int main(int argc, char **argv) {
    OK(MPI_Init(&argc, &argv));
    errors_return();
    packed_sizes();
    chains();
    callbacks();
    looks();
    large_buffer();
    MPI_Finalize();
    return verdict();
}
