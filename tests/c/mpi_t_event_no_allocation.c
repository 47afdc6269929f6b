/* From an event to a tool nothing is allocated: at once, into a buffer and out of it, dropped and reported. Every
 * allocation of the process is counted, the library's too.
 */
#include "mpi_t_event.h"

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);
static long long allocations;

void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}
void *calloc(size_t number, size_t size)
{
    allocations++;
    return __libc_calloc(number, size);
}
void *realloc(void *old, size_t size)
{
    allocations++;
    return __libc_realloc(old, size);
}
int posix_memalign(void **to, size_t alignment, size_t size)
{
    allocations++;
    *to = __libc_memalign(alignment, size);
    return *to ? 0 : 12;
}
void *aligned_alloc(size_t alignment, size_t size)
{
    allocations++;
    return __libc_memalign(alignment, size);
}

static long long seen, dropped;

static void on_event(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    unsigned char image[256];
    MPI_Count time;
    int source;
    (void)handle, (void)level, (void)data;
    seen++;
    OK(MPI_T_event_copy(instance, image));
    OK(MPI_T_event_get_timestamp(instance, &time));
    OK(MPI_T_event_get_source(instance, &source));
}

static void on_drop(MPI_Count count, MPI_T_event_registration handle, int source, MPI_T_cb_safety level, void *data)
{
    (void)handle, (void)source, (void)level, (void)data;
    dropped += count;
}

static MPI_Win win;

static void messages(int count)
{
    for (int i = 0; i < count; i++) {
        int out = 7, in = 0;
        MPI_Request request;
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Put(&out, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
        OK(MPI_Fetch_and_op(&out, &in, MPI_INT, 0, 0, MPI_SUM, win));
        OK(MPI_Win_flush(0, win));
        OK(MPI_Win_unlock(0, win));
        OK(MPI_Irecv(&in, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &request));
        OK(MPI_Send(&out, 1, MPI_INT, 0, 5, MPI_COMM_SELF));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
}

int main(int argc, char **argv)
{
    MPI_Comm self = MPI_COMM_SELF;
    void *base;
    initialise_tools();
    OK(MPI_Init(&argc, &argv));
    int num = types();
    OK(MPI_Win_allocate(64, 4, MPI_INFO_NULL, self, &base, &win));
    MPI_File file;
    OK(MPI_File_open(self, "mpi_t_event_no_allocation.data", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    /* The counter sees the library. */
    MPI_Info info;
    long long none = allocations;
    OK(MPI_Info_create(&info));
    CHECK(allocations > none);
    OK(MPI_Info_free(&info));
    for (int size = 0; size < 3; size++)
        for (int i = 0; i < num; i++) {
            int bind = bind_of(i);
            void *object = bind == MPI_T_BIND_MPI_WIN ? (void *)&win : bind == MPI_T_BIND_MPI_FILE ? (void *)&file : &self;
            MPI_T_event_registration handle = handle_of(i, object, size * size);
            OK(MPI_T_event_set_dropped_handler(handle, on_drop));
            OK(MPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL, NULL, on_event));
        }
    messages(10); /* what is made once: requests, the thread's source */
    long long before = allocations, before_sends = seen;
    messages(200);
    long long made = allocations - before;
    SAME(made, 0);
    CHECK(seen - before_sends > 5000);
    CHECK(dropped > 0);
    OK(MPI_File_close(&file));
    OK(MPI_Win_free(&win));
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return verdict();
}
