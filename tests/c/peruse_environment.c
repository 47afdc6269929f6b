/* PERUSE_Query_environment gives each variable that steers the library once, with the value in force (PERUSE 2.0 section 5.2.5).
 * RANKS: 1 2
 * ENV: PERUSAL_EAGER_LIMIT=1000
 * ENV: PERUSAL_COPY_ENGINE=chunks
 */
#include "check.h"
#include <peruse.h>

int main(int argc, char **argv)
{
    int size, eager = 0, engine = 0, spin = 0;
    char **env;
    MPI_Init(&argc, &argv);
    OK(PERUSE_Init());
    OK(PERUSE_Query_environment(&size, &env));
    CHECK(size > 3);
    for (int i = 0; i < size; i++) {
        char *equals = strchr(env[i], '=');
        CHECK(strncmp(env[i], "PERUSAL_", 8) == 0 && equals != NULL && equals[1] != 0);
        eager += strcmp(env[i], "PERUSAL_EAGER_LIMIT=1000") == 0;
        engine += strcmp(env[i], "PERUSAL_COPY_ENGINE=chunks") == 0;
        spin += strncmp(env[i], "PERUSAL_SPIN_US=", 16) == 0;
        for (int j = 0; j < i; j++) CHECK(strncmp(env[i], env[j], (size_t)(equals - env[i]) + 1) != 0);
    }
    SAME(eager, 1);
    SAME(engine, 1);
    SAME(spin, 1);
    MPI_Finalize();
    return verdict();
}
