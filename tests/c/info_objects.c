/* Info objects keep pairs in order, cut values as asked, and refuse misuse by class (MPI 5.0 chapter 10).
 * RANKS: 1
 */
#include "check.h"

#include <unistd.h>

static void values(void) {
    MPI_Info info;
    char value[MPI_MAX_INFO_VAL], small[4];
    int flag, length, keys;
    OK(MPI_Info_create(&info));
    CHECK(info != MPI_INFO_NULL);
    CHECK(MPI_Info_fromint(MPI_Info_toint(info)) == info);
    OK(MPI_Info_set(info, "first", "one"));
    OK(MPI_Info_set(info, "second", "two"));
    OK(MPI_Info_set(info, "first", "longer"));
    OK(MPI_Info_get_nkeys(info, &keys));
    SAME(keys, 2);
    char key[MPI_MAX_INFO_KEY];
    OK(MPI_Info_get_nthkey(info, 0, key));
    CHECK(strcmp(key, "first") == 0);
    OK(MPI_Info_get_nthkey(info, 1, key));
    CHECK(strcmp(key, "second") == 0);

    length = sizeof small;
    OK(MPI_Info_get_string(info, "first", &length, small, &flag));
    SAME(flag, 1);
    SAME(length, 7);
    CHECK(strcmp(small, "lon") == 0);
    length = 0;
    OK(MPI_Info_get_string(info, "first", &length, NULL, &flag));
    SAME(length, 7);
    length = 5;
    OK(MPI_Info_get_string(info, "none", &length, value, &flag));
    SAME(flag, 0);
    SAME(length, 5);

    memset(value, 'z', sizeof value);
    OK(MPI_Info_get(info, "first", 3, value, &flag));
    SAME(flag, 1);
    CHECK(memcmp(value, "lon\0z", 5) == 0);
    OK(MPI_Info_get_valuelen(info, "first", &length, &flag));
    SAME(length, 6);
    length = 99;
    OK(MPI_Info_get_valuelen(info, "none", &length, &flag));
    SAME(flag, 0);
    SAME(length, 99);

    MPI_Info copy;
    OK(MPI_Info_dup(info, &copy));
    OK(MPI_Info_delete(info, "first"));
    OK(MPI_Info_get_nkeys(info, &keys));
    SAME(keys, 1);
    OK(MPI_Info_get_nkeys(copy, &keys));
    SAME(keys, 2);
    OK(MPI_Info_free(&copy));
    CHECK(copy == MPI_INFO_NULL);
    OK(MPI_Info_free(&info));
}

static void misuse(void) {
    MPI_Info info, stale;
    char text[2 * MPI_MAX_INFO_VAL];
    int flag, count, three = 3;
    OK(MPI_Info_create(&info));
    memset(text, 'k', sizeof text);
    text[MPI_MAX_INFO_KEY] = 0;
    CLASS(MPI_Info_set(info, text, "v"), MPI_ERR_INFO_KEY);
    CLASS(MPI_Info_set(info, "", "v"), MPI_ERR_INFO_KEY);
    CLASS(MPI_Info_set(info, NULL, "v"), MPI_ERR_INFO_KEY);
    CLASS(MPI_Info_set(info, "k", NULL), MPI_ERR_INFO_VALUE);
    text[MPI_MAX_INFO_KEY] = 'k';
    text[MPI_MAX_INFO_VAL] = 0;
    CLASS(MPI_Info_set(info, "k", text), MPI_ERR_INFO_VALUE);
    CLASS(MPI_Info_delete(info, "none"), MPI_ERR_INFO_NOKEY);
    CLASS(MPI_Info_get_nthkey(info, 0, text), MPI_ERR_ARG);
    CLASS(MPI_Info_get_nthkey(info, -1, text), MPI_ERR_ARG);
    /* Whether there is such a key or not. */
    CLASS(MPI_Info_get(info, "none", 3, NULL, &flag), MPI_ERR_ARG);
    CLASS(MPI_Info_get_string(info, "none", &three, NULL, &flag), MPI_ERR_ARG);
    CLASS(MPI_Info_get_nkeys(info, NULL), MPI_ERR_ARG);
    CLASS(MPI_Info_get_nkeys(MPI_INFO_NULL, &count), MPI_ERR_INFO);
    stale = info;
    OK(MPI_Info_free(&info));
    CLASS(MPI_Info_free(&info), MPI_ERR_INFO);
    CLASS(MPI_Info_get_nkeys(stale, &count), MPI_ERR_INFO);
    CLASS(MPI_Info_set(MPI_INFO_ENV, "k", "v"), MPI_ERR_INFO);
    stale = MPI_INFO_ENV;
    CLASS(MPI_Info_free(&stale), MPI_ERR_INFO);
    CLASS(MPI_Info_get(MPI_INFO_ENV, "wdir", -1, text, &flag), MPI_ERR_ARG);
}

static void environment(int argc, char **argv) {
    MPI_Info info;
    char value[MPI_MAX_INFO_VAL], again[MPI_MAX_INFO_VAL];
    int flag, length = sizeof value;
    OK(MPI_Info_get_string(MPI_INFO_ENV, "command", &length, value, &flag));
    SAME(flag, 1);
    CHECK(strcmp(value, argv[0]) == 0);
    length = sizeof value;
    OK(MPI_Info_get_string(MPI_INFO_ENV, "wdir", &length, value, &flag));
    SAME(flag, 1);
    OK(MPI_Info_create_env(argc, argv, &info));
    length = sizeof again;
    OK(MPI_Info_get_string(info, "wdir", &length, again, &flag));
    CHECK(strcmp(value, again) == 0);
    OK(MPI_Info_set(info, "wdir", "elsewhere"));
    OK(MPI_Info_free(&info));
    /* It says how the program was started, not what it has done since. */
    SAME(chdir("/"), 0);
    length = sizeof again;
    OK(MPI_Info_get_string(MPI_INFO_ENV, "wdir", &length, again, &flag));
    CHECK(strcmp(value, "/") != 0 && strcmp(value, again) == 0);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    errors_return();
    values();
    misuse();
    environment(argc, argv);
    MPI_Finalize();
    return verdict();
}
