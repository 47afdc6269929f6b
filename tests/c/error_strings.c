/* What MPI_Error_string says of an error that a call has just returned: the class, the function, the values.
 * RANKS: 2
 */
#include "check.h"

static int says(int code, const char *part)
{
    char text[MPI_MAX_ERROR_STRING];
    int length = -1;
    OK(MPI_Error_string(code, text, &length));
    SAME(length, strlen(text));
    CHECK(length < MPI_MAX_ERROR_STRING);
    return strstr(text, part) != NULL;
}

static int truncations;

/* Of several requests: the handler is given the class of the first that has failed. */
static void on_truncation(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    truncations++;
    SAME(*code, MPI_ERR_TRUNCATE);
    CHECK(says(*code, "MPI_Waitall: request 1 of the array failed, message of 8 bytes does not fit into a receive buffer of 4 bytes"));
}

static void on_error(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    CHECK(says(*code, "MPI_Send: rank is 9"));
}

int main(void)
{
    MPI_Errhandler handler;
    MPI_File file;
    char name[2000];
    int x = 0, code;
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    CHECK(!says(MPI_ERR_RANK, "MPI_Send"));
    code = MPI_Send(&x, 1, MPI_INT, 7, 0, MPI_COMM_WORLD);
    SAME(code, MPI_ERR_RANK);
    CHECK(says(code, "MPI_Send: rank is 7; the communicator has"));
    CHECK(!says(MPI_ERR_TAG, "rank is 7"));
    code = MPI_Send(&x, 1, MPI_INT, 0, -3, MPI_COMM_WORLD);
    CHECK(says(code, "tag is -3;"));
    code = MPI_Send(&x, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD);
    CHECK(says(code, "(MPI_ANY_TAG)"));
    code = MPI_Send(&x, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD);
    CHECK(says(code, "(MPI_ANY_SOURCE); the communicator has"));
    CHECK(!says(MPI_ERR_RANK, "rank is 7"));

    /* An error names the object that it is about, and the value. */
    MPI_Win win;
    MPI_Aint size;
    void *base;
    int unit, rank = 6;
    MPI_Group all, some;
    MPI_Comm comm;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    code = MPI_Group_incl(all, 1, &rank, &some);
    CHECK(code == MPI_ERR_RANK && says(code, "rank is 6; the group has"));
    OK(MPI_Group_free(&all));
    code = MPI_Comm_split_type(MPI_COMM_WORLD, 12345, 0, MPI_INFO_NULL, &comm);
    CHECK(code == MPI_ERR_ARG && says(code, "split_type is 12345"));
    code = MPI_Comm_split(MPI_COMM_WORLD, -7, 0, &comm);
    CHECK(code == MPI_ERR_ARG && says(code, "the color is -7"));
    OK(MPI_Win_allocate_shared(sizeof(int), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    code = MPI_Win_shared_query(win, 5, &size, &unit, &base);
    CHECK(code == MPI_ERR_RANK && says(code, "rank is 5; the window has"));
    code = MPI_Win_lock(MPI_LOCK_SHARED, 4, 0, win);
    CHECK(code == MPI_ERR_RANK && says(code, "rank is 4; the window has"));
    int two[2] = {1, 2};
    OK(MPI_Win_lock_all(0, win));
    code = MPI_Put(two, 2, MPI_INT, 0, 0, 1, MPI_INT, win);
    CHECK(code == MPI_ERR_TRUNCATE && says(code, "8 bytes do not fit into 4 bytes at the other end"));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));

    /* Of a window, whatever made it. The other rank has no memory there. */
    int own;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    OK(MPI_Win_create(rank == 0 ? &own : (int *)0x1234, sizeof own, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_fence(0, win));
    if (rank == 0) {
        code = MPI_Put(two, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
        CHECK(code == MPI_ERR_RMA_RANGE && says(code, "outside of the target's memory in the window: it has no memory there"));
    }
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_free(&win));

    code = MPI_File_open(MPI_COMM_SELF, "/no/such/folder/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    SAME(code, MPI_ERR_NO_SUCH_FILE);
    CHECK(says(code, "/no/such/folder/file"));
    memset(name, 'x', sizeof name - 1);
    name[0] = '/', name[sizeof name - 1] = 0;
    code = MPI_File_delete(name, MPI_INFO_NULL);
    CHECK(code != MPI_SUCCESS && says(code, "MPI_File_delete"));

    OK(MPI_Comm_create_errhandler(on_error, &handler));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler));
    CLASS(MPI_Send(&x, 1, MPI_INT, 9, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
    OK(MPI_Errhandler_free(&handler));

    OK(MPI_Comm_create_errhandler(on_truncation, &handler));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler));
    OK(MPI_Errhandler_free(&handler));
    MPI_Request requests[2];
    MPI_Status statuses[2];
    OK(MPI_Isend(two, 2, MPI_INT, rank, 5, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Irecv(&x, 1, MPI_INT, rank, 5, MPI_COMM_WORLD, &requests[1]));
    CLASS(MPI_Waitall(2, requests, statuses), MPI_ERR_IN_STATUS);
    SAME(truncations, 1);
    CHECK(says(MPI_ERR_IN_STATUS, "request 1 of the array failed"));
    CHECK(says(statuses[1].MPI_ERROR, "message of 8 bytes does not fit"));
    OK(MPI_Finalize());
    return verdict();
}
