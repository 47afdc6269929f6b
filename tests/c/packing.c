/* Packing goes on where it stopped, refuses what does not fit,
 * and external32 is big-endian (MPI 5.0 sections 5.2, 5.3).
 * RANKS: 1
 */
#include "check.h"

/* What does not fit, with the sentence. */
static void said(int code, const char *part) {
    char text[MPI_MAX_ERROR_STRING];
    int length;
    OK(MPI_Error_string(code, text, &length));
    CLASS(code, MPI_ERR_TRUNCATE);
    if (!strstr(text, part)) fprintf(stderr, "said: %s\n", text);
    CHECK(strstr(text, part) != NULL);
}

static void in_pieces(void) {
    char tape[32];
    int position = 0, i = 7, back = 0, size;
    double d[] = {1.5, -2.5}, d_back[2];
    MPI_Datatype type;
    OK(MPI_Pack(&i, 1, MPI_INT, tape, sizeof tape, &position, MPI_COMM_WORLD));
    SAME(position, 4);
    OK(MPI_Pack(d, 2, MPI_DOUBLE, tape, sizeof tape, &position, MPI_COMM_WORLD));
    SAME(position, 20);
    said(MPI_Pack(d, 2, MPI_DOUBLE, tape, sizeof tape, &position, MPI_COMM_WORLD), "MPI_Pack: 16 bytes to pack do not fit into the 12 that are left");
    SAME(position, 20);
    position = 0;
    OK(MPI_Unpack(tape, 20, &position, &back, 1, MPI_INT, MPI_COMM_WORLD));
    OK(MPI_Unpack(tape, 20, &position, d_back, 2, MPI_DOUBLE, MPI_COMM_WORLD));
    SAME(back, 7);
    CHECK(d_back[0] == 1.5 && d_back[1] == -2.5);
    said(MPI_Unpack(tape, 20, &position, &back, 1, MPI_INT, MPI_COMM_WORLD), "MPI_Unpack: 4 bytes to unpack are more than the 0 that are left");
    CLASS(MPI_Pack_size(-1, MPI_INT, MPI_COMM_WORLD, &size), MPI_ERR_COUNT);
    CLASS(MPI_Pack_size(1, MPI_INT, MPI_COMM_NULL, &size), MPI_ERR_COMM);
    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    CLASS(MPI_Pack_size(1, type, MPI_COMM_WORLD, &size), MPI_ERR_TYPE);
    OK(MPI_Type_free(&type));
}

static void large_forms(void) {
    char tape[8];
    int i[] = {3, 4}, back[2];
    MPI_Count position = 0, size;
    OK(MPI_Pack_size_c(2, MPI_INT, MPI_COMM_SELF, &size));
    SAME(size, 8);
    OK(MPI_Pack_c(i, 2, MPI_INT, tape, sizeof tape, &position, MPI_COMM_SELF));
    SAME(position, 8);
    position = 4;
    OK(MPI_Unpack_c(tape, 8, &position, back, 1, MPI_INT, MPI_COMM_SELF));
    SAME(back[0], 4);
    OK(MPI_Pack_size_c((MPI_Count)1 << 40, MPI_DOUBLE, MPI_COMM_SELF, &size));
    SAME(size, (MPI_Count)1 << 43);
    int small;
    OK(MPI_Pack_size(1 << 30, MPI_DOUBLE, MPI_COMM_SELF, &small));
    SAME(small, MPI_UNDEFINED);
}

static void absolute(void) {
    int first = 5, second = 6, position = 0, length[] = {1, 1}, tape[2];
    MPI_Aint at[2];
    MPI_Datatype both;
    OK(MPI_Get_address(&first, &at[0]));
    OK(MPI_Get_address(&second, &at[1]));
    OK(MPI_Type_create_hindexed(2, length, at, MPI_INT, &both));
    OK(MPI_Type_commit(&both));
    OK(MPI_Pack(MPI_BOTTOM, 1, both, tape, sizeof tape, &position, MPI_COMM_SELF));
    SAME(tape[0], 5);
    SAME(tape[1], 6);
    OK(MPI_Type_free(&both));
}

static void external(void) {
    unsigned char tape[16];
    MPI_Aint position = 0, size;
    MPI_Count large = 0, large_size;
    int i = 0x01020304, back = 0;
    long double wide = -1.5L, wide_back = 0;
    OK(MPI_Pack_external_size("external32", 1, MPI_LONG_DOUBLE, &size));
    SAME(size, 16);
    OK(MPI_Pack_external("external32", &i, 1, MPI_INT, tape, sizeof tape, &position));
    SAME(position, 4);
    SAME(tape[0], 1);
    SAME(tape[3], 4);
    position = 0;
    OK(MPI_Unpack_external("external32", tape, 4, &position, &back, 1, MPI_INT));
    SAME(back, i);
    OK(MPI_Pack_external_size_c("external32", 1, MPI_LONG_DOUBLE, &large_size));
    OK(MPI_Pack_external_c("external32", &wide, 1, MPI_LONG_DOUBLE, tape, large_size, &large));
    SAME(large, 16);
    SAME(tape[0], 0xbf);
    SAME(tape[1], 0xff);
    SAME(tape[2], 0x80);
    large = 0;
    OK(MPI_Unpack_external_c("external32", tape, 16, &large, &wide_back, 1, MPI_LONG_DOUBLE));
    CHECK(wide_back == wide);
    CLASS(MPI_Pack_external_size("native", 1, MPI_INT, &size), MPI_ERR_ARG);
    position = 0;
    said(MPI_Pack_external("external32", &i, 1, MPI_INT, tape, 3, &position), "4 bytes to pack do not fit into the 3 that are left");
    said(MPI_Unpack_external("external32", tape, 3, &position, &i, 1, MPI_INT), "4 bytes to unpack are more than the 3 that are left");
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    errors_return();
    in_pieces();
    large_forms();
    absolute();
    external();
    MPI_Finalize();
    return verdict();
}
