/* Memory given out can be used, is aligned as asked and freed once; the processor has a name;
 * statuses take what they are given.
 * RANKS: 1
 */
#include "check.h"
#include <stdint.h>
#include <unistd.h>

static void memory(void) {
    MPI_Info info;
    char *base, *other;
    OK(MPI_Alloc_mem(1 << 20, MPI_INFO_NULL, &base));
    memset(base, 1, 1 << 20);
    OK(MPI_Alloc_mem(0, MPI_INFO_NULL, &other));
    OK(MPI_Free_mem(other));
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", "4096"));
    OK(MPI_Alloc_mem(100, info, &other));
    SAME((uintptr_t)other % 4096, 0);
    OK(MPI_Info_free(&info));
    OK(MPI_Free_mem(other));
    CLASS(MPI_Free_mem(base + 1), MPI_ERR_BASE);
    OK(MPI_Free_mem(base));
    CLASS(MPI_Free_mem(base), MPI_ERR_BASE);
    OK(MPI_Free_mem(NULL));
    CLASS(MPI_Alloc_mem(-1, MPI_INFO_NULL, &base), MPI_ERR_ARG);
    CLASS(MPI_Alloc_mem((MPI_Aint)1 << 62, MPI_INFO_NULL, &base), MPI_ERR_NO_MEM);
}

static void status(void) {
    MPI_Status status;
    int got, flag;
    memset(&status, 0, sizeof status);
    OK(MPI_Status_set_source(&status, 3));
    OK(MPI_Status_set_tag(&status, 4));
    OK(MPI_Status_set_error(&status, MPI_ERR_TRUNCATE));
    OK(MPI_Status_set_cancelled(&status, 1));
    SAME(status.MPI_SOURCE, 3);
    SAME(status.MPI_TAG, 4);
    SAME(status.MPI_ERROR, MPI_ERR_TRUNCATE);
    OK(MPI_Status_get_source(&status, &got));
    SAME(got, 3);
    OK(MPI_Status_get_tag(&status, &got));
    SAME(got, 4);
    OK(MPI_Status_get_error(&status, &got));
    SAME(got, MPI_ERR_TRUNCATE);
    OK(MPI_Test_cancelled(&status, &flag));
    SAME(flag, 1);
    CLASS(MPI_Status_set_cancelled(MPI_STATUS_IGNORE, 1), MPI_ERR_ARG);
    CLASS(MPI_Test_cancelled(MPI_STATUS_IGNORE, &flag), MPI_ERR_ARG);
}

int main(int argc, char **argv) {
    char name[MPI_MAX_PROCESSOR_NAME], host[MPI_MAX_PROCESSOR_NAME];
    int length;
    MPI_Init(&argc, &argv);
    errors_return();
    memory();
    status();
    OK(MPI_Get_processor_name(name, &length));
    gethostname(host, sizeof host);
    CHECK(strcmp(name, host) == 0);
    SAME(length, strlen(name));
    MPI_Finalize();
    return verdict();
}
