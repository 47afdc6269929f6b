/* What the standard allows before MPI_Init works before MPI_Init.
 * RANKS: 1
 * EXPECT: MPI 5.0
 */
#include "check.h"

int main(void) {
    int version, subversion, length, class, flag = -1, size, count;
    char text[MPI_MAX_LIBRARY_VERSION_STRING], value[MPI_MAX_INFO_VAL];
    OK(MPI_Get_version(&version, &subversion));
    printf("MPI %d.%d\n", version, subversion);
    OK(MPI_Get_library_version(text, &length));
    SAME(length, strlen(text));
    CHECK(strstr(text, "perusal") != NULL);
    OK(MPI_Abi_get_version(&version, &subversion));
    SAME(version, MPI_ABI_VERSION);
    SAME(subversion, MPI_ABI_SUBVERSION);

    MPI_Info info;
    OK(MPI_Abi_get_info(&info));
    size = sizeof value;
    OK(MPI_Info_get_string(info, "mpi_aint_size", &size, value, &flag));
    SAME(flag, 1);
    SAME(atoi(value), sizeof(MPI_Aint));
    size = sizeof value;
    OK(MPI_Info_get_string(info, "mpi_count_size", &size, value, &flag));
    SAME(atoi(value), sizeof(MPI_Count));
    size = sizeof value;
    OK(MPI_Info_get_string(info, "mpi_offset_size", &size, value, &flag));
    SAME(atoi(value), sizeof(MPI_Offset));
    OK(MPI_Info_get_nkeys(info, &count));
    SAME(count, 3);
    OK(MPI_Info_free(&info));

    OK(MPI_Abi_get_fortran_info(&info));
    CHECK(info == MPI_INFO_NULL);
    int yes = 1, no = 0, got_yes = 7, got_no = 7;
    OK(MPI_Abi_get_fortran_booleans(sizeof yes, &got_yes, &got_no, &flag));
    SAME(flag, 0);
    OK(MPI_Abi_set_fortran_booleans(sizeof yes, &yes, &no));
    OK(MPI_Abi_get_fortran_booleans(sizeof yes, &got_yes, &got_no, &flag));
    SAME(flag, 1);
    SAME(got_yes, 1);
    SAME(got_no, 0);

    OK(MPI_Error_class(MPI_ERR_TRUNCATE, &class));
    SAME(class, MPI_ERR_TRUNCATE);
    OK(MPI_Error_string(MPI_ERR_TRUNCATE, text, &length));
    CHECK(length > 0 && length == (int)strlen(text));

    double start = MPI_Wtime();
    CHECK(MPI_Wtick() > 0 && MPI_Wtick() < 0.001);
    while (MPI_Wtime() - start < 0.001) {}

    OK(MPI_Pcontrol(1, "any", 2.0, 3));
    SAME(MPI_Aint_add(40, 2), 42);
    SAME(MPI_Aint_diff(40, 42), -2);
    MPI_Aint address;
    OK(MPI_Get_address(text, &address));
    CHECK((void *)address == (void *)text);
    SAME(MPI_Comm_toint(MPI_COMM_WORLD), 257);
    CHECK(MPI_Comm_fromint(258) == MPI_COMM_SELF);
    CHECK(MPI_Type_fromint(MPI_Type_toint(MPI_DOUBLE)) == MPI_DOUBLE);
    return verdict();
}
