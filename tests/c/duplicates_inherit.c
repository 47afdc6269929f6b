/* What MPI_Comm_idup inherits is what there is when it is called; what is set on its handle before it is complete is
 * the communicator's; and a duplicate that fails leaves no attribute behind, of communicators and of datatypes.
 * RANKS: 1 2 3
 */
#include "check.h"

static int copied, deleted, refuses;

static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    (void)comm, (void)key, (void)extra;
    if (refuses) return MPI_ERR_INTERN;
    copied++;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)value, (void)extra;
    deleted++;
    return MPI_SUCCESS;
}

static int refuse(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    refuses = 1;
    int code = copy(comm, key, extra, in, out, flag);
    refuses = 0;
    return code;
}

static int copy_of_type(MPI_Datatype type, int key, void *extra, void *in, void *out, int *flag) {
    (void)type;
    return copy(MPI_COMM_NULL, key, extra, in, out, flag);
}

static int refuse_of_type(MPI_Datatype type, int key, void *extra, void *in, void *out, int *flag) {
    (void)type;
    return refuse(MPI_COMM_NULL, key, extra, in, out, flag);
}

static int delete_of_type(MPI_Datatype type, int key, void *value, void *extra) {
    (void)type;
    return delete(MPI_COMM_NULL, key, value, extra);
}

static void handlers(void) {
    MPI_Comm parent, duplicate;
    MPI_Request request;
    MPI_Errhandler handler;
    int size;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &parent));
    OK(MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN));
    OK(MPI_Comm_idup(parent, &duplicate, &request));
    OK(MPI_Comm_set_errhandler(parent, MPI_ERRORS_ARE_FATAL));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_get_errhandler(duplicate, &handler));
    CHECK(handler == MPI_ERRORS_RETURN);
    CLASS(MPI_Send(NULL, 0, MPI_INT, 1000, 0, duplicate), MPI_ERR_RANK);
    OK(MPI_Comm_size(duplicate, &size));
    OK(MPI_Comm_free(&duplicate));
    OK(MPI_Comm_free(&parent));
}

/* What is set on the handle before the call is complete is the communicator's: mpi4py sets its error handler there.
 * Rank 0, which takes the context, calls last. What needs messages is refused until then. */
static void early(void) {
    MPI_Comm duplicate;
    MPI_Request request;
    MPI_Errhandler handler;
    int rank, size, there;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    for (int from = 1; rank == 0 && from < size; from++)
        OK(MPI_Recv(&there, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Comm_idup(MPI_COMM_WORLD, &duplicate, &request));
    if (rank > 0) {
        MPI_Comm other;
        MPI_Request barrier;
        int flag;
        CLASS(MPI_Send(&size, 1, MPI_INT, 0, 0, duplicate), MPI_ERR_COMM);
        CLASS(MPI_Irecv(&size, 1, MPI_INT, 0, 0, duplicate, &barrier), MPI_ERR_COMM);
        CLASS(MPI_Iprobe(0, 0, duplicate, &flag, MPI_STATUS_IGNORE), MPI_ERR_COMM);
        CLASS(MPI_Barrier(duplicate), MPI_ERR_COMM);
        CLASS(MPI_Ibarrier(duplicate, &barrier), MPI_ERR_COMM);
        CLASS(MPI_Comm_dup(duplicate, &other), MPI_ERR_COMM);
        other = duplicate;
        CLASS(MPI_Comm_free(&other), MPI_ERR_COMM);
        OK(MPI_Comm_set_errhandler(duplicate, MPI_ERRORS_ABORT));
        OK(MPI_Comm_set_name(duplicate, "early"));
        OK(MPI_Send(&size, 1, MPI_INT, 0, 0, MPI_COMM_WORLD));
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_get_errhandler(duplicate, &handler));
    CHECK(handler == (rank ? MPI_ERRORS_ABORT : MPI_ERRORS_RETURN));
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    OK(MPI_Comm_get_name(duplicate, name, &length));
    CHECK(!strcmp(name, rank ? "early" : ""));
    OK(MPI_Comm_size(duplicate, &there));
    SAME(there, size);
    OK(MPI_Barrier(duplicate));
    OK(MPI_Comm_free(&duplicate));
}

static void failures_of_comms(void) {
    MPI_Comm parent, duplicate;
    MPI_Request request;
    int good, bad;
    OK(MPI_Comm_create_keyval(copy, delete, &good, NULL));
    OK(MPI_Comm_create_keyval(refuse, delete, &bad, NULL));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &parent));
    OK(MPI_Comm_set_attr(parent, good, NULL));
    OK(MPI_Comm_set_attr(parent, bad, NULL));
    copied = deleted = 0;
    CLASS(MPI_Comm_idup(parent, &duplicate, &request), MPI_ERR_INTERN);
    SAME(copied, 1);
    SAME(deleted, 1);
    CLASS(MPI_Comm_dup(parent, &duplicate), MPI_ERR_INTERN);
    SAME(copied, 2);
    SAME(deleted, 2);
    OK(MPI_Comm_delete_attr(parent, bad));
    OK(MPI_Comm_idup(parent, &duplicate, &request));
    SAME(copied, 3);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_free(&duplicate));
    OK(MPI_Comm_free(&parent));
    OK(MPI_Comm_free_keyval(&good));
    OK(MPI_Comm_free_keyval(&bad));
}

static void failures_of_types(void) {
    MPI_Datatype type, duplicate;
    int good, bad, flag;
    void *value;
    OK(MPI_Type_create_keyval(copy_of_type, delete_of_type, &good, NULL));
    OK(MPI_Type_create_keyval(refuse_of_type, delete_of_type, &bad, NULL));
    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    OK(MPI_Type_set_attr(type, good, NULL));
    OK(MPI_Type_set_attr(type, bad, NULL));
    copied = deleted = 0;
    CLASS(MPI_Type_dup(type, &duplicate), MPI_ERR_INTERN);
    SAME(copied, 1);
    SAME(deleted, 1);
    /* No later type has what it was given, though handles are used again. */
    for (int i = 0; i < 5000; i++) {
        OK(MPI_Type_contiguous(1, MPI_CHAR, &duplicate));
        OK(MPI_Type_get_attr(duplicate, good, &value, &flag));
        if (flag) CHECK(!"an attribute that nobody has set");
        OK(MPI_Type_free(&duplicate));
    }
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free_keyval(&good));
    OK(MPI_Type_free_keyval(&bad));
}

int main(int argc, char **argv) {
    OK(MPI_Init(&argc, &argv));
    errors_return();
    handlers();
    early();
    failures_of_comms();
    failures_of_types();
    MPI_Finalize();
    return verdict();
}
