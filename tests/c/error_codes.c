/* Programs add error classes, codes and texts, and take them back (MPI 5.0 sections 9.4 and 9.5).
 * RANKS: 1
 */
#include "check.h"

static int last_used(void) {
    int *value, flag;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag));
    CHECK(flag);
    return *value;
}

int main(int argc, char **argv) {
    int early, class, code, of_tag, got, length;
    char text[MPI_MAX_ERROR_STRING];
    OK(MPI_Add_error_class(&early));
    MPI_Init(&argc, &argv);
    errors_return();
    SAME(last_used(), early);
    CHECK(early > MPI_ERR_LASTCODE);

    OK(MPI_Add_error_class(&class));
    OK(MPI_Add_error_code(class, &code));
    OK(MPI_Add_error_code(MPI_ERR_TAG, &of_tag));
    SAME(last_used(), of_tag);
    OK(MPI_Error_class(code, &got));
    SAME(got, class);
    OK(MPI_Error_class(of_tag, &got));
    SAME(got, MPI_ERR_TAG);
    OK(MPI_Error_string(code, text, &length));
    SAME(length, 0);
    SAME(text[0], 0);
    OK(MPI_Add_error_string(code, "the shoe is lost"));
    OK(MPI_Error_string(code, text, &length));
    CHECK(strcmp(text, "the shoe is lost") == 0);
    SAME(length, strlen(text));

    CLASS(MPI_Add_error_code(code, &got), MPI_ERR_ARG);
    CLASS(MPI_Add_error_code(-1, &got), MPI_ERR_ARG);
    CLASS(MPI_Add_error_string(MPI_ERR_TAG, "x"), MPI_ERR_ARG);
    CLASS(MPI_Error_class(of_tag + 100, &got), MPI_ERR_ARG);
    CLASS(MPI_Error_string(-5, text, &length), MPI_ERR_ARG);
    CLASS(MPI_Remove_error_code(code), MPI_ERR_ARG);
    CLASS(MPI_Remove_error_class(class), MPI_ERR_ARG);
    OK(MPI_Remove_error_string(code));
    OK(MPI_Remove_error_code(code));
    OK(MPI_Remove_error_class(class));
    CLASS(MPI_Error_class(code, &got), MPI_ERR_ARG);

    for (int predefined = MPI_SUCCESS; predefined <= MPI_ERR_ABI; predefined++) {
        OK(MPI_Error_class(predefined, &got));
        SAME(got, predefined);
        OK(MPI_Error_string(predefined, text, &length));
        CHECK(length > 0 && length == (int)strlen(text));
    }
    MPI_Finalize();
    return verdict();
}
