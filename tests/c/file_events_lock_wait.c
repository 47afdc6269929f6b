/* MPI_T: an atomic access that waits for another rank's lock says so, with the part of the file;
 * one that is alone waits for nothing.
 * RANKS: 2
 */
#include "mpi_t_event.h"
#include <fcntl.h>
#include <unistd.h>

static int begun, ended, acquired, released, completed, places[4], kind;
static uint64_t ids[2], offset, bytes;
static uint32_t length, accesses;
static int to_parent;

static void on_wait(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    int end = *(int *)data;
    (void)handle, (void)level;
    *(end ? &ended : &begun) += 1;
    OK(MPI_T_event_read(instance, 0, &ids[end]));
    OK(MPI_T_event_read(instance, places[0], &offset));
    OK(MPI_T_event_read(instance, places[1], &length));
    OK(MPI_T_event_read(instance, places[2], &kind));
    if (!end && write(to_parent, "w", 1) != 1) failures++;
}

static void on_count(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    (void)instance, (void)handle, (void)level;
    ++*(int *)data;
}

static void on_complete(MPI_T_event_instance instance, MPI_T_event_registration handle, MPI_T_cb_safety level, void *data)
{
    (void)handle, (void)level, (void)data;
    completed++;
    OK(MPI_T_event_read(instance, places[3], &accesses));
    OK(MPI_T_event_read(instance, element_of(type_of("PERUSE_FILE_REQ_COMPLETE"), "bytes"), &bytes));
}

int main(int argc, char **argv)
{
    static int ends[] = {0, 1};
    MPI_T_event_registration handles[5];
    MPI_File file;
    int rank, words[100] = {0}, id = (int)getpid(), ready[2], waits[2];
    char name[64], byte;
    initialise_tools();
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(name, sizeof name, "file_events_lock_wait.%d", id);
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_set_atomicity(file, 1));
    int type = type_of("PERUSAL_FILE_LOCK_WAIT_BEGIN");
    places[0] = element_of(type, "offset");
    places[1] = element_of(type, "length");
    places[2] = element_of(type, "lock");
    SAME(element_of(type, "id"), 0);
    handles[0] = listen_to(type, &file, 0, on_wait, &ends[0]);
    handles[1] = listen_to(type_of("PERUSAL_FILE_LOCK_WAIT_END"), &file, 0, on_wait, &ends[1]);
    handles[2] = listen_to(type_of("PERUSAL_FILE_LOCK_ACQUIRED"), &file, 0, on_count, &acquired);
    handles[3] = listen_to(type_of("PERUSAL_FILE_LOCK_RELEASED"), &file, 0, on_count, &released);
    places[3] = element_of(type_of("PERUSE_FILE_REQ_COMPLETE"), "disk_accesses");
    handles[4] = listen_to(type_of("PERUSE_FILE_REQ_COMPLETE"), &file, 0, on_complete, NULL);
    if (rank == 1) {
        OK(MPI_File_write_at(file, 4000, words, 100, MPI_INT, MPI_STATUS_IGNORE));
        SAME(begun, 0);
        SAME(acquired, 1);
        SAME(released, 1);
        SAME(completed, 1);
        SAME(bytes, 400);
        SAME(accesses, 1);
        /* Another process holds the lock until it hears that somebody waits. */
        if (pipe(ready) != 0 || pipe(waits) != 0) return 2;
        to_parent = waits[1];
        if (fork() == 0) {
            int fd = open(name, O_RDWR);
            struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
            if (fcntl(fd, F_SETLKW, &lock) != 0 || write(ready[1], "x", 1) != 1) _exit(1);
            _exit(read(waits[0], &byte, 1) != 1);
        }
        SAME(read(ready[0], &byte, 1), 1);
        OK(MPI_File_read_at(file, 4000, words, 10, MPI_INT, MPI_STATUS_IGNORE));
        SAME(begun, 1);
        SAME(ended, 1);
        SAME(kind, 1);
        SAME(offset, 4000);
        SAME(length, 40);
        CHECK(ids[0] != 0 && ids[0] == ids[1]);
        SAME(acquired, 2);
        SAME(released, 2);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 5; i++) OK(MPI_T_event_handle_free(handles[i], NULL, NULL));
    OK(MPI_File_close(&file));
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return failures != 0;
}
