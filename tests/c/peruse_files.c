/* PERUSE on files (PERUSE 2.0 appendix E): the events of accesses of each form, what they say, and every misuse.
 * RANKS: 1 2
 */
#include "peruse_scene.h"
#include <unistd.h>

enum { WORDS = 100 };
static const int events[] = {PERUSE_FILE_REQ_ACTIVATE,  PERUSE_FILE_REQ_XFER_BEGIN, PERUSE_FILE_REQ_XFER_END,
                             PERUSE_FILE_REQ_COMPLETE,  PERUSE_FILE_DISK_ACCESS,    PERUSE_FILE_SHARED_POINTER_BEGIN,
                             PERUSE_FILE_SHARED_POINTER_END};
static const char letters[] = "ABECdpq";
static peruse_file_spec_t specs[MOST];

static int on_event(peruse_event_h handle, MPI_Aint id, peruse_file_spec_t *spec, void *param)
{
    int event;
    void *object;
    OK(PERUSE_Event_get(handle, &event));
    OK(PERUSE_Event_object_get(handle, &object));
    CHECK((MPI_File)object == spec->file);
    SAME(event, events[(const char *)param - letters]);
    if (note(*(const char *)param, id)) specs[count - 1] = *spec;
    return MPI_SUCCESS;
}

static int on_other(peruse_event_h handle, MPI_Aint id, peruse_file_spec_t *spec, void *param)
{
    (void)handle, (void)id, (void)spec, (void)param;
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    MPI_File file;
    MPI_Request request;
    MPI_Datatype sparse;
    int words[WORDS] = {0}, rank, size, number, *numbers, id = (int)getpid();
    char **names, name[64];
    peruse_event_h handles[7], wrong = 5;
    peruse_file_callback_f *function;
    peruse_comm_callback_f *comm_function;
    void *param;
    OK(MPI_Init(&argc, &argv));
    OK(PERUSE_Init());
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(name, sizeof name, "peruse_files.%d", id);
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));

    OK(PERUSE_Query_supported_events(&number, &names, &numbers));
    int found = 0;
    for (int i = 0; i < number; i++) found += strncmp(names[i], "PERUSE_FILE_", 12) == 0;
    SAME(found, 7);
    OK(PERUSE_Query_event("PERUSE_FILE_N_DISK_ACCESSES_PER_IOREQ", &number));
    SAME(number, PERUSE_FILE_DISK_ACCESS);

    for (int i = 0; i < 7; i++) {
        OK(PERUSE_Event_file_register(events[i], file, on_event, (void *)&letters[i], &handles[i]));
        OK(PERUSE_Event_activate(handles[i]));
    }
    OK(MPI_File_write_at(file, 40 * rank, words, 10, MPI_INT, MPI_STATUS_IGNORE));
    SAME(specs[0].operation, PERUSE_IO_WRITE);
    SAME(specs[0].count, 10);
    SAME(specs[0].offset, 40 * rank);
    CHECK(specs[0].file == file && specs[0].buf == words && specs[0].datatype == MPI_INT);
    scene("write_at", "ABdEC");
    OK(MPI_File_read(file, words, 1, MPI_INT, MPI_STATUS_IGNORE));
    SAME(specs[0].operation, PERUSE_IO_READ);
    SAME(specs[0].offset, 0);
    scene("read", "ABdEC");
    OK(MPI_File_write_shared(file, words, 1, MPI_INT, MPI_STATUS_IGNORE));
    SAME(specs[0].offset, -1);
    CHECK(specs[3].offset >= 0);
    scene("write_shared", "ApqBdEC");
    OK(MPI_File_write_ordered(file, words, 1, MPI_INT, MPI_STATUS_IGNORE));
    scene("write_ordered", "ApqBdEC");
    OK(MPI_File_write_at_all(file, 4 * WORDS * rank, words, WORDS, MPI_INT, MPI_STATUS_IGNORE));
    scene("write_at_all", "ABdEC");
    OK(MPI_File_write_all_begin(file, words, 1, MPI_INT));
    scene("write_all_begin", "ABdEC");
    OK(MPI_File_write_all_end(file, words, MPI_STATUS_IGNORE));
    scene("write_all_end", "");
    /* What a thread does in the background raises nothing: callbacks run in calls of the program alone. */
    OK(MPI_File_iread_at(file, 0, words, 2, MPI_INT, &request));
    SAME(specs[0].offset, 0);
    MPI_Aint begun = ids[0];
    scene("iread_at", "A");
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(ids[0] == begun);
    scene("wait", "C");
    OK(MPI_File_read_at(file, 0, words, 0, MPI_INT, MPI_STATUS_IGNORE));
    scene("read of nothing", "ABEC");

    /* Each run of a strided access that is written alone is an access to the file system. */
    OK(MPI_Type_create_resized(MPI_INT, 0, 1 << 16, &sparse));
    OK(MPI_Type_commit(&sparse));
    OK(MPI_File_set_view(file, 0, MPI_INT, sparse, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(file, 0, words, 1, MPI_INT, MPI_STATUS_IGNORE));
    scene("read in a view", "ABdEC");
    if (rank == 0) OK(MPI_File_write_at(file, 1, words, 3, MPI_INT, MPI_STATUS_IGNORE));
    if (rank == 0) SAME(specs[2].offset, 1 << 16);
    scene("write of three runs", rank == 0 ? "ABdddEC" : "");

    /* Handles of files are like those of communicators. */
    OK(PERUSE_Event_deactivate(handles[0]));
    OK(MPI_File_read_at(file, 0, words, 1, MPI_INT, MPI_STATUS_IGNORE));
    scene("read without ACTIVATE", "BdEC");
    OK(PERUSE_Event_file_callback_get(handles[0], &function, &param));
    CHECK(function == on_event && param == (void *)&letters[0]);
    OK(PERUSE_Event_file_callback_set(handles[0], on_other, NULL));
    SAME(PERUSE_Event_file_callback_set(handles[1], on_other, NULL), PERUSE_ERR_EVENT_HANDLE);
    SAME(PERUSE_Event_file_callback_set(handles[0], NULL, NULL), PERUSE_ERR_PARAMETER);
    SAME(PERUSE_Event_comm_callback_set(handles[0], on_comm, NULL), PERUSE_ERR_EVENT_HANDLE);
    SAME(PERUSE_Event_comm_callback_get(handles[0], &comm_function, &param), PERUSE_ERR_EVENT_HANDLE);
    SAME(PERUSE_Event_file_register(PERUSE_COMM_REQ_ACTIVATE, file, on_event, NULL, &wrong), PERUSE_ERR_EVENT);
    SAME(wrong, PERUSE_EVENT_HANDLE_NULL);
    SAME(PERUSE_Event_comm_register(PERUSE_FILE_REQ_ACTIVATE, MPI_COMM_WORLD, on_comm, NULL, &wrong), PERUSE_ERR_EVENT);
    SAME(PERUSE_Event_file_register(PERUSE_FILE_REQ_COMPLETE, MPI_FILE_NULL, on_event, NULL, &wrong), PERUSE_ERR_FILE);
    SAME(PERUSE_Event_file_register(PERUSE_FILE_REQ_COMPLETE, file, NULL, NULL, &wrong), PERUSE_ERR_PARAMETER);
    MPI_File gone = file;
    OK(MPI_Type_free(&sparse));
    OK(MPI_File_close(&file));
    SAME(PERUSE_Event_file_register(PERUSE_FILE_REQ_COMPLETE, gone, on_event, NULL, &wrong), PERUSE_ERR_FILE);
    SAME(PERUSE_Event_activate(handles[0]), PERUSE_ERR_MPI_OBJECT);
    for (int i = 0; i < 7; i++) SAME(PERUSE_Event_release(&handles[i]), PERUSE_ERR_MPI_OBJECT);
    OK(MPI_Finalize());
    return failures != 0;
}
