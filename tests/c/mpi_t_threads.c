/* Threads use MPI_T at once, each with sessions, handles and nested initialisations of its own,
 * while the rank sends messages.
 * RANKS: 2
 */
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>

#define THREADS 4

static atomic_int over;

static void *tool(void *unused) {
    int provided, index, count, rounds = 0;
    unsigned long long value;
    unsigned length;
    unsigned long yields;
    while (!atomic_load(&over) || rounds < 20) {
        MPI_T_pvar_session session;
        MPI_T_pvar_handle handles[8];
        MPI_T_cvar_handle cvar;
        OK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
        OK(MPI_T_pvar_session_create(&session));
        const char *names[] = {"posted_recvq_match_attempts", "unexpected_recvq_match_attempts", "messages_sent", "sleeps"};
        for (int i = 0; i < 4; i++) {
            OK(MPI_T_pvar_get_index(names[i], MPI_T_PVAR_CLASS_COUNTER, &index));
            OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handles[i], &count));
        }
        OK(MPI_T_pvar_get_index("posted_recvq_length", MPI_T_PVAR_CLASS_HIGHWATERMARK, &index));
        OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handles[4], &count));
        OK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
        unsigned long long last[5] = {0};
        for (int look = 0; look < 10; look++)
            for (int i = 0; i < 5; i++) {
                OK(MPI_T_pvar_read(session, handles[i], i < 4 ? (void *)&value : &length));
                if (i == 4) value = length;
                CHECK(value >= last[i]);
                last[i] = value;
            }
        OK(MPI_T_pvar_readreset(session, handles[2], &value));
        OK(MPI_T_pvar_reset(session, handles[4]));
        OK(MPI_T_pvar_stop(session, handles[0]));
        OK(MPI_T_cvar_get_index("yields", &index));
        OK(MPI_T_cvar_handle_alloc(index, NULL, &cvar, &count));
        OK(MPI_T_cvar_read(cvar, &yields));
        yields = (yields + 1) % 5;
        /* While MPI_Init makes the engine, it is too late for the one and too early for the other. */
        int code = MPI_T_cvar_write(cvar, &yields);
        CHECK(code == MPI_SUCCESS || code == MPI_T_ERR_CVAR_SET_NOT_NOW);
        OK(MPI_T_cvar_handle_free(&cvar));
        if (rounds % 2) OK(MPI_T_pvar_handle_free(session, &handles[1]));
        OK(MPI_T_pvar_session_free(&session));
        OK(MPI_T_finalize());
        rounds++;
    }
    return unused;
}

int main(int argc, char **argv) {
    int provided, rank;
    pthread_t threads[THREADS];
    OK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, tool, NULL);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 300; i++) {
        int values[8], got[8];
        MPI_Request requests[16];
        for (int j = 0; j < 8; j++) {
            values[j] = i * 8 + j;
            MPI_Isend(&values[j], 1, MPI_INT, 1 - rank, j, MPI_COMM_WORLD, &requests[j]);
        }
        for (int j = 0; j < 8; j++) MPI_Irecv(&got[j], 1, MPI_INT, 1 - rank, j, MPI_COMM_WORLD, &requests[8 + j]);
        MPI_Waitall(16, requests, MPI_STATUSES_IGNORE);
        for (int j = 0; j < 8; j++) SAME(got[j], i * 8 + j);
    }
    atomic_store(&over, 1);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    MPI_Finalize();
    OK(MPI_T_finalize());
    SAME(MPI_T_finalize(), MPI_T_ERR_NOT_INITIALIZED);
    return verdict();
}
