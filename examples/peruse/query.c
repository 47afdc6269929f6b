/* query.c: what a tool can ask of this MPI library (PERUSE 2.0 §9.1.1).
 *
 * Run it on any number of ranks; rank 0 prints. */
#include "check.h"
#include <peruse.h>
#include <string.h>

static const char *const specified[] = {
    "PERUSE_COMM_REQ_ACTIVATE",
    "PERUSE_COMM_REQ_MATCH_UNEX",
    "PERUSE_COMM_REQ_INSERT_IN_POSTED_Q",
    "PERUSE_COMM_REQ_REMOVE_FROM_POSTED_Q",
    "PERUSE_COMM_REQ_XFER_BEGIN",
    "PERUSE_COMM_REQ_XFER_END",
    "PERUSE_COMM_REQ_COMPLETE",
    "PERUSE_COMM_REQ_NOTIFY",
    "PERUSE_COMM_MSG_ARRIVED",
    "PERUSE_COMM_MSG_INSERT_IN_UNEX_Q",
    "PERUSE_COMM_MSG_REMOVE_FROM_UNEX_Q",
    "PERUSE_COMM_MSG_MATCH_POSTED_REQ",
    "PERUSE_COMM_SEARCH_POSTED_Q_BEGIN",
    "PERUSE_COMM_SEARCH_POSTED_Q_END",
    "PERUSE_COMM_SEARCH_UNEX_QUEUE_BEGIN",
    "PERUSE_COMM_SEARCH_UNEX_Q_END",
};

static const char *scope_name(int scope)
{
    switch (scope) {
    case PERUSE_PER_COMM: return "PERUSE_PER_COMM";
    case PERUSE_PER_TAG: return "PERUSE_PER_TAG";
    case PERUSE_PER_SOURCE: return "PERUSE_PER_SOURCE";
    case PERUSE_PER_PEER: return "PERUSE_PER_PEER";
    case PERUSE_GLOBAL: return "PERUSE_GLOBAL";
    default: return "unknown";
    }
}

static void print_environment(void)
{
    int size = -1;
    char **variable = NULL;
    CHECK(PERUSE_Query_environment(&size, &variable));
    printf("environment variables=%d\n", size);
    for (int i = 0; i < size; i++) printf("variable %s\n", variable[i]);
}

static void print_supported(void)
{
    int supported = -1, *event = NULL;
    char **name = NULL;
    CHECK(PERUSE_Query_supported_events(&supported, &name, &event));
    printf("supported events=%d\n", supported);
    for (int i = 0; i < supported; i++) {
        char *back = NULL;
        CHECK(PERUSE_Query_event_name(event[i], &back));
        printf("event %s number=%d round_trip=%s\n", name[i], event[i], strcmp(back, name[i]) == 0 ? "yes" : "no");
    }
}

static void print_specified(void)
{
    for (size_t i = 0; i < sizeof specified / sizeof *specified; i++) {
        int event = -1;
        int result = PERUSE_Query_event(specified[i], &event);
        printf("specified %s number=%d %s\n", specified[i], event, result == PERUSE_SUCCESS ? "supported" : "unsupported");
    }
    int event = -1;
    int result = PERUSE_Query_event("PERUSE_NO_SUCH_EVENT", &event);
    printf("unknown_event result_is_error=%s event_is_invalid=%s\n", result == PERUSE_ERR_EVENT ? "yes" : "no",
           event == PERUSE_EVENT_INVALID ? "yes" : "no");
}

int main(int argc, char **argv)
{
    int before = PERUSE_Init();
    MPI_Init(&argc, &argv);
    int rank, scope = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CHECK(PERUSE_Init());
    CHECK(PERUSE_Init()); /* every tool may call it; only the first call counts */
    if (rank == 0) {
        printf("init_before_mpi_is_error=%s\n", before == PERUSE_ERR_MPI_INIT ? "yes" : "no");
        print_environment();
        print_supported();
        print_specified();
        CHECK(PERUSE_Query_queue_event_scope(&scope));
        printf("queue_scope %s\n", scope_name(scope));
    }
    MPI_Finalize();
    return 0;
}
