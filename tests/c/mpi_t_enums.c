/* Enumerations: every item of every enumeration has a name and value of its own; what does not exist is refused.
 */
#include "check.h"

static int enums;

static void look(MPI_T_enum type) {
    int num = 0, value, len;
    char name[128], names[64][128];
    int values[64];
    OK(MPI_T_enum_get_info(type, &num, NULL, NULL));
    CHECK(num > 0 && num <= 64);
    for (int i = 0; i < num; i++) {
        len = sizeof name;
        OK(MPI_T_enum_get_item(type, i, &value, name, &len));
        CHECK(len > 1);
        for (int j = 0; j < i; j++) CHECK(strcmp(names[j], name) != 0 && values[j] != value);
        strcpy(names[i], name);
        values[i] = value;
    }
    OK(MPI_T_enum_get_item(type, 0, NULL, NULL, NULL));
    SAME(MPI_T_enum_get_item(type, num, &value, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    SAME(MPI_T_enum_get_item(type, -1, &value, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    enums++;
}

int main(void) {
    int provided, n, stack;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_cvar_get_num(&n));
    for (int i = 0; i < n; i++) {
        MPI_T_enum type = (MPI_T_enum)&stack;
        MPI_Datatype datatype;
        OK(MPI_T_cvar_get_info(i, NULL, NULL, NULL, &datatype, &type, NULL, NULL, NULL, NULL));
        CHECK(type == MPI_T_ENUM_NULL || datatype == MPI_INT);
        if (type != MPI_T_ENUM_NULL) look(type);
    }
    OK(MPI_T_pvar_get_num(&n));
    for (int i = 0; i < n; i++) {
        MPI_T_enum type = (MPI_T_enum)&stack;
        int class;
        OK(MPI_T_pvar_get_info(i, NULL, NULL, NULL, &class, NULL, &type, NULL, NULL, NULL, NULL, NULL, NULL));
        SAME(class == MPI_T_PVAR_CLASS_STATE, type != MPI_T_ENUM_NULL);
        if (type != MPI_T_ENUM_NULL) look(type);
    }
    CHECK(enums >= 4);
    SAME(MPI_T_enum_get_info(MPI_T_ENUM_NULL, &n, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    SAME(MPI_T_enum_get_info((MPI_T_enum)&stack, &n, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    SAME(MPI_T_enum_get_item(MPI_T_ENUM_NULL, 0, &n, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    OK(MPI_T_finalize());
    return verdict();
}
