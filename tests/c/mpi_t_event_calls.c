/* Calls tell their begin and their end, by name, nested as they are; enquiries tell nothing;
 * a call that fails ends too.
 * RANKS: 2
 */
#include "mpi_t_event.h"
#include <stdlib.h>

enum { MOST = 64 };
static int ends[] = {0, 1}, elements[2][2], rank;
static char events[MOST][64];
static int count, depth, wrong;
static char inside[8][64];

static void on_call(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    int end = *(int *)data, number = -1;
    uint64_t name = 0;
    (void)handle, (void)level;
    OK(MPI_T_event_read(instance, elements[end][0], &number));
    OK(MPI_T_event_read(instance, elements[end][1], &name));
    CHECK(number >= 0 && name != 0);
    const char *text = (const char *)(uintptr_t)name;
    if (end) {
        wrong += depth == 0 || strcmp(inside[depth - 1], text) != 0;
        depth -= depth > 0;
    } else if (depth < 8) {
        snprintf(inside[depth++], sizeof inside[0], "%s", text);
    }
    if (count < MOST) snprintf(events[count++], sizeof events[0], "%s%s", end ? "/" : "", text);
}

static void expect(const char *what, int number, const char *const *names)
{
    int same = count == number;
    for (int i = 0; i < number && same; i++) same = strcmp(events[i], names[i]) == 0;
    if (!same) {
        fprintf(stderr, "rank %d, %s: events", rank, what);
        for (int i = 0; i < count; i++) fprintf(stderr, " %s", events[i]);
        fprintf(stderr, "\n");
        failures++;
    }
    SAME(depth, 0);
    SAME(wrong, 0);
    count = 0;
}
#define EXPECT(what, ...) \
    do { \
        const char *names[] = {__VA_ARGS__}; \
        expect(what, sizeof names / sizeof *names, names); \
    } while (0)
#define ONCE(name) EXPECT(name, name, "/" name)

/* A copy function of an attribute calls MPI within MPI. */
static int copy(MPI_Comm comm, int keyval, void *extra, void *value, void *out, int *flag)
{
    (void)keyval, (void)extra, (void)value, (void)out;
    MPI_Group group;
    OK(MPI_Comm_group(comm, &group));
    OK(MPI_Group_free(&group));
    *flag = 0;
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    static const char *types_of_calls[] = {"PERUSAL_CALL_BEGIN", "PERUSAL_CALL_END"};
    MPI_T_event_registration handles[2];
    MPI_Request requests[2];
    MPI_Comm made;
    int word = 0, got = 0, flag, size, key;
    initialise_tools();
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int end = 0; end < 2; end++) {
        int type = type_of(types_of_calls[end]);
        elements[end][0] = element_of(type, "function"), elements[end][1] = element_of(type, "function_name");
        handles[end] = listen_to(type, NULL, 0, on_call, &ends[end]);
    }
    count = 0;
    if (rank == 0) {
        OK(MPI_Send(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD));
        ONCE("MPI_Send");
        OK(MPI_Ssend_c(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD));
        ONCE("MPI_Ssend");
    } else {
        OK(MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        ONCE("MPI_Recv");
        OK(MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        ONCE("MPI_Recv");
    }
    OK(MPI_Irecv(&got, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isend(&word, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    EXPECT("requests", "MPI_Irecv", "/MPI_Irecv", "MPI_Isend", "/MPI_Isend", "MPI_Waitall", "/MPI_Waitall");
    OK(MPI_Irecv(&got, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE));
    SAME(flag, 0);
    OK(MPI_Cancel(&requests[0]));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    EXPECT("cancel", "MPI_Irecv", "/MPI_Irecv", "MPI_Test", "/MPI_Test", "MPI_Cancel", "/MPI_Cancel", "MPI_Wait", "/MPI_Wait");
    /* Enquiries. */
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    (void)MPI_Wtime();
    SAME(count, 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    ONCE("MPI_Barrier");
    OK(MPI_Allreduce(&word, &got, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    ONCE("MPI_Allreduce");
    OK(MPI_Ibcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    EXPECT("Ibcast", "MPI_Ibcast", "/MPI_Ibcast", "MPI_Wait", "/MPI_Wait");
    /* A call that fails. */
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    count = 0;
    CLASS(MPI_Send(&word, 1, MPI_INT, size + 3, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
    ONCE("MPI_Send");
    /* Calls within a call. */
    OK(MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &key, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_WORLD, key, &key));
    count = 0;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &made));
    EXPECT("dup", "MPI_Comm_dup", "MPI_Comm_group", "/MPI_Comm_group", "MPI_Group_free", "/MPI_Group_free", "/MPI_Comm_dup");
    OK(MPI_Comm_free(&made));
    OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, key));
    OK(MPI_Comm_free_keyval(&key));
    for (int end = 0; end < 2; end++) OK(MPI_T_event_handle_free(handles[end], NULL, NULL));
    count = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    SAME(count, 0);
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return verdict();
}
