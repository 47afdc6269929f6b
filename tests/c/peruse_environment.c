/* PERUSE_Query_environment gives each variable that steers the library once, with the value in force at initialisation
 * (PERUSE 2.0 section 5.2.5); what a tool changes later, it reads as a control variable.
 * RANKS: 1 2
 * ENV: PERUSAL_EAGER_LIMIT=1000
 * ENV: PERUSAL_COPY_ENGINE=chunks
 * ENV: PERUSAL_INITIAL_ERRHANDLER=mpi_errors_return
 * OPTIONS: -initial-errhandler mpi_errors_return
 */
#include "check.h"
#include <peruse.h>

int main(int argc, char **argv)
{
    int size, again, index, count, provided, eager = 0, engine = 0, spin = 0, handler = 0;
    unsigned long limit = 777;
    char **env, **later;
    MPI_T_cvar_handle handle;
    MPI_Init(&argc, &argv);
    OK(PERUSE_Init());
    OK(PERUSE_Query_environment(&size, &env));
    CHECK(size > 3);
    for (int i = 0; i < size; i++) {
        char *equals = strchr(env[i], '=');
        CHECK(strncmp(env[i], "PERUSAL_", 8) == 0 && equals != NULL && equals[1] != 0);
        eager += strcmp(env[i], "PERUSAL_EAGER_LIMIT=1000") == 0;
        engine += strcmp(env[i], "PERUSAL_COPY_ENGINE=chunks") == 0;
        handler += strcmp(env[i], "PERUSAL_INITIAL_ERRHANDLER=mpi_errors_return") == 0;
        spin += strncmp(env[i], "PERUSAL_SPIN_US=", 16) == 0;
        for (int j = 0; j < i; j++) CHECK(strncmp(env[i], env[j], (size_t)(equals - env[i]) + 1) != 0);
    }
    SAME(eager, 1);
    SAME(engine, 1);
    SAME(spin, 1);
    SAME(handler, 1);
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_cvar_get_index("eager_limit", &index));
    OK(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count));
    OK(MPI_T_cvar_write(handle, &limit));
    OK(PERUSE_Query_environment(&again, &later));
    SAME(again, size);
    for (int i = 0; i < size; i++) SAME(strcmp(env[i], later[i]), 0);
    limit = 0;
    OK(MPI_T_cvar_read(handle, &limit));
    SAME(limit, 777);
    OK(MPI_T_cvar_handle_free(&handle));
    OK(MPI_T_finalize());
    MPI_Finalize();
    return verdict();
}
