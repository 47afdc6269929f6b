/* Several programs in one spawn, the info keys, and spawns that cannot be.
 * RANKS: 2
 */
#include "check.h"
#include <unistd.h>

static MPI_Info keys(const char *key, const char *value) {
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, key, value));
    return info;
}

/* A child sends its number of program, its world's size, its directory and a variable. */
static int child(char *word, MPI_Comm parent) {
    int *number, flag, about[3];
    char directory[1000] = "";
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &flag));
    about[0] = *number;
    OK(MPI_Comm_size(MPI_COMM_WORLD, &about[1]));
    about[2] = word[0];
    CHECK(getcwd(directory, sizeof directory));
    const char *variable = getenv("SPAWNED") ? getenv("SPAWNED") : "";
    OK(MPI_Send(about, 3, MPI_INT, 0, 0, parent));
    OK(MPI_Send(directory, sizeof directory, MPI_CHAR, 0, 0, parent));
    OK(MPI_Send(variable, strlen(variable) + 1, MPI_CHAR, 0, 0, parent));
    OK(MPI_Comm_disconnect(&parent));
    return verdict();
}

static void hear(MPI_Comm inter, int from, int number, int size, int letter, const char *directory, const char *variable) {
    int about[3];
    char text[1000];
    OK(MPI_Recv(about, 3, MPI_INT, from, 0, inter, MPI_STATUS_IGNORE));
    SAME(about[0], number);
    SAME(about[1], size);
    SAME(about[2], letter);
    OK(MPI_Recv(text, sizeof text, MPI_CHAR, from, 0, inter, MPI_STATUS_IGNORE));
    CHECK(!directory || !strcmp(text, directory));
    OK(MPI_Recv(text, sizeof text, MPI_CHAR, from, 0, inter, MPI_STATUS_IGNORE));
    CHECK(!strcmp(text, variable));
}

static void several(char *self) {
    char *commands[] = {self, self};
    char *first[] = {"a", NULL}, *second[] = {"b", NULL}, **argvs[] = {first, second};
    int counts[] = {1, 2}, codes[3];
    MPI_Info infos[] = {keys("wdir", "/"), keys("env", "SPAWNED=yes\nOTHER=1")};
    MPI_Comm inter;
    OK(MPI_Comm_spawn_multiple(2, commands, argvs, counts, infos, 0, MPI_COMM_SELF, &inter, codes));
    for (int i = 0; i < 3; i++) SAME(codes[i], MPI_SUCCESS);
    hear(inter, 0, 0, 3, 'a', "/", "");
    hear(inter, 1, 1, 3, 'b', NULL, "yes");
    hear(inter, 2, 1, 3, 'b', NULL, "yes");
    OK(MPI_Comm_disconnect(&inter));
    MPI_Info_free(&infos[0]);
    MPI_Info_free(&infos[1]);
}

static void numbered(char *command, const char *key, const char *value, int most, int expected, int number) {
    char *words[] = {"c", NULL};
    int codes[100], size;
    MPI_Info info = keys(key, value);
    MPI_Comm inter;
    OK(MPI_Comm_spawn(command, words, most, info, 0, MPI_COMM_SELF, &inter, codes));
    OK(MPI_Comm_remote_size(inter, &size));
    SAME(size, expected);
    for (int i = 0; i < most; i++) SAME(codes[i] == MPI_SUCCESS, i < expected);
    for (int i = 0; i < expected; i++) hear(inter, i, number, expected, 'c', NULL, "");
    OK(MPI_Comm_disconnect(&inter));
    MPI_Info_free(&info);
}

/* Where there is not room for all, the first program leaves some for the second one. */
static void shared_room(char *self) {
    char *commands[] = {self, self}, *words[] = {"c", NULL}, **argvs[] = {words, words};
    int counts[] = {62, 60}, codes[122], size;
    MPI_Info infos[] = {keys("soft", "1,62"), keys("soft", "60")};
    MPI_Comm inter;
    OK(MPI_Comm_spawn_multiple(2, commands, argvs, counts, infos, 0, MPI_COMM_SELF, &inter, codes));
    OK(MPI_Comm_remote_size(inter, &size));
    SAME(size, 61);
    for (int i = 0; i < 122; i++) SAME(codes[i] == MPI_SUCCESS, i < 1 || i >= 62);
    for (int i = 0; i < size; i++) hear(inter, i, i > 0, size, 'c', NULL, "");
    OK(MPI_Comm_disconnect(&inter));
    MPI_Info_free(&infos[0]);
    MPI_Info_free(&infos[1]);
}

static void one(char *command, const char *key, const char *value, int most, int expected) {
    numbered(command, key, value, most, expected, 0);
}

static void fails(const char *command, const char *key, const char *value, int most, int class) {
    int codes[5000] = {0};
    MPI_Info info = keys(key, value);
    MPI_Comm inter = 0;
    CLASS(MPI_Comm_spawn(command, MPI_ARGV_NULL, most, info, 0, MPI_COMM_SELF, &inter, codes), class);
    CHECK(inter == MPI_COMM_NULL);
    if (class == MPI_ERR_SPAWN)
        for (int i = 0; i < most; i++) SAME(codes[i], MPI_ERR_SPAWN);
    MPI_Info_free(&info);
}

/* A program of several that is not there: those that were started are killed, and their places are for others,
 * whom their deaths do not concern. */
static void after_killed_ones(char *self) {
    char *commands[] = {"sleep", "/no/such/program"}, *words[] = {"100", NULL}, **argvs[] = {words, NULL};
    int counts[] = {3, 2}, codes[5];
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm inter;
    CLASS(MPI_Comm_spawn_multiple(2, commands, argvs, counts, infos, 0, MPI_COMM_SELF, &inter, codes), MPI_ERR_SPAWN);
    /* Their ends are noticed soon; a process looks for deaths when it has slept. */
    usleep(100000);
    char *arguments[] = {"c", NULL};
    OK(MPI_Comm_spawn(self, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, codes));
    usleep(300000);
    hear(inter, 0, 0, 1, 'c', NULL, "");
    OK(MPI_Comm_disconnect(&inter));
}

int main(int argc, char **argv) {
    MPI_Comm parent, inter;
    int rank, codes[4];
    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        int code = child(argv[1], parent);
        MPI_Finalize();
        return code;
    }
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    char self[4096], folder[4096], *name = strrchr(argv[0], '/');
    snprintf(self, sizeof self, "%s", argv[0]);
    snprintf(folder, sizeof folder, "/nowhere:%.*s", (int)(name - argv[0]), argv[0]);
    if (rank == 0) {
        several(self);
        one(name + 1, "path", folder, 2, 2);
        one(self, "soft", "1,3:9:2", 4, 3);
        one(self, "host", "localhost", 1, 1);
        numbered(self, "appnum", " +7 ", 2, 2, 7);
        shared_room(self);
        after_killed_ones(self);
        fails("/no/such/program", "wdir", "/", 2, MPI_ERR_SPAWN);
        fails("no_such_program", "wdir", "/", 2, MPI_ERR_SPAWN);
        fails(self, "wdir", "/no/such/folder", 2, MPI_ERR_SPAWN);
        fails(self, "host", "another.example", 1, MPI_ERR_SPAWN);
        fails(self, "wdir", "/", 5000, MPI_ERR_SPAWN);
        fails(self, "soft", "4:", 4, MPI_ERR_INFO_VALUE);
        fails(self, "soft", "7,9:20", 4, MPI_ERR_SPAWN);
        fails(self, "appnum", "seven", 1, MPI_ERR_INFO_VALUE);
        fails("", "wdir", "/", 1, MPI_ERR_ARG);
        fails(self, "wdir", "/", -1, MPI_ERR_COUNT);
        CLASS(MPI_Comm_spawn(self, NULL, 1, MPI_INFO_NULL, 2, MPI_COMM_SELF, &inter, codes), MPI_ERR_ROOT);
    }
    /* A program of several that is not there: nothing is started, and all learn of it. */
    char *commands[] = {self, "/no/such/program"};
    int counts[] = {2, 2};
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    CLASS(MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, counts, infos, 1, MPI_COMM_WORLD, &inter, codes), MPI_ERR_SPAWN);
    for (int i = 0; i < 4; i++) SAME(codes[i], MPI_ERR_SPAWN);
    /* Programs that never call MPI_Init. */
    CLASS(MPI_Comm_spawn("true", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE), MPI_ERR_SPAWN);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_Finalize();
    return verdict();
}
