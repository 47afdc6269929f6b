/* Ends that programs seldom come to: packed sizes beyond int, long chains of datatypes, callbacks of generalized requests that fail, buffers whose
 * size is no int.
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
    large_buffer();
    MPI_Finalize();
    return verdict();
}
