/* Attributes, names, groups, hints and error handlers of windows (MPI 5.0 sections 12.2.6, 12.2.7, 7.7, 7.8, 9.3).
 * RANKS: 2
 */
#include "check.h"

static int rank, size;

static void predefined(MPI_Win win, void *base, MPI_Aint bytes, int unit, int flavor) {
    void *at;
    MPI_Aint *size_;
    int *number, flag;
    OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &at, &flag));
    CHECK(flag && at == base);
    OK(MPI_Win_get_attr(win, MPI_WIN_SIZE, &size_, &flag));
    CHECK(flag);
    SAME(*size_, bytes);
    OK(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &number, &flag));
    CHECK(flag);
    SAME(*number, unit);
    OK(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &number, &flag));
    CHECK(flag);
    SAME(*number, flavor);
    OK(MPI_Win_get_attr(win, MPI_WIN_MODEL, &number, &flag));
    CHECK(flag);
    SAME(*number, MPI_WIN_UNIFIED);
    CLASS(MPI_Win_set_attr(win, MPI_WIN_SIZE, &flag), MPI_ERR_KEYVAL);
    CLASS(MPI_Win_delete_attr(win, MPI_WIN_MODEL), MPI_ERR_KEYVAL);
    CLASS(MPI_Win_get_attr(win, MPI_TAG_UB, &number, &flag), MPI_ERR_KEYVAL);
}

static int deleted, refuses;
static MPI_Win seen;

static int on_delete(MPI_Win win, int keyval, void *value, void *extra) {
    (void)keyval;
    CHECK(extra == &deleted);
    seen = win;
    if (refuses) return MPI_ERR_OTHER;
    deleted = deleted * 10 + (int)(MPI_Aint)value;
    return MPI_SUCCESS;
}

static void users(void) {
    MPI_Win win, handle;
    int first, second, of_comm, flag;
    void *value;
    long *base;
    OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_delete, &first, &deleted));
    OK(MPI_Win_create_keyval(MPI_WIN_DUP_FN, on_delete, &second, &deleted));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &of_comm, NULL));
    OK(MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_get_attr(win, first, &value, &flag));
    CHECK(!flag);
    OK(MPI_Win_set_attr(win, first, (void *)1));
    OK(MPI_Win_set_attr(win, first, (void *)2));
    SAME(deleted, 1);
    OK(MPI_Win_set_attr(win, second, (void *)3));
    OK(MPI_Win_get_attr(win, first, &value, &flag));
    CHECK(flag && value == (void *)2);
    CLASS(MPI_Win_set_attr(win, of_comm, NULL), MPI_ERR_KEYVAL);
    CLASS(MPI_Win_free_keyval(&of_comm), MPI_ERR_KEYVAL);
    OK(MPI_Win_delete_attr(win, second));
    SAME(deleted, 13);
    OK(MPI_Win_get_attr(win, second, &value, &flag));
    CHECK(!flag);
    OK(MPI_Win_set_attr(win, second, (void *)4));
    /* A key lives as long as an attribute under it. */
    OK(MPI_Win_free_keyval(&first));
    OK(MPI_Win_free_keyval(&second));
    SAME(first, MPI_KEYVAL_INVALID);
    handle = win;
    refuses = 1;
    CHECK(MPI_Win_free(&win) != MPI_SUCCESS);
    CHECK(win == handle);
    refuses = 0;
    OK(MPI_Win_free(&win));
    CHECK(seen == handle && win == MPI_WIN_NULL);
    SAME(deleted, 1342);
    OK(MPI_Comm_free_keyval(&of_comm));
}

static void names(MPI_Win win) {
    char name[MPI_MAX_OBJECT_NAME], longer[2 * MPI_MAX_OBJECT_NAME];
    int length = -1;
    OK(MPI_Win_get_name(win, name, &length));
    SAME(length, 0);
    CHECK(!name[0]);
    OK(MPI_Win_set_name(win, "halo"));
    OK(MPI_Win_get_name(win, name, &length));
    CHECK(length == 4 && !strcmp(name, "halo"));
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = 0;
    OK(MPI_Win_set_name(win, longer));
    OK(MPI_Win_get_name(win, name, &length));
    SAME(length, MPI_MAX_OBJECT_NAME - 1);
    OK(MPI_Win_get_name(MPI_WIN_NULL, name, &length));
    CHECK(!strcmp(name, "MPI_WIN_NULL"));
}

static void group(MPI_Win win) {
    MPI_Group own, world;
    int result;
    OK(MPI_Win_get_group(win, &own));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_compare(own, world, &result));
    SAME(result, MPI_IDENT);
    OK(MPI_Group_free(&own));
    OK(MPI_Group_free(&world));
}

static void hint(MPI_Win win, const char *key, const char *expected) {
    MPI_Info info;
    char value[MPI_MAX_INFO_VAL] = "";
    int length = sizeof value, flag;
    OK(MPI_Win_get_info(win, &info));
    OK(MPI_Info_get_string(info, key, &length, value, &flag));
    if (flag != !!expected || (expected && strcmp(value, expected))) {
        fprintf(stderr, "hint %s is %s, expected %s\n", key, flag ? value : "(none)", expected ? expected : "(none)");
        failures++;
    }
    OK(MPI_Info_free(&info));
}

static void hints(void) {
    MPI_Win win;
    MPI_Info info;
    int *base, one = 1;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "no_locks", "true"));
    OK(MPI_Info_set(info, "accumulate_ordering", "rar,waw"));
    OK(MPI_Info_set(info, "accumulate_ops", "nonsense"));
    OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", "4096"));
    OK(MPI_Info_set(info, "colour", "red"));
    OK(MPI_Win_allocate(8, 4, info, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    SAME((MPI_Aint)base % 4096, 0);
    hint(win, "no_locks", "true");
    hint(win, "accumulate_ordering", "rar,waw");
    hint(win, "accumulate_ops", "same_op_no_op");
    hint(win, "same_size", "false");
    hint(win, "same_disp_unit", "false");
    hint(win, "mpi_minimum_memory_alignment", "4096");
    hint(win, "alloc_shared_noncontig", NULL);
    hint(win, "colour", NULL);
    /* Without locks no passive epoch opens; fences still do. */
    CLASS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Accumulate(&one, 1, MPI_INT, rank, 0, 1, MPI_INT, MPI_REPLACE, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    SAME(*base, 1);
    OK(MPI_Info_set(info, "accumulate_ordering", "none"));
    OK(MPI_Info_set(info, "accumulate_ops", "same_op"));
    OK(MPI_Info_delete(info, "no_locks"));
    OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", "8192"));
    OK(MPI_Win_set_info(win, info));
    hint(win, "no_locks", "true");
    hint(win, "accumulate_ordering", "none");
    hint(win, "accumulate_ops", "same_op");
    hint(win, "mpi_minimum_memory_alignment", "4096");
    OK(MPI_Win_free(&win));
    /* More than the shared heap can do makes no sense. */
    OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", "4194304"));
    OK(MPI_Win_allocate(8, 4, info, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_free(&win));
    OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", "2097152"));
    OK(MPI_Win_allocate(8, 4, info, MPI_COMM_WORLD, &base, &win));
    SAME((MPI_Aint)base % 2097152, 0);
    hint(win, "mpi_minimum_memory_alignment", "2097152");
    OK(MPI_Win_free(&win));
    OK(MPI_Info_set(info, "alloc_shared_noncontig", "true"));
    OK(MPI_Win_allocate_shared(8, 4, info, MPI_COMM_WORLD, &base, &win));
    hint(win, "alloc_shared_noncontig", "true");
    hint(win, "no_locks", "false");
    OK(MPI_Info_set(info, "alloc_shared_noncontig", "false"));
    OK(MPI_Win_set_info(win, info));
    hint(win, "alloc_shared_noncontig", "false");
    OK(MPI_Win_free(&win));
    OK(MPI_Info_free(&info));
}

static int calls, last;

static void handler(MPI_Win *win, int *code, ...) {
    seen = *win;
    MPI_Error_class(*code, &last);
    calls++;
}

static void of_comm(MPI_Comm *comm, int *code, ...) { (void)comm, (void)code; }

static void errhandlers(void) {
    MPI_Errhandler mine, got, wrong;
    MPI_Win win;
    int own[2];
    OK(MPI_Win_create_errhandler(handler, &mine));
    OK(MPI_Comm_create_errhandler(of_comm, &wrong));
    OK(MPI_Win_create(own, sizeof own, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_get_errhandler(win, &got));
    /* Whatever the communicator has. */
    CHECK(got == MPI_ERRORS_ARE_FATAL);
    OK(MPI_Win_set_errhandler(win, mine));
    OK(MPI_Win_get_errhandler(win, &got));
    CHECK(got == mine);
    OK(MPI_Errhandler_free(&got));
    OK(MPI_Errhandler_free(&mine));
    CLASS(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);
    SAME(calls, 1);
    SAME(last, MPI_ERR_RMA_SYNC);
    CHECK(seen == win);
    OK(MPI_Win_call_errhandler(win, MPI_ERR_TAG));
    SAME(calls, 2);
    SAME(last, MPI_ERR_TAG);
    CLASS(MPI_Win_set_errhandler(win, wrong), MPI_ERR_ERRHANDLER);
    SAME(calls, 3);
    OK(MPI_Errhandler_free(&wrong));
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv) {
    MPI_Win win;
    double own[6], *base;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    errors_return();
    OK(MPI_Win_create(own, sizeof own, 2, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    CHECK(MPI_Win_fromint(MPI_Win_toint(win)) == win && MPI_Win_toint(win) > 0);
    predefined(win, own, sizeof own, 2, MPI_WIN_FLAVOR_CREATE);
    names(win);
    group(win);
    OK(MPI_Win_free(&win));
    OK(MPI_Win_allocate(rank * 100, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    predefined(win, base, rank * 100, 4, MPI_WIN_FLAVOR_ALLOCATE);
    OK(MPI_Win_free(&win));
    OK(MPI_Win_allocate_shared(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    predefined(win, base, 64, 8, MPI_WIN_FLAVOR_SHARED);
    OK(MPI_Win_free(&win));
    OK(MPI_Win_create_c(own, sizeof own, 1LL << 40, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    int flag, *unit;
    MPI_Aint bytes, wide;
    CLASS(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &unit, &flag), MPI_ERR_VALUE_TOO_LARGE);
    CLASS(MPI_Win_shared_query(win, rank, &bytes, &flag, &base), MPI_ERR_VALUE_TOO_LARGE);
    OK(MPI_Win_shared_query_c(win, rank, &bytes, &wide, &base));
    SAME(wide, 1LL << 40);
    OK(MPI_Win_free(&win));
    users();
    hints();
    errhandlers();
    MPI_Finalize();
    return verdict();
}
