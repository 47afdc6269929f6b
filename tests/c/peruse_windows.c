/* PERUSE on windows (PERUSE 2.0 appendix E): the events of an operation and of a synchronisation, what they say,
 * and every misuse.
 * RANKS: 1 2
 */
#include "peruse_scene.h"
#include <stdint.h>

static const int events[] = {PERUSE_WIN_REQ_ACTIVATE, PERUSE_WIN_REQ_XFER_BEGIN, PERUSE_WIN_REQ_XFER_END,
                             PERUSE_WIN_REQ_COMPLETE, PERUSE_WIN_SYNC_BEGIN, PERUSE_WIN_SYNC_END};
static const char letters[] = "ABECse";
static peruse_win_spec_t specs[MOST];
static char name[MPI_MAX_OBJECT_NAME];

static int on_event(peruse_event_h handle, MPI_Aint id, peruse_win_spec_t *spec, void *param)
{
    int event, length;
    void *object;
    OK(PERUSE_Event_get(handle, &event));
    OK(PERUSE_Event_object_get(handle, &object));
    CHECK((MPI_Win)object == spec->win);
    /* A name may be asked for in a callback. */
    OK(MPI_Win_get_name(spec->win, name, &length));
    SAME(event, events[(const char *)param - letters]);
    if (note(*(const char *)param, id)) specs[count - 1] = *spec;
    return MPI_SUCCESS;
}

static int on_other(peruse_event_h handle, MPI_Aint id, peruse_win_spec_t *spec, void *param)
{
    (void)handle, (void)id, (void)spec, (void)param;
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    MPI_Win win;
    MPI_Datatype pairs;
    long *base, values[8] = {1, 2, 3}, old;
    int rank, size, number, *numbers;
    char **names;
    peruse_event_h handles[6], wrong = 5;
    peruse_win_callback_f *function;
    peruse_comm_callback_f *comm_function;
    void *param;
    OK(MPI_Init(&argc, &argv));
    OK(PERUSE_Init());
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int next = (rank + 1) % size;
    OK(MPI_Type_contiguous(2, MPI_LONG, &pairs));
    OK(MPI_Type_commit(&pairs));
    OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_set_name(win, "shelf"));

    OK(PERUSE_Query_supported_events(&number, &names, &numbers));
    int found = 0;
    for (int i = 0; i < number; i++) found += strncmp(names[i], "PERUSE_WIN_", 11) == 0;
    SAME(found, 6);
    OK(PERUSE_Query_event("PERUSE_WIN_SYNC_END", &number));
    SAME(number, PERUSE_WIN_SYNC_END);

    for (int i = 0; i < 6; i++) {
        OK(PERUSE_Event_win_register(events[i], win, on_event, (void *)&letters[i], &handles[i]));
        OK(PERUSE_Event_activate(handles[i]));
    }
    OK(MPI_Win_fence(0, win));
    SAME(specs[0].operation, PERUSE_WIN_FENCE);
    SAME(specs[0].peer, -1);
    CHECK(specs[0].win == win && specs[0].o_buf == NULL && specs[0].o_datatype == MPI_DATATYPE_NULL);
    CHECK(specs[0].acc_op == MPI_OP_NULL);
    SAME(strcmp(name, "shelf"), 0);
    scene("fence", "se");
    OK(MPI_Put(values, 2, MPI_LONG, next, 1, 1, pairs, win));
    SAME(specs[0].operation, PERUSE_PUT);
    SAME(specs[0].peer, next);
    CHECK(specs[0].win == win && specs[0].o_buf == values && specs[0].o_count == 2);
    CHECK(specs[0].o_datatype == MPI_LONG && specs[0].t_count == 1 && specs[0].t_datatype == pairs);
    CHECK(specs[0].acc_op == MPI_OP_NULL && specs[0].t_buf != NULL);
    if (size == 1) CHECK(specs[0].t_buf == base + 1);
    scene("put", "ABEC");
    OK(MPI_Get(values, 1, MPI_LONG, next, 0, 1, MPI_LONG, win));
    SAME(specs[3].operation, PERUSE_GET);
    scene("get", "ABEC");
    OK(MPI_Accumulate(values, 1, MPI_LONG, next, 0, 1, MPI_LONG, MPI_BXOR, win));
    SAME(specs[0].operation, PERUSE_ACC);
    CHECK(specs[0].acc_op == MPI_BXOR);
    scene("accumulate", "ABEC");
    OK(MPI_Fetch_and_op(NULL, &old, MPI_LONG, next, 0, MPI_NO_OP, win));
    CHECK(specs[0].acc_op == MPI_NO_OP && specs[0].o_datatype == MPI_LONG);
    scene("fetch_and_op", "ABEC");
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    scene("fence", "se");
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
    SAME(specs[0].operation, PERUSE_WIN_LOCK);
    SAME(specs[0].peer, next);
    scene("lock", "se");
    OK(MPI_Win_flush_local(next, win));
    SAME(specs[1].operation, PERUSE_WIN_FLUSH);
    scene("flush", "se");
    OK(MPI_Win_unlock(next, win));
    SAME(specs[1].operation, PERUSE_WIN_UNLOCK);
    scene("unlock", "se");

    /* Handles of windows are like those of communicators. */
    OK(PERUSE_Event_deactivate(handles[0]));
    OK(MPI_Win_fence(0, win));
    count = 0;
    OK(MPI_Put(values, 0, MPI_LONG, next, 0, 0, MPI_LONG, win));
    scene("put of nothing without ACTIVATE", "BEC");
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    count = 0;
    OK(PERUSE_Event_win_callback_get(handles[0], &function, &param));
    CHECK(function == on_event && param == (void *)&letters[0]);
    OK(PERUSE_Event_win_callback_set(handles[0], on_other, NULL));
    SAME(PERUSE_Event_win_callback_set(handles[1], on_other, NULL), PERUSE_ERR_EVENT_HANDLE);
    SAME(PERUSE_Event_win_callback_set(handles[0], NULL, NULL), PERUSE_ERR_PARAMETER);
    /* A function for another kind of event would be called with another kind of spec. */
    SAME(PERUSE_Event_comm_callback_set(handles[0], on_comm, NULL), PERUSE_ERR_EVENT_HANDLE);
    SAME(PERUSE_Event_comm_callback_get(handles[0], &comm_function, &param), PERUSE_ERR_EVENT_HANDLE);
    SAME(PERUSE_Event_win_register(PERUSE_COMM_REQ_ACTIVATE, win, on_event, NULL, &wrong), PERUSE_ERR_EVENT);
    SAME(wrong, PERUSE_EVENT_HANDLE_NULL);
    SAME(PERUSE_Event_comm_register(PERUSE_WIN_REQ_ACTIVATE, MPI_COMM_WORLD, on_comm, NULL, &wrong), PERUSE_ERR_EVENT);
    SAME(PERUSE_Event_win_register(PERUSE_WIN_SYNC_END, MPI_WIN_NULL, on_event, NULL, &wrong), PERUSE_ERR_WIN);
    SAME(PERUSE_Event_win_register(PERUSE_WIN_SYNC_END, win, NULL, NULL, &wrong), PERUSE_ERR_PARAMETER);
    MPI_Win gone = win;
    OK(MPI_Win_free(&win));
    SAME(PERUSE_Event_win_register(PERUSE_WIN_SYNC_END, gone, on_event, NULL, &wrong), PERUSE_ERR_WIN);
    SAME(PERUSE_Event_activate(handles[0]), PERUSE_ERR_MPI_OBJECT);
    for (int i = 0; i < 6; i++) SAME(PERUSE_Event_release(&handles[i]), PERUSE_ERR_MPI_OBJECT);
    SAME(handles[0], PERUSE_EVENT_HANDLE_NULL);
    OK(MPI_Type_free(&pairs));
    OK(MPI_Finalize());
    return failures != 0;
}
