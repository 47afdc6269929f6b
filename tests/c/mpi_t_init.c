/* MPI_T may be used before MPI_Init and after MPI_Finalize, is initialised as often as it is finalized, and every
 * function says MPI_T_ERR_NOT_INITIALIZED outside of that time.
 */
#include "check.h"

static void not_initialised(void) {
    int n, index = -1;
    size_t size = 0;
    void *handle = NULL;
    MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
    MPI_T_cvar_handle cvar = MPI_T_CVAR_HANDLE_NULL;
    MPI_T_pvar_handle pvar = MPI_T_PVAR_HANDLE_NULL;
    (void)size; (void)handle;
#define NOT(call) SAME(call, MPI_T_ERR_NOT_INITIALIZED)
    NOT(MPI_T_cvar_get_num(&n));
    NOT(MPI_T_cvar_get_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    NOT(MPI_T_cvar_get_index("eager_limit", &index));
    NOT(MPI_T_cvar_handle_alloc(0, NULL, &cvar, &n));
    NOT(MPI_T_cvar_handle_free(&cvar));
    NOT(MPI_T_cvar_read(cvar, &n));
    NOT(MPI_T_cvar_write(cvar, &n));
    NOT(MPI_T_pvar_get_num(&n));
    NOT(MPI_T_pvar_get_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    NOT(MPI_T_pvar_get_index("sleeps", MPI_T_PVAR_CLASS_COUNTER, &index));
    NOT(MPI_T_pvar_session_create(&session));
    NOT(MPI_T_pvar_session_free(&session));
    NOT(MPI_T_pvar_handle_alloc(session, 0, NULL, &pvar, &n));
    NOT(MPI_T_pvar_handle_free(session, &pvar));
    NOT(MPI_T_pvar_start(session, pvar));
    NOT(MPI_T_pvar_stop(session, pvar));
    NOT(MPI_T_pvar_read(session, pvar, &n));
    NOT(MPI_T_pvar_write(session, pvar, &n));
    NOT(MPI_T_pvar_reset(session, pvar));
    NOT(MPI_T_pvar_readreset(session, pvar, &n));
    NOT(MPI_T_enum_get_info(MPI_T_ENUM_NULL, &n, NULL, NULL));
    NOT(MPI_T_enum_get_item(MPI_T_ENUM_NULL, 0, &n, NULL, NULL));
    NOT(MPI_T_category_get_num(&n));
    NOT(MPI_T_category_get_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    NOT(MPI_T_category_get_index("perusal", &index));
    NOT(MPI_T_category_get_cvars(0, 1, &index));
    NOT(MPI_T_category_get_pvars(0, 1, &index));
    NOT(MPI_T_category_get_categories(0, 1, &index));
    NOT(MPI_T_category_changed(&n));
    NOT(MPI_T_finalize());
    SAME(index, -1);
}

static int cvars(void) {
    int n = -1;
    OK(MPI_T_cvar_get_num(&n));
    return n;
}

int main(int argc, char **argv) {
    int provided = -1, n = 0;
    MPI_T_pvar_session session;
    MPI_T_cvar_handle cvar;

    not_initialised();
    SAME(MPI_T_init_thread(MPI_THREAD_SINGLE - 1, &provided), MPI_T_ERR_INVALID);
    SAME(MPI_T_init_thread(12345, &provided), MPI_T_ERR_INVALID);
    SAME(MPI_T_init_thread(MPI_THREAD_SINGLE, NULL), MPI_T_ERR_INVALID);
    not_initialised();

    /* Nested, and around MPI_Init. */
    const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_MULTIPLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED};
    for (int i = 0; i < 4; i++) {
        OK(MPI_T_init_thread(levels[i], &provided));
        SAME(provided, levels[i]);
    }
    int before = cvars();
    CHECK(before > 0);
    OK(MPI_T_finalize());
    OK(MPI_T_finalize());
    OK(MPI_T_finalize());
    SAME(cvars(), before);
    OK(MPI_Init(&argc, &argv));
    SAME(cvars(), before);

    /* Whatever is left of sessions and handles ends with the last MPI_T_finalize. */
    OK(MPI_T_pvar_session_create(&session));
    OK(MPI_T_cvar_handle_alloc(0, NULL, &cvar, &n));
    OK(MPI_T_finalize());
    not_initialised();
    OK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
    MPI_T_pvar_session stale = session;
    SAME(MPI_T_pvar_session_free(&stale), MPI_T_ERR_INVALID_SESSION);
    SAME(MPI_T_cvar_handle_free(&cvar), MPI_T_ERR_INVALID_HANDLE);

    OK(MPI_Finalize());
    SAME(cvars(), before);
    OK(PMPI_T_cvar_get_num(&n));
    SAME(n, before);
    OK(MPI_T_finalize());
    not_initialised();
    return verdict();
}
