/* Sessions before, beside and after the world; error handlers of sessions.
 * RANKS: 1 3
 */
#include "check.h"

static int calls, last;
static MPI_Session seen;

static void handler(MPI_Session *session, int *code, ...) {
    seen = *session;
    MPI_Error_class(*code, &last);
    calls++;
}

static MPI_Comm refused;
static void of_comms(MPI_Comm *comm, int *code, ...) {
    (void)code;
    refused = *comm;
    calls++;
}

/* A communicator of all, which adds up. */
static void use(MPI_Session session) {
    MPI_Group group;
    MPI_Comm comm;
    int rank, size, sum;
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, "use", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Group_free(&group));
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    SAME(sum, size * (size - 1) / 2);
    OK(MPI_Comm_free(&comm));
}

static void expect_phase(int initialised, int finalised) {
    int flag;
    OK(MPI_Initialized(&flag));
    SAME(flag, initialised);
    OK(MPI_Finalized(&flag));
    SAME(flag, finalised);
}

static void handlers(MPI_Session session) {
    MPI_Errhandler mine, comms, got;
    MPI_Session none = MPI_SESSION_NULL;
    MPI_Comm comm;
    MPI_Info bad;
    OK(MPI_Session_create_errhandler(handler, &mine));
    OK(MPI_Session_set_errhandler(session, mine));
    OK(MPI_Session_get_errhandler(session, &got));
    CHECK(got == mine);
    OK(MPI_Errhandler_free(&got));
    CLASS(MPI_Session_get_pset_info(session, "nobody", &bad), MPI_ERR_ARG);
    SAME(calls, 1); SAME(last, MPI_ERR_ARG);
    CHECK(seen == session);
    OK(MPI_Session_call_errhandler(session, MPI_ERR_TAG));
    SAME(calls, 2); SAME(last, MPI_ERR_TAG);
    /* A session that cannot begin tells the handler that it was to have. */
    OK(MPI_Info_create(&bad));
    OK(MPI_Info_set(bad, "thread_level", "MPI_THREAD_NONE"));
    CLASS(MPI_Session_init(bad, MPI_ERRORS_RETURN, &none), MPI_ERR_INFO_VALUE);
    SAME(calls, 2);
    CLASS(MPI_Session_init(bad, mine, &none), MPI_ERR_INFO_VALUE);
    SAME(calls, 3);
    CHECK(seen == MPI_SESSION_NULL && none == MPI_SESSION_NULL);
    OK(MPI_Info_free(&bad));
    OK(MPI_Errhandler_free(&mine));
    /* So does a communicator. */
    OK(MPI_Comm_create_errhandler(of_comms, &comms));
    CLASS(MPI_Comm_create_from_group(MPI_GROUP_NULL, "none", MPI_INFO_NULL, comms, &comm), MPI_ERR_GROUP);
    SAME(calls, 4);
    CHECK(refused == MPI_COMM_NULL && comm == MPI_COMM_NULL);
    /* A handler is for one kind of object. */
    CLASS(MPI_Session_set_errhandler(session, comms), MPI_ERR_ERRHANDLER);
    SAME(calls, 5); SAME(last, MPI_ERR_ERRHANDLER);
    OK(MPI_Errhandler_free(&comms));
    OK(MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN));
    /* A result that is nowhere. */
    CLASS(MPI_Session_get_num_psets(session, MPI_INFO_NULL, NULL), MPI_ERR_ARG);
    SAME(calls, 5);
}

int main(void) {
    MPI_Session before, beside, after, bad = MPI_SESSION_NULL;
    int provided, level, size, flag, sum;
    MPI_Info info;
    /* Before anything is open. */
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "thread_level", "many"));
    CLASS(MPI_Session_init(info, MPI_ERRORS_RETURN, &bad), MPI_ERR_INFO_VALUE);
    CHECK(bad == MPI_SESSION_NULL);
    OK(MPI_Info_free(&info));

    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &before));
    expect_phase(0, 0);
    use(before);
    handlers(before);
    /* A session that asked for no threads does not keep the world from having them. */
    OK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided));
    SAME(provided, MPI_THREAD_MULTIPLE);
    OK(MPI_Query_thread(&level));
    SAME(level, MPI_THREAD_MULTIPLE);
    OK(MPI_Is_thread_main(&flag));
    SAME(flag, 1);
    expect_phase(1, 0);
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    use(before);
    OK(MPI_Allreduce(&(int){1}, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    SAME(sum, size);
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &beside));
    OK(MPI_Session_finalize(&before));
    use(beside);
    OK(MPI_Finalize());
    expect_phase(1, 1);
    use(beside);
    OK(MPI_Session_finalize(&beside));
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &after));
    use(after);
    OK(MPI_Session_finalize(&after));
    expect_phase(1, 1);
    return verdict();
}
