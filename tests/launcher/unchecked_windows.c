/* One-sided operations that access one place at once: mistakes of unchecked.c. */
#include "unchecked.h"

enum { WORDS = 16 };

static MPI_Win made(int **base) {
    MPI_Win win;
    MPI_Win_allocate(WORDS * sizeof **base, sizeof **base, MPI_INFO_NULL, halo, base, &win);
    MPI_Win_set_name(win, "shelf");
    return win;
}

/* Between two fences, at rank 1; a barrier orders nothing there.
 * Then with all locked, where nothing is flushed between the two. */
void accessed_by_two(void) {
    int *base, value[WORDS] = {0};
    MPI_Win win = made(&base);
    MPI_Datatype even;
    MPI_Type_vector(3, 1, 2, MPI_INT, &even);
    MPI_Type_commit(&even);
    MPI_Win_fence(0, win);
    if (rank == 0) MPI_Put(value, 3, MPI_INT, 1, 2, 1, even, win);
    MPI_Barrier(halo);
    if (rank == 1) {
        MPI_Get(value, 1, MPI_INT, 1, 3, 1, MPI_INT, win);
        MPI_Get(value + 1, 2, MPI_INT, 1, 5, 2, MPI_INT, win);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Put(value, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
        MPI_Win_flush_local(1, win);
        MPI_Put(value + 1, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
    }
    MPI_Barrier(halo);
    if (rank == 1) MPI_Accumulate(value, 1, MPI_INT, 1, 0, 1, MPI_INT, MPI_SUM, win);
    if (rank == 1) MPI_Fetch_and_op(NULL, value + 4, MPI_INT, 1, 0, MPI_NO_OP, win);
    MPI_Barrier(halo);
    MPI_Win_unlock_all(win);
    MPI_Type_free(&even);
    MPI_Win_free(&win);
}

/* Rank 1 receives into its window while it may be put there; then beside it, and when that is over. */
void received_where_others_put(void) {
    int *base, value[WORDS] = {0};
    MPI_Win win = made(&base);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        MPI_Put(value, 4, MPI_INT, 1, 2, 4, MPI_INT, win);
        MPI_Barrier(halo);
        MPI_Send(value, 2, MPI_INT, 1, 7, halo);
        MPI_Send(value, 2, MPI_INT, 1, 7, halo);
        MPI_Barrier(halo);
        MPI_Win_unlock(1, win);
        MPI_Barrier(halo);
        MPI_Send(value, 4, MPI_INT, 1, 7, halo);
    } else if (rank == 1) {
        MPI_Barrier(halo);
        MPI_Recv(base + 5, 2, MPI_INT, 0, 7, halo, MPI_STATUS_IGNORE);
        MPI_Recv(base, 2, MPI_INT, 0, 7, halo, MPI_STATUS_IGNORE);
        MPI_Barrier(halo);
        MPI_Barrier(halo);
        MPI_Recv(base + 2, 4, MPI_INT, 0, 7, halo, MPI_STATUS_IGNORE);
    }
    MPI_Win_free(&win);
}

/* One after the other, beside each other, at different targets, or of a kind that may be at once. */
void accesses_fit(void) {
    int *base, value[WORDS] = {0}, got[WORDS];
    MPI_Win win = made(&base);
    MPI_Request request;
    int next = (rank + 1) % size;
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    for (int round = 0; round < 4; round++) {
        MPI_Put(value, 1, MPI_INT, next, round % 2, 1, MPI_INT, win);
        MPI_Get(got, 1, MPI_INT, 0, 2, 1, MPI_INT, win);
        MPI_Accumulate(value, 2, MPI_INT, 0, 4, 2, MPI_INT, MPI_SUM, win);
        MPI_Fetch_and_op(value, got + 1, MPI_INT, 0, 5, MPI_REPLACE, win);
        MPI_Win_fence(round == 3 ? MPI_MODE_NOSUCCEED : 0, win);
        /* It was put there before the fence, and the next time it will be put beside it. */
        MPI_Bcast(base + round % 2, 1, MPI_INT, 0, halo);
    }
    for (int round = 0; round < 4; round++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Get(got, 1, MPI_INT, 0, 7, 1, MPI_INT, win);
        MPI_Win_flush(0, win);
        MPI_Put(got, 1, MPI_INT, 0, 7, 1, MPI_INT, win);
        MPI_Win_unlock(0, win);
    }
    /* Nobody waits for a lock any more when others hold theirs across barriers. */
    MPI_Barrier(halo);
    MPI_Win_lock_all(0, win);
    for (int turn = 0; turn < size; turn++) {
        if (turn == rank) {
            MPI_Rget(got, 1, MPI_INT, 0, 9, 1, MPI_INT, win, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Put(value, 1, MPI_INT, 0, 9, 1, MPI_INT, win);
            MPI_Win_flush_all(win);
            MPI_Get(got, 1, MPI_INT, 0, 9, 1, MPI_INT, win);
            MPI_Win_flush_local(0, win);
        }
        MPI_Barrier(halo);
    }
    /* With MPI_NO_OP all may read at once, by MPI_Get too, or beside updates. */
    MPI_Fetch_and_op(NULL, got, MPI_INT, 0, 10, MPI_NO_OP, win);
    MPI_Get_accumulate(NULL, 0, MPI_INT, got + 1, 1, MPI_INT, 0, 10, 1, MPI_INT, MPI_NO_OP, win);
    MPI_Get(got + 2, 1, MPI_INT, 0, 10, 1, MPI_INT, win);
    MPI_Fetch_and_op(NULL, got + 3, MPI_INT, 0, 11, MPI_NO_OP, win);
    MPI_Accumulate(value, 1, MPI_INT, 0, 11, 1, MPI_INT, MPI_SUM, win);
    MPI_Barrier(halo);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* The first fence has nothing to end. */
void fence_asserts_wrongly(void) {
    int *base, value = 0;
    MPI_Win win = made(&base);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    if (rank == 0) MPI_Put(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    MPI_Win_free(&win);
}
