/* Callbacks make enquiries on one thread while another one makes, names and frees what enquiries look up:
 * nobody waits for the other.
 * RANKS: 1 2
 * FLAGS: -pthread
 */
#include "check.h"
#include <peruse.h>
#include <pthread.h>
#include <stdatomic.h>

enum { ROUNDS = 2000, EVENTS = 17 };

static atomic_int over, calls;

static int asks(peruse_event_h handle, MPI_Aint id, peruse_comm_spec_t *spec, void *param)
{
    int size = -1, rank = -1, length;
    char name[MPI_MAX_OBJECT_NAME], text[MPI_MAX_ERROR_STRING];
    (void)handle, (void)id, (void)param;
    atomic_fetch_add(&calls, 1);
    OK(MPI_Type_size(spec->datatype, &size));
    CHECK(size == 1 || size == 12);
    OK(MPI_Type_get_name(spec->datatype, name, &length));
    OK(MPI_Comm_rank(spec->comm, &rank));
    OK(MPI_Comm_get_name(spec->comm, name, &length));
    OK(MPI_Error_string(MPI_ERR_TAG, text, &length));
    return MPI_SUCCESS;
}

static void *changes(void *unused)
{
    for (int i = 0; !atomic_load(&over); i++) {
        MPI_Datatype type;
        int class;
        OK(MPI_Type_contiguous(i % 7 + 1, MPI_INT, &type));
        OK(MPI_Type_set_name(type, "mine"));
        OK(MPI_Type_commit(&type));
        OK(MPI_Type_free(&type));
        OK(MPI_Type_set_name(MPI_BYTE, i % 2 ? "octet" : "byte"));
        OK(MPI_Comm_set_name(MPI_COMM_WORLD, i % 2 ? "world" : "job"));
        OK(MPI_Add_error_class(&class));
        OK(MPI_Remove_error_class(class));
    }
    return unused;
}

int main(int argc, char **argv)
{
    int provided, rank, size;
    pthread_t thread;
    MPI_Datatype type;
    peruse_event_h handle[EVENTS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_Type_contiguous(3, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    OK(PERUSE_Init());
    for (int i = 0; i < EVENTS; i++) {
        OK(PERUSE_Event_comm_register(i + 1, MPI_COMM_WORLD, asks, NULL, &handle[i]));
        OK(PERUSE_Event_activate(handle[i]));
    }
    pthread_create(&thread, NULL, changes, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        int in[3], out[3] = {i, i, i};
        MPI_Request requests[2];
        OK(MPI_Irecv(in, 1, type, (rank + size - 1) % size, i % 3, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Isend(out, 1, type, (rank + 1) % size, i % 3, MPI_COMM_WORLD, &requests[1]));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        SAME(in[2], i);
    }
    atomic_store(&over, 1);
    pthread_join(thread, NULL);
    for (int i = 0; i < EVENTS; i++) OK(PERUSE_Event_release(&handle[i]));
    CHECK(atomic_load(&calls) > 8 * ROUNDS);
    OK(MPI_Type_free(&type));
    MPI_Finalize();
    return verdict();
}
