/* Memory of another rank that it has not attached to a dynamic window is MPI_ERR_RMA_RANGE, wherever it lies
 * (MPI 5.0 sections 12.2.4 and 12.6.2), also when it was attached before, or is attached to another window; nothing is
 * moved. What is attached can be accessed while other memory is attached and detached.
 * RANKS: 2 3
 */
#include "check.h"

enum { INTS = 4096, REGIONS = 700 };

static int rank, size, next, previous;

static MPI_Aint address_of_next(void *own)
{
    MPI_Aint mine, theirs;
    OK(MPI_Get_address(own, &mine));
    OK(MPI_Sendrecv(&mine, 1, MPI_AINT, previous, 0, &theirs, 1, MPI_AINT, next, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return theirs;
}

/* Every operation on an int at that address of the next rank gives this class. */
static void all_operations(MPI_Win win, MPI_Aint there, int wanted)
{
    int one = 1, got = -1, zero = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    CLASS(MPI_Put(&one, 1, MPI_INT, next, there, 1, MPI_INT, win), wanted);
    CLASS(MPI_Get(&got, 1, MPI_INT, next, there, 1, MPI_INT, win), wanted);
    CLASS(MPI_Accumulate(&one, 1, MPI_INT, next, there, 1, MPI_INT, MPI_SUM, win), wanted);
    CLASS(MPI_Get_accumulate(&one, 1, MPI_INT, &got, 1, MPI_INT, next, there, 1, MPI_INT, MPI_SUM, win), wanted);
    CLASS(MPI_Fetch_and_op(&one, &got, MPI_INT, next, there, MPI_SUM, win), wanted);
    CLASS(MPI_Compare_and_swap(&one, &zero, &got, MPI_INT, next, there, win), wanted);
    CLASS(MPI_Rput(&one, 1, MPI_INT, next, there, 1, MPI_INT, win, &request), wanted);
    if (wanted == MPI_SUCCESS) OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CLASS(MPI_Rget(&got, 1, MPI_INT, next, there, 1, MPI_INT, win, &request), wanted);
    if (wanted == MPI_SUCCESS) OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (wanted != MPI_SUCCESS) SAME(got, -1);
}

static void parts(MPI_Win win, MPI_Win other, int *memory)
{
    MPI_Aint theirs = address_of_next(memory);
    MPI_Datatype apart;
    int two[2] = {7, 8};
    for (int i = 0; i < INTS; i++) memory[i] = 0;
    OK(MPI_Type_create_hindexed_block(2, 1, (MPI_Aint[]){0, 400}, MPI_INT, &apart));
    OK(MPI_Type_commit(&apart));
    OK(MPI_Win_attach(win, memory, 64));
    OK(MPI_Win_attach(win, memory + 100, 64));
    OK(MPI_Win_attach(other, memory + 1024, 64));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    all_operations(win, theirs, MPI_SUCCESS);
    all_operations(win, theirs + 60, MPI_SUCCESS);
    all_operations(win, theirs + 400, MPI_SUCCESS);
    /* Half of it, or all, beside what is attached; attached to the other window; far from all. */
    const MPI_Aint wrong[] = {62, 64, 396, 398, 464, -4, 4096, 4 * INTS - 4};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) all_operations(win, theirs + wrong[i], MPI_ERR_RMA_RANGE);
    /* A hole between two regions may be in a type's hole, not in its data. */
    OK(MPI_Put(two, 2, MPI_INT, next, theirs, 1, apart, win));
    CLASS(MPI_Put(two, 2, MPI_INT, next, theirs + 64, 1, apart, win), MPI_ERR_RMA_RANGE);
    CLASS(MPI_Put(memory, 101, MPI_INT, next, theirs, 101, MPI_INT, win), MPI_ERR_RMA_RANGE);
    CLASS(MPI_Put(memory, 0, MPI_INT, next, theirs + 64, 0, MPI_INT, win), MPI_SUCCESS);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    SAME(memory[0], 7);
    SAME(memory[100], 8);
    for (int i = 16; i < 100; i++) SAME(memory[i], 0);
    OK(MPI_Win_detach(win, memory));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win));
    all_operations(win, theirs, MPI_ERR_RMA_RANGE);
    all_operations(win, theirs + 400, MPI_SUCCESS);
    OK(MPI_Win_unlock(next, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_detach(win, memory + 100));
    OK(MPI_Win_detach(other, memory + 1024));
    OK(MPI_Type_free(&apart));
}

/* More regions than any table has room for, the last ones attached while the first ones are accessed. */
static void many(MPI_Win win, int *memory)
{
    MPI_Aint theirs = address_of_next(memory);
    int got;
    for (int i = 0; i < INTS; i++) memory[i] = rank + i;
    for (int i = 0; i < 300; i++) OK(MPI_Win_attach(win, memory + 4 * i, 4));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    for (int i = 0; i < REGIONS; i++) {
        if (i >= 300) OK(MPI_Win_attach(win, memory + 4 * i, 4));
        if (i >= 350) OK(MPI_Win_detach(win, memory + 4 * i));
        if (i >= 350) OK(MPI_Win_attach(win, memory + 4 * i, 8));
        OK(MPI_Get(&got, 1, MPI_INT, next, theirs + 16 * (i % 300), 1, MPI_INT, win));
        OK(MPI_Win_flush_local(next, win));
        SAME(got, next + 4 * (i % 300));
        CLASS(MPI_Get(&got, 1, MPI_INT, next, theirs + 16 * (i % 300) + 12, 1, MPI_INT, win), MPI_ERR_RMA_RANGE);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < REGIONS; i++) {
        const int wanted = i < 350 ? MPI_ERR_RMA_RANGE : MPI_SUCCESS;
        CLASS(MPI_Get(&got, 1, MPI_INT, next, theirs + 16 * i + 4, 1, MPI_INT, win), wanted);
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < REGIONS; i++) OK(MPI_Win_detach(win, memory + 4 * (REGIONS - 1 - i)));
}

int main(int argc, char **argv)
{
    static int fixed[INTS];
    int *given, *heap = malloc(INTS * sizeof *heap);
    MPI_Win win, other;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    next = (rank + 1) % size, previous = (rank + size - 1) % size;
    OK(MPI_Alloc_mem(INTS * sizeof *given, MPI_INFO_NULL, &given));
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &other));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    for (int i = 0; i < 2; i++) {
        parts(win, other, fixed);
        parts(win, other, given);
        parts(win, other, heap);
        many(win, fixed);
        many(win, given);
    }
    OK(MPI_Win_free(&other));
    OK(MPI_Win_free(&win));
    OK(MPI_Free_mem(given));
    free(heap);
    MPI_Finalize();
    return verdict();
}
