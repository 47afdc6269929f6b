/* Attributes: callbacks on dup, delete and free, keys that are freed early, predefined ones,
 * those of MPI_COMM_SELF at the end.
 * RANKS: 1 2
 * EXPECT: last 2
 * EXPECT: last 1
 */
#include "check.h"

static int copied, deleted, refuse;

static int copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag) {
    (void)comm, (void)keyval;
    CHECK(extra == &copied);
    copied++;
    *(void **)out = (char *)in + 1;
    *flag = 1;
    return MPI_SUCCESS;
}
static int delete(MPI_Comm comm, int keyval, void *value, void *extra) {
    (void)comm, (void)keyval, (void)value;
    CHECK(extra == &copied);
    if (refuse) return MPI_ERR_OTHER;
    deleted++;
    return MPI_SUCCESS;
}
static int say(MPI_Comm comm, int keyval, void *value, void *extra) {
    int size;
    (void)keyval, (void)extra;
    OK(MPI_Comm_size(comm, &size));
    printf("last %d\n", *(int *)value);
    fflush(stdout);
    return MPI_SUCCESS;
}
static int type_copy(MPI_Datatype type, int keyval, void *extra, void *in, void *out, int *flag) {
    (void)type;
    return copy(MPI_COMM_WORLD, keyval, extra, in, out, flag);
}
static int type_delete(MPI_Datatype type, int keyval, void *value, void *extra) {
    (void)type;
    return delete(MPI_COMM_WORLD, keyval, value, extra);
}

static void *get(MPI_Comm comm, int keyval) {
    void *value = NULL;
    int flag;
    OK(MPI_Comm_get_attr(comm, keyval, &value, &flag));
    return flag ? value : NULL;
}

static void user(void) {
    int key, same, always, never;
    char place[4];
    MPI_Comm comm, dup;
    OK(MPI_Comm_create_keyval(copy, delete, &key, &copied));
    OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &always, NULL));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &never, NULL));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    CHECK(get(comm, key) == NULL);
    OK(MPI_Comm_set_attr(comm, key, place));
    OK(MPI_Comm_set_attr(comm, always, place));
    OK(MPI_Comm_set_attr(comm, never, place));
    OK(MPI_Comm_dup(comm, &dup));
    SAME(copied, 1);
    CHECK(get(dup, key) == place + 1 && get(dup, always) == place && get(dup, never) == NULL);
    same = key;
    OK(MPI_Comm_free_keyval(&key));
    SAME(key, MPI_KEYVAL_INVALID);
    OK(MPI_Comm_set_attr(dup, same, place));
    SAME(deleted, 1);
    OK(MPI_Comm_free(&dup));
    SAME(deleted, 2);
    refuse = 1;
    CLASS(MPI_Comm_free(&comm), MPI_ERR_OTHER);
    CHECK(comm != MPI_COMM_NULL);
    CLASS(MPI_Comm_delete_attr(comm, same), MPI_ERR_OTHER);
    refuse = 0;
    OK(MPI_Comm_delete_attr(comm, same));
    SAME(deleted, 3);
    CLASS(MPI_Comm_set_attr(comm, same, place), MPI_ERR_KEYVAL);
    OK(MPI_Comm_free(&comm));
    SAME(deleted, 3);
    OK(MPI_Comm_free_keyval(&always));
    OK(MPI_Comm_free_keyval(&never));
}

static void types(void) {
    int key, flag;
    char place[4];
    void *value;
    MPI_Datatype a, b;
    copied = deleted = 0;
    OK(MPI_Type_create_keyval(type_copy, type_delete, &key, &copied));
    CLASS(MPI_Comm_set_attr(MPI_COMM_WORLD, key, place), MPI_ERR_KEYVAL);
    OK(MPI_Type_contiguous(3, MPI_INT, &a));
    OK(MPI_Type_set_attr(a, key, place));
    OK(MPI_Type_dup(a, &b));
    OK(MPI_Type_get_attr(b, key, &value, &flag));
    CHECK(flag && value == place + 1);
    OK(MPI_Type_free(&a));
    OK(MPI_Type_free(&b));
    SAME(copied, 1); SAME(deleted, 2);
    OK(MPI_Type_free_keyval(&key));
}

static void predefined(void) {
    int *value, flag, size;
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag));
    CHECK(flag && *value >= 32767);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag));
    CHECK(flag && *value >= size);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag));
    CHECK(flag && *value == 0);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &flag));
    CHECK(flag && *value == 1);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &value, &flag));
    CHECK(flag && *value == MPI_ANY_SOURCE);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, &value, &flag));
    CHECK(flag && *value == MPI_PROC_NULL);
    int before, class;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag));
    CHECK(flag && *value >= MPI_ERR_LASTCODE);
    before = *value;
    OK(MPI_Add_error_class(&class));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag));
    CHECK(*value == class && class > before);
    CLASS(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, value), MPI_ERR_KEYVAL);
    CLASS(MPI_Comm_delete_attr(MPI_COMM_WORLD, MPI_TAG_UB), MPI_ERR_KEYVAL);
}

int main(void) {
    static int first = 1, second = 2;
    int a, b;
    OK(MPI_Init(NULL, NULL));
    errors_return();
    user();
    types();
    predefined();
    /* The youngest goes first. */
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, say, &a, NULL));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, say, &b, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, a, &first));
    OK(MPI_Comm_set_attr(MPI_COMM_SELF, b, &second));
    OK(MPI_Finalize());
    return verdict();
}
