/* Which way long messages from each rank of a communicator are copied, and the times by which that is chosen.
 * RANKS: 2
 * ENV: PERUSAL_COPY_REMAP_AFTER=4294967295
 */
#include "check.h"

/* On some processors times decide of long messages, on others of shorter ones. */
enum { BYTES = 1 << 20, SHORTER = 48 << 10, MESSAGES = 400 };
/* Of these they decide if what the buffer holds has changed since it was last sent; the first 64 take the ring. */
enum { CHANGED = 128 << 10, CHANGES = 70 };

static char data[BYTES];
static MPI_T_pvar_session session;

static MPI_T_pvar_handle bound(const char *name, int class, MPI_Comm comm, int elements) {
    int index, count = -1;
    MPI_T_pvar_handle handle;
    OK(MPI_T_pvar_get_index(name, class, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, &comm, &handle, &count));
    SAME(count, elements);
    return handle;
}

static int route_named(const char *wanted) {
    char name[64];
    int index, number, value, length;
    MPI_T_enum routes;
    OK(MPI_T_pvar_get_index("copy_route", MPI_T_PVAR_CLASS_STATE, &index));
    OK(MPI_T_pvar_get_info(index, NULL, NULL, NULL, NULL, NULL, &routes, NULL, NULL, NULL, NULL, NULL, NULL));
    OK(MPI_T_enum_get_info(routes, &number, NULL, NULL));
    for (int i = 0; i < number; i++) {
        length = sizeof name;
        OK(MPI_T_enum_get_item(routes, i, &value, name, &length));
        if (strcmp(name, wanted) == 0) return value;
    }
    return -1;
}

/* The route of the last message from the other rank, which the times explain. */
static int explained_route(int rank) {
    int routes[2] = {-1, -1};
    unsigned long long ring[2] = {1, 1}, kernel[2] = {1, 1};
    OK(MPI_T_pvar_read(session, bound("copy_route", MPI_T_PVAR_CLASS_STATE, MPI_COMM_WORLD, 2), routes));
    OK(MPI_T_pvar_read(session, bound("copy_time_ring", MPI_T_PVAR_CLASS_LEVEL, MPI_COMM_WORLD, 2), ring));
    OK(MPI_T_pvar_read(session, bound("copy_time_kernel", MPI_T_PVAR_CLASS_LEVEL, MPI_COMM_WORLD, 2), kernel));
    /* Nothing is copied so from the rank itself. */
    SAME(routes[rank], route_named("by_thresholds"));
    SAME(ring[rank], 0);
    SAME(kernel[rank], 0);
    if (routes[1 - rank] == route_named("by_thresholds")) {
        SAME(ring[1 - rank], 0);
        SAME(kernel[1 - rank], 0);
    } else if (routes[1 - rank] == route_named("ring")) {
        CHECK(ring[1 - rank] > 0);
    } else {
        SAME(routes[1 - rank], route_named("kernel"));
        CHECK(kernel[1 - rank] > 0 && ring[1 - rank] >= kernel[1 - rank] / 2);
    }
    return routes[1 - rank];
}

int main(int argc, char **argv) {
    int rank, provided, by_times, index, count, alone = -1;
    unsigned long long in_parts;
    MPI_T_pvar_handle route, counter;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_T_pvar_session_create(&session));
    for (int i = 0; i < MESSAGES; i++) {
        int bytes = i < MESSAGES / 2 ? BYTES : SHORTER;
        if (rank == i % 2) OK(MPI_Send(data, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD));
        else OK(MPI_Recv(data, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    by_times = explained_route(rank) != route_named("by_thresholds");
    OK(MPI_T_pvar_get_index("messages_sent_chunked", MPI_T_PVAR_CLASS_COUNTER, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &counter, &count));
    OK(MPI_T_pvar_start(session, counter));
    for (int i = 0; i < 2 * CHANGES; i++) {
        if (rank == i % 2) {
            memset(data, i + 1, CHANGED);
            OK(MPI_Send(data, CHANGED, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD));
        } else OK(MPI_Recv(data, CHANGED, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    OK(MPI_T_pvar_read(session, counter, &in_parts));
    CHECK(!by_times || in_parts >= 60);
    SAME(explained_route(rank) != route_named("by_thresholds"), by_times);
    route = bound("copy_route", MPI_T_PVAR_CLASS_STATE, MPI_COMM_WORLD, 2);
    OK(MPI_T_pvar_read(session, bound("copy_route", MPI_T_PVAR_CLASS_STATE, MPI_COMM_SELF, 1), &alone));
    SAME(alone, route_named("by_thresholds"));
    CLASS(MPI_T_pvar_start(session, route), MPI_T_ERR_PVAR_NO_STARTSTOP);
    OK(MPI_T_pvar_session_free(&session));
    MPI_Finalize();
    OK(MPI_T_finalize());
    return verdict();
}
