/* When too many handles or sessions are alive, the next is refused by name, and there is room again when one is freed.
 */
#include "check.h"

#define MOST 65536

int main(void) {
    int provided, count;
    static MPI_T_cvar_handle cvars[MOST];
    static MPI_T_pvar_handle pvars[MOST];
    static MPI_T_pvar_session sessions[MOST];
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    for (int i = 0; i < MOST; i++) {
        OK(MPI_T_cvar_handle_alloc(0, NULL, &cvars[i], &count));
        OK(MPI_T_pvar_session_create(&sessions[i]));
        OK(MPI_T_pvar_handle_alloc(sessions[0], 3, NULL, &pvars[i], &count));
    }
    MPI_T_cvar_handle cvar;
    MPI_T_pvar_handle pvar;
    MPI_T_pvar_session session;
    SAME(MPI_T_cvar_handle_alloc(0, NULL, &cvar, &count), MPI_T_ERR_OUT_OF_HANDLES);
    SAME(MPI_T_pvar_handle_alloc(sessions[1], 3, NULL, &pvar, &count), MPI_T_ERR_OUT_OF_HANDLES);
    SAME(MPI_T_pvar_session_create(&session), MPI_T_ERR_OUT_OF_SESSIONS);
    OK(MPI_T_cvar_handle_free(&cvars[7]));
    OK(MPI_T_cvar_handle_alloc(0, NULL, &cvar, &count));
    OK(MPI_T_pvar_session_free(&sessions[0]));
    OK(MPI_T_pvar_session_create(&session));
    OK(MPI_T_pvar_handle_alloc(session, 3, NULL, &pvar, &count));
    OK(MPI_T_finalize());
    return verdict();
}
