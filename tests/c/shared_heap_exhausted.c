/* When the shared heap is exhausted, MPI_Alloc_mem takes ordinary memory, and a performance variable says how often;
 * what was freed can be had again; alignments are kept in either.
 * RANKS: 2
 * ENV: PERUSAL_SHARED_HEAP=1048576
 */
#include "check.h"
#include <stdint.h>

static MPI_T_pvar_session session;

static unsigned long long count(const char *name)
{
    int index, elements;
    unsigned long long value = 0;
    MPI_T_pvar_handle handle;
    OK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &elements));
    OK(MPI_T_pvar_start(session, handle));
    /* What was counted before it was started is not in it, so a handle for each time would be in vain. */
    OK(MPI_T_pvar_read(session, handle, &value));
    OK(MPI_T_pvar_handle_free(session, &handle));
    return value;
}

int main(int argc, char **argv)
{
    enum { BLOCK = 200000, MANY = 8 };
    int rank, provided, index, elements, level;
    unsigned long long shared = 0, ordinary = 0;
    char *blocks[MANY], *again;
    MPI_T_pvar_handle handles[2];
    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    OK(MPI_T_pvar_session_create(&session));
    (void)level;
    const char *names[] = {"allocations_shared", "allocations_ordinary"};
    for (int i = 0; i < 2; i++) {
        SAME(count(names[i]), 0);
        OK(MPI_T_pvar_get_index(names[i], MPI_T_PVAR_CLASS_COUNTER, &index));
        OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handles[i], &elements));
        OK(MPI_T_pvar_start(session, handles[i]));
    }
    /* One rank after the other: the heap is the job's. 15 granules of 64 KiB, four for each block. */
    if (rank == 0) {
        for (int i = 0; i < MANY; i++) {
            OK(MPI_Alloc_mem(BLOCK, MPI_INFO_NULL, &blocks[i]));
            memset(blocks[i], i, BLOCK);
        }
        OK(MPI_T_pvar_read(session, handles[0], &shared));
        OK(MPI_T_pvar_read(session, handles[1], &ordinary));
        SAME(shared, 3);
        SAME(ordinary, MANY - 3);
        for (int i = 0; i < MANY; i++) {
            for (int j = 0; j < BLOCK; j++) CHECK(blocks[i][j] == i);
            OK(MPI_Send(blocks[i], BLOCK, MPI_BYTE, 1, i, MPI_COMM_WORLD));
        }
        OK(MPI_Free_mem(blocks[1]));
        OK(MPI_Alloc_mem(BLOCK, MPI_INFO_NULL, &again));
        CHECK(again == blocks[1]);
        OK(MPI_Free_mem(again));
        CLASS(MPI_Free_mem(again), MPI_ERR_BASE);
        for (int i = 0; i < MANY; i++)
            if (i != 1) OK(MPI_Free_mem(blocks[i]));
        MPI_Info info;
        OK(MPI_Info_create(&info));
        for (int align = 1; align <= 8 << 20; align *= 2) {
            char text[20];
            snprintf(text, sizeof text, "%d", align);
            OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", text));
            OK(MPI_Alloc_mem(20000, info, &again));
            SAME((uintptr_t)again % (unsigned)align, 0);
            memset(again, 1, 20000);
            OK(MPI_Free_mem(again));
        }
        OK(MPI_Info_free(&info));
    } else {
        again = malloc(BLOCK);
        for (int i = 0; i < MANY; i++) {
            OK(MPI_Recv(again, BLOCK, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(again[0] == i && again[BLOCK - 1] == i);
        }
        free(again);
    }
    OK(MPI_T_pvar_session_free(&session));
    MPI_T_finalize();
    MPI_Finalize();
    return verdict();
}
