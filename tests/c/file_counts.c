/* Performance variables of files: accesses, bytes, and waits for the locks of atomic mode.
 * RANKS: 2
 */
#include "mpi_t_counter.h"
#include "mpi_t_event.h"
#include <fcntl.h>
#include <unistd.h>

static int to_holder;

/* Tells the process that holds the lock that this one waits for it. */
static void on_wait(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    (void)instance, (void)handle, (void)level, (void)data;
    SAME(write(to_holder, "w", 1), 1);
}

/* The same for a variable that adds up sizes. */
static MPI_T_pvar_handle aggregate(const char *name)
{
    int index, count;
    MPI_T_pvar_handle handle;
    OK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_AGGREGATE, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
    OK(MPI_T_pvar_start(session, handle));
    return handle;
}

int main(int argc, char **argv)
{
    enum { WORDS = 1000 };
    static int words[WORDS];
    int rank, size, provided;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_T_pvar_session_create(&session));
    MPI_T_pvar_handle reads = counter("file_reads"), writes = counter("file_writes"), waits = counter("file_lock_waits");
    MPI_T_pvar_handle got = aggregate("file_bytes_read"), put = aggregate("file_bytes_written");
    char name[64];
    int id = (int)getpid();
    MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(name, sizeof name, "file_counts.%d", id);
    MPI_File file;
    MPI_Datatype strided;
    MPI_Request request;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_Type_vector(WORDS, 1, size, MPI_INT, &strided));
    OK(MPI_Type_commit(&strided));
    OK(MPI_File_set_view(file, rank * (int)sizeof(int), MPI_INT, strided, "native", MPI_INFO_NULL));
    OK(MPI_File_write_at(file, 0, words, WORDS, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_write_at_all(file, 0, words, WORDS, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_iread_at(file, 0, words, WORDS, MPI_INT, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    SAME(read_of(writes), 2);
    SAME(read_of(put), 2 * WORDS * sizeof(int));
    SAME(read_of(reads), 1);
    SAME(read_of(got), WORDS * sizeof(int));

    /* Somebody else holds the lock until this rank waits. */
    OK(MPI_File_set_atomicity(file, 1));
    OK(MPI_File_write_at(file, 0, words, 1, MPI_INT, MPI_STATUS_IGNORE));
    int ready[2], waiting[2];
    char byte;
    if (pipe(ready) != 0 || pipe(waiting) != 0) return 2;
    to_holder = waiting[1];
    MPI_T_event_registration event = listen_to(type_of("PERUSAL_FILE_LOCK_WAIT_BEGIN"), &file, 0, on_wait, NULL);
    if (fork() == 0) {
        int fd = open(name, O_RDWR);
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        if (fcntl(fd, F_SETLKW, &lock) != 0) _exit(1);
        if (write(ready[1], "x", 1) != 1) _exit(1);
        _exit(read(waiting[0], &byte, 1) != 1);
    }
    SAME(read(ready[0], &byte, 1), 1);
    unsigned long long before = read_of(waits);
    OK(MPI_File_write_at(file, 0, words, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(read_of(waits) > before);
    OK(MPI_T_event_handle_free(event, NULL, NULL));
    OK(MPI_Type_free(&strided));
    OK(MPI_File_close(&file));
    MPI_Finalize();
    OK(MPI_T_finalize());
    return verdict();
}
