/* Strings come back as section 15.3.3 of MPI 5.0 has it: cut to the room there is, always ended, with the whole length;
 * and results that are not wanted may be NULL.
 */
#include "check.h"

/* Every way to ask for a string; `name` is what it is. */
#define ASK(call, name)                                                       \
    do {                                                                      \
        char text[1024];                                                      \
        int whole = (int)strlen(name) + 1, len;                               \
        for (int room = 0; room <= whole + 3; room++) {                       \
            memset(text, 'z', sizeof text);                                   \
            len = room;                                                       \
            OK(call(text, &len));                                             \
            SAME(len, whole);                                                 \
            int copied = room == 0 ? 0 : room < whole ? room - 1 : whole - 1; \
            CHECK(memcmp(text, name, copied) == 0);                           \
            CHECK(text[copied] == (room == 0 ? 'z' : 0));                     \
            CHECK(room == 0 || text[copied + 1] == 'z');                      \
        }                                                                     \
        len = 5;                                                              \
        OK(call(NULL, &len));                                                 \
        SAME(len, whole);                                                     \
        memset(text, 'z', sizeof text);                                       \
        OK(call(text, NULL));                                                 \
        CHECK(text[0] == 'z');                                                \
        OK(call(NULL, NULL));                                                 \
        len = -1;                                                             \
        OK(call(text, &len));                                                 \
        SAME(len, whole);                                                     \
        CHECK(text[0] == 'z');                                                \
    } while (0)

static int cvar, pvar, category;
static MPI_T_enum engines;

#define CVAR_NAME(text, len) MPI_T_cvar_get_info(cvar, text, len, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
#define CVAR_TEXT(text, len) MPI_T_cvar_get_info(cvar, NULL, NULL, NULL, NULL, NULL, text, len, NULL, NULL)
#define PVAR_NAME(text, len) \
    MPI_T_pvar_get_info(pvar, text, len, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
#define PVAR_TEXT(text, len) \
    MPI_T_pvar_get_info(pvar, NULL, NULL, NULL, NULL, NULL, NULL, text, len, NULL, NULL, NULL, NULL)
#define CAT_NAME(text, len) MPI_T_category_get_info(category, text, len, NULL, NULL, NULL, NULL, NULL)
#define CAT_TEXT(text, len) MPI_T_category_get_info(category, NULL, NULL, text, len, NULL, NULL, NULL)
#define ENUM_NAME(text, len) MPI_T_enum_get_info(engines, NULL, text, len)
#define ITEM_NAME(text, len) MPI_T_enum_get_item(engines, 1, NULL, text, len)

int main(void) {
    int provided, len = 1024;
    char what[1024];
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_cvar_get_index("copy_engine", &cvar));
    OK(MPI_T_pvar_get_index("posted_recvq_length", MPI_T_PVAR_CLASS_LEVEL, &pvar));
    OK(MPI_T_category_get_index("queues", &category));
    OK(MPI_T_cvar_get_info(cvar, NULL, NULL, NULL, NULL, &engines, NULL, NULL, NULL, NULL));
    CHECK(engines != MPI_T_ENUM_NULL);

    ASK(CVAR_NAME, "copy_engine");
    OK(CVAR_TEXT(what, &len));
    CHECK(strstr(what, "PERUSAL_COPY_ENGINE") != NULL);
    ASK(CVAR_TEXT, what);
    ASK(PVAR_NAME, "posted_recvq_length");
    len = 1024;
    OK(PVAR_TEXT(what, &len));
    ASK(PVAR_TEXT, what);
    ASK(CAT_NAME, "queues");
    len = 1024;
    OK(CAT_TEXT(what, &len));
    ASK(CAT_TEXT, what);
    ASK(ENUM_NAME, "copy_engine");
    ASK(ITEM_NAME, "chunks");
    OK(MPI_T_finalize());
    return verdict();
}
