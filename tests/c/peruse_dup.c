/* Handles that propagate are heard on every kind of duplicate; handles of a freed communicator are dead but for their
 * release (PERUSE 2.0 sections 5.2.10, 5.2.15, 5.4 and 5.6).
 * RANKS: 1 2
 */
#include "check.h"
#include <peruse.h>

static MPI_Comm last;

static int on_event(peruse_event_h handle, MPI_Aint id, peruse_comm_spec_t *spec, void *param)
{
    (void)handle, (void)id;
    ++*(int *)param;
    last = spec->comm;
    return MPI_SUCCESS;
}

static int heard_on(MPI_Comm comm, int *counter)
{
    int before = *counter;
    last = MPI_COMM_NULL;
    OK(MPI_Send(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, comm));
    if (*counter > before) CHECK(last == comm);
    return *counter - before;
}

int main(int argc, char **argv)
{
    MPI_Comm original, copy[3], other;
    peruse_event_h goes, stays, dead;
    int going = 0, staying = 0, event;
    void *object;
    MPI_Init(&argc, &argv);
    OK(PERUSE_Init());
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &original));
    OK(PERUSE_Event_comm_register(PERUSE_COMM_REQ_ACTIVATE, original, on_event, &going, &goes));
    OK(PERUSE_Event_comm_register(PERUSE_COMM_REQ_ACTIVATE, original, on_event, &staying, &stays));
    OK(PERUSE_Event_propagate(goes, PERUSE_TRUE));
    OK(PERUSE_Event_activate(goes));
    OK(PERUSE_Event_activate(stays));

    OK(MPI_Comm_dup(original, &copy[0]));
    OK(MPI_Comm_dup_with_info(copy[0], MPI_INFO_NULL, &copy[1]));
    OK(MPI_Comm_dup(copy[1], &copy[2]));
    OK(MPI_Comm_split(original, 0, 0, &other));
    SAME(heard_on(original, &going), 1);
    SAME(heard_on(original, &staying), 1);
    for (int i = 0; i < 3; i++) {
        SAME(heard_on(copy[i], &going), 1);
        SAME(heard_on(copy[i], &staying), 0);
    }
    SAME(heard_on(other, &going), 0); /* not a duplicate */
    SAME(heard_on(MPI_COMM_WORLD, &going), 0);
    OK(PERUSE_Event_object_get(goes, &object));
    CHECK((MPI_Comm)object == original);

    OK(MPI_Comm_free(&copy[0]));
    SAME(heard_on(copy[1], &going), 1);
    OK(PERUSE_Event_deactivate(goes));
    SAME(heard_on(copy[1], &going), 0);
    OK(PERUSE_Event_activate(goes));

    dead = goes;
    OK(MPI_Comm_free(&original));
    SAME(heard_on(copy[1], &going), 0);
    SAME(PERUSE_Event_activate(goes), PERUSE_ERR_MPI_OBJECT);
    SAME(PERUSE_Event_deactivate(goes), PERUSE_ERR_MPI_OBJECT);
    SAME(PERUSE_Event_get(goes, &event), PERUSE_ERR_MPI_OBJECT);
    SAME(PERUSE_Event_release(&goes), PERUSE_ERR_MPI_OBJECT);
    CHECK(goes == PERUSE_EVENT_HANDLE_NULL);
    SAME(PERUSE_Event_release(&dead), PERUSE_ERR_EVENT_HANDLE);
    SAME(PERUSE_Event_release(&stays), PERUSE_ERR_MPI_OBJECT);

    OK(MPI_Comm_free(&copy[1]));
    OK(MPI_Comm_free(&copy[2]));
    OK(MPI_Comm_free(&other));
    MPI_Finalize();
    return verdict();
}
