/* What is wrong about one-sided communication is an error of its class at the call that is wrong (MPI 5.0 section
 * 12.6).
 * RANKS: 2
 */
#include "check.h"

static int rank, size, next;
static int one = 1, got;

static void put_of(MPI_Win win, int expected) {
    CLASS(MPI_Put(&one, 1, MPI_INT, next, 0, 1, MPI_INT, win), expected);
    CLASS(MPI_Get(&got, 1, MPI_INT, next, 0, 1, MPI_INT, win), expected);
    CLASS(MPI_Accumulate(&one, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_SUM, win), expected);
    CLASS(MPI_Fetch_and_op(&one, &got, MPI_INT, next, 0, MPI_SUM, win), expected);
    CLASS(MPI_Compare_and_swap(&one, &one, &got, MPI_INT, next, 0, win), expected);
    CLASS(MPI_Get_accumulate(&one, 1, MPI_INT, &got, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_SUM, win), expected);
}

static void epochs(MPI_Win win) {
    MPI_Group group, peer;
    MPI_Request request;
    int flag;
    OK(MPI_Win_get_group(win, &group));
    OK(MPI_Group_incl(group, 1, &next, &peer));
    /* Nothing is open. */
    put_of(win, MPI_ERR_RMA_SYNC);
    CLASS(MPI_Rput(&one, 1, MPI_INT, next, 0, 1, MPI_INT, win, &request), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_unlock(next, win), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_flush(next, win), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_flush_all(win), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_flush_local(next, win), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_flush_local_all(win), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_wait(win), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_test(win, &flag), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_sync(win));
    /* A lock. */
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
    put_of(win, MPI_SUCCESS);
    CLASS(MPI_Put(&one, 1, MPI_INT, rank, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_start(peer, 0, win), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_unlock(rank, win), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_flush(rank, win), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_unlock(next, win));
    put_of(win, MPI_ERR_RMA_SYNC);
    OK(MPI_Win_lock_all(0, win));
    put_of(win, MPI_SUCCESS);
    CLASS(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_unlock(next, win), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_unlock_all(win));
    MPI_Barrier(MPI_COMM_WORLD);
    /* Fences. */
    OK(MPI_Win_fence(0, win));
    put_of(win, MPI_SUCCESS);
    CLASS(MPI_Rput(&one, 1, MPI_INT, next, 0, 1, MPI_INT, win, &request), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_start(peer, 0, win), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_flush(next, win), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    put_of(win, MPI_ERR_RMA_SYNC);
    /* Post and start. */
    OK(MPI_Win_post(peer, 0, win));
    CLASS(MPI_Win_post(peer, 0, win), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_start(peer, 0, win));
    CLASS(MPI_Win_start(peer, 0, win), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
    CLASS(MPI_Put(&one, 1, MPI_INT, rank, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    put_of(win, MPI_SUCCESS);
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    put_of(win, MPI_ERR_RMA_SYNC);
    OK(MPI_Group_free(&peer));
    OK(MPI_Group_free(&group));
    MPI_Barrier(MPI_COMM_WORLD);
}

static void sum(void *in, void *inout, int *n, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *n; i++) ((int *)inout)[i] += ((int *)in)[i];
}

static void arguments(MPI_Win win) {
    MPI_Op op;
    MPI_Datatype pair, open, mixed, types[] = {MPI_INT, MPI_DOUBLE};
    MPI_Aint places[] = {0, 8};
    int two[4] = {0}, ones[] = {1, 1};
    float real = 1;
    OK(MPI_Op_create(sum, 1, &op));
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_commit(&pair));
    OK(MPI_Type_contiguous(2, MPI_INT, &open));
    OK(MPI_Type_create_struct(2, ones, places, types, &mixed));
    OK(MPI_Type_commit(&mixed));
    OK(MPI_Win_lock_all(0, win));
    /* The memory of each is four integers. */
    CLASS(MPI_Put(&one, 1, MPI_INT, next, 4, 1, MPI_INT, win), MPI_ERR_RMA_RANGE);
    CLASS(MPI_Put(&one, 1, MPI_INT, next, -1, 1, MPI_INT, win), MPI_ERR_RMA_RANGE);
    CLASS(MPI_Get(two, 2, MPI_INT, next, 3, 1, pair, win), MPI_ERR_RMA_RANGE);
    CLASS(MPI_Accumulate(&one, 1, MPI_INT, next, 1LL << 60, 1, MPI_INT, MPI_SUM, win), MPI_ERR_RMA_RANGE);
    CLASS(MPI_Fetch_and_op(&one, &got, MPI_INT, next, 4, MPI_SUM, win), MPI_ERR_RMA_RANGE);
    CLASS(MPI_Compare_and_swap(&one, &one, &got, MPI_INT, next, 4, win), MPI_ERR_RMA_RANGE);
    /* Of no elements nothing is outside. */
    OK(MPI_Put(&one, 0, MPI_INT, next, 1000, 0, MPI_INT, win));
    OK(MPI_Get(two, 0, MPI_INT, next, -5, 0, pair, win));
    OK(MPI_Accumulate(&one, 0, MPI_INT, next, 1LL << 60, 0, MPI_INT, MPI_SUM, win));
    OK(MPI_Put(&one, 0, MPI_INT, next, 4, 0, MPI_INT, win));
    /* Ranks, counts, types, buffers. */
    CLASS(MPI_Put(&one, 1, MPI_INT, size, 0, 1, MPI_INT, win), MPI_ERR_RANK);
    CLASS(MPI_Get(&one, 1, MPI_INT, -7, 0, 1, MPI_INT, win), MPI_ERR_RANK);
    CLASS(MPI_Win_flush(size, win), MPI_ERR_RANK);
    CLASS(MPI_Put(&one, -1, MPI_INT, next, 0, 1, MPI_INT, win), MPI_ERR_COUNT);
    CLASS(MPI_Put(&one, 1, MPI_INT, next, 0, -1, MPI_INT, win), MPI_ERR_COUNT);
    CLASS(MPI_Put(&one, 1, MPI_INT, MPI_PROC_NULL, 0, -1, MPI_INT, win), MPI_ERR_COUNT);
    CLASS(MPI_Put(&one, 1, MPI_DATATYPE_NULL, next, 0, 1, MPI_INT, win), MPI_ERR_TYPE);
    CLASS(MPI_Put(&one, 1, MPI_INT, next, 0, 1, MPI_DATATYPE_NULL, win), MPI_ERR_TYPE);
    CLASS(MPI_Put(two, 1, open, next, 0, 2, MPI_INT, win), MPI_ERR_TYPE);
    CLASS(MPI_Get(two, 2, MPI_INT, next, 0, 1, open, win), MPI_ERR_TYPE);
    CLASS(MPI_Put(NULL, 1, MPI_INT, next, 0, 1, MPI_INT, win), MPI_ERR_BUFFER);
    CLASS(MPI_Put(MPI_IN_PLACE, 1, MPI_INT, next, 0, 1, MPI_INT, win), MPI_ERR_BUFFER);
    CLASS(MPI_Get(NULL, 1, MPI_INT, next, 0, 1, MPI_INT, win), MPI_ERR_BUFFER);
    CLASS(MPI_Fetch_and_op(NULL, &got, MPI_INT, next, 0, MPI_SUM, win), MPI_ERR_BUFFER);
    CLASS(MPI_Fetch_and_op(&one, NULL, MPI_INT, next, 0, MPI_SUM, win), MPI_ERR_BUFFER);
    CLASS(MPI_Compare_and_swap(&one, NULL, &got, MPI_INT, next, 0, win), MPI_ERR_BUFFER);
    CLASS(MPI_Put(two, 3, MPI_INT, next, 0, 2, MPI_INT, win), MPI_ERR_TRUNCATE);
    CLASS(MPI_Get(two, 1, MPI_INT, next, 0, 2, MPI_INT, win), MPI_ERR_TRUNCATE);
    /* Operations. */
    CLASS(MPI_Accumulate(&one, 1, MPI_INT, next, 0, 1, MPI_INT, op, win), MPI_ERR_OP);
    CLASS(MPI_Get_accumulate(&one, 1, MPI_INT, &got, 1, MPI_INT, next, 0, 1, MPI_INT, op, win), MPI_ERR_OP);
    CLASS(MPI_Fetch_and_op(&one, &got, MPI_INT, next, 0, op, win), MPI_ERR_OP);
    CLASS(MPI_Accumulate(&one, 0, MPI_INT, next, 0, 0, MPI_INT, op, win), MPI_ERR_OP);
    CLASS(MPI_Get_accumulate(&one, 0, MPI_INT, &got, 0, MPI_INT, next, 0, 0, MPI_INT, op, win), MPI_ERR_OP);
    CLASS(MPI_Accumulate(&one, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, op, win), MPI_ERR_OP);
    CLASS(MPI_Accumulate(&one, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_OP_NULL, win), MPI_ERR_OP);
    CLASS(MPI_Accumulate(&one, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_NO_OP, win), MPI_ERR_OP);
    CLASS(MPI_Accumulate(&real, 1, MPI_FLOAT, next, 0, 1, MPI_FLOAT, MPI_BAND, win), MPI_ERR_OP);
    CLASS(MPI_Accumulate(&one, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_MAXLOC, win), MPI_ERR_OP);
    CLASS(MPI_Accumulate(two, 1, mixed, next, 0, 1, mixed, MPI_SUM, win), MPI_ERR_TYPE);
    CLASS(MPI_Accumulate(&real, 1, MPI_FLOAT, next, 0, 1, MPI_INT, MPI_SUM, win), MPI_ERR_TYPE);
    CLASS(MPI_Fetch_and_op(two, two + 2, pair, next, 0, MPI_SUM, win), MPI_ERR_TYPE);
    CLASS(MPI_Compare_and_swap(&real, &real, &real, MPI_FLOAT, next, 0, win), MPI_ERR_TYPE);
    CLASS(MPI_Compare_and_swap(two, two + 2, &got, pair, next, 0, win), MPI_ERR_TYPE);
    OK(MPI_Win_unlock_all(win));
    /* Locks and assertions. */
    CLASS(MPI_Win_lock(0, next, 0, win), MPI_ERR_LOCKTYPE);
    CLASS(MPI_Win_lock(MPI_LOCK_SHARED, next, 1, win), MPI_ERR_ASSERT);
    CLASS(MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win), MPI_ERR_RANK);
    CLASS(MPI_Win_unlock(size, win), MPI_ERR_RANK);
    CLASS(MPI_Win_lock_all(MPI_MODE_NOPUT, win), MPI_ERR_ASSERT);
    CLASS(MPI_Win_fence(MPI_MODE_NOCHECK, win), MPI_ERR_ASSERT);
    CLASS(MPI_Win_post(MPI_GROUP_EMPTY, -1, win), MPI_ERR_ASSERT);
    CLASS(MPI_Win_start(MPI_GROUP_EMPTY, MPI_MODE_NOSTORE, win), MPI_ERR_ASSERT);
    CLASS(MPI_Win_start(MPI_GROUP_NULL, 0, win), MPI_ERR_GROUP);
    CLASS(MPI_Win_post(MPI_GROUP_NULL, 0, win), MPI_ERR_GROUP);
    CLASS(MPI_Win_attach(win, two, sizeof two), MPI_ERR_RMA_FLAVOR);
    CLASS(MPI_Win_detach(win, two), MPI_ERR_RMA_FLAVOR);
    OK(MPI_Type_free(&pair));
    OK(MPI_Type_free(&open));
    OK(MPI_Type_free(&mixed));
    OK(MPI_Op_free(&op));
}

static void creation(void) {
    MPI_Win win = MPI_WIN_NULL;
    int own[4];
    void *base;
    CLASS(MPI_Win_create(own, -1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_SIZE);
    CLASS(MPI_Win_create(own, sizeof own, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_DISP);
    CLASS(MPI_Win_create(own, sizeof own, -4, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_DISP);
    CLASS(MPI_Win_create(NULL, 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_BUFFER);
    CLASS(MPI_Win_create(own, sizeof own, 1, MPI_INFO_NULL, MPI_COMM_NULL, &win), MPI_ERR_COMM);
    CLASS(MPI_Win_create(own, sizeof own, 1, (MPI_Info)MPI_COMM_NULL, MPI_COMM_WORLD, &win), MPI_ERR_INFO);
    CLASS(MPI_Win_create(own, sizeof own, 1, MPI_INFO_NULL, MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
    CLASS(MPI_Win_allocate(-8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), MPI_ERR_SIZE);
    CLASS(MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, NULL, &win), MPI_ERR_ARG);
    CLASS(MPI_Win_allocate_shared(8, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), MPI_ERR_DISP);
    CHECK(win == MPI_WIN_NULL);
    /* More than there is: an error at all ranks, and the next window works. */
    CLASS(MPI_Win_allocate(rank == 1 ? 1LL << 60 : 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), MPI_ERR_NO_MEM);
    CLASS(MPI_Win_allocate_shared(rank == 1 ? 1LL << 60 : 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), MPI_ERR_NO_MEM);
    CHECK(win == MPI_WIN_NULL);
    MPI_Comm part, inter;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &part));
    OK(MPI_Intercomm_create(part, 0, MPI_COMM_WORLD, next, 0, &inter));
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    CLASS(MPI_Win_create(own, sizeof own, 1, MPI_INFO_NULL, inter, &win), MPI_ERR_COMM);
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&part));
}

static void handles(MPI_Win freed) {
    MPI_Group group;
    int flag;
    void *at;
    MPI_Win wins[] = {MPI_WIN_NULL, freed, (MPI_Win)MPI_COMM_WORLD};
    for (int i = 0; i < 3; i++) {
        MPI_Win win = wins[i];
        put_of(win, MPI_ERR_WIN);
        CLASS(MPI_Win_fence(0, win), MPI_ERR_WIN);
        CLASS(MPI_Win_lock_all(0, win), MPI_ERR_WIN);
        CLASS(MPI_Win_sync(win), MPI_ERR_WIN);
        CLASS(MPI_Win_get_group(win, &group), MPI_ERR_WIN);
        CLASS(MPI_Win_get_attr(win, MPI_WIN_BASE, &at, &flag), MPI_ERR_WIN);
        CLASS(MPI_Win_set_name(win, "x"), MPI_ERR_WIN);
        CLASS(MPI_Win_free(&win), MPI_ERR_WIN);
        CLASS(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN), MPI_ERR_WIN);
    }
}

static void dynamic(void) {
    MPI_Win win;
    static int memory[1024];
    MPI_Aint bytes, theirs;
    int unit, *at;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    CLASS(MPI_Win_shared_query(win, 0, &bytes, &unit, &at), MPI_ERR_RMA_FLAVOR);
    CLASS(MPI_Win_detach(win, memory), MPI_ERR_RMA_ATTACH);
    CLASS(MPI_Win_attach(win, memory, -1), MPI_ERR_SIZE);
    CLASS(MPI_Win_attach(win, NULL, 8), MPI_ERR_BUFFER);
    OK(MPI_Win_attach(win, memory, 64));
    CLASS(MPI_Win_attach(win, memory + 15, 64), MPI_ERR_RMA_ATTACH);
    CLASS(MPI_Win_attach(win, memory, 64), MPI_ERR_RMA_ATTACH);
    CLASS(MPI_Win_detach(win, memory + 1), MPI_ERR_RMA_ATTACH);
    OK(MPI_Win_detach(win, memory));
    CLASS(MPI_Win_detach(win, memory), MPI_ERR_RMA_ATTACH);
    /* No memory at all at the target. */
    OK(MPI_Get_address(NULL, &theirs));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
    CLASS(MPI_Put(&one, 1, MPI_INT, next, theirs + 64, 1, MPI_INT, win), MPI_ERR_RMA_RANGE);
    OK(MPI_Win_unlock(next, win));
    /* What a member has not attached itself, and what it has: two regions beside each other, and one apart. */
    int far = -100, two[2];
    MPI_Aint own;
    MPI_Datatype apart, shifted;
    OK(MPI_Get_address(memory, &own));
    OK(MPI_Win_attach(win, memory, 64));
    OK(MPI_Win_attach(win, memory + 16, 64));
    OK(MPI_Win_attach(win, memory + 100, 4));
    OK(MPI_Type_create_hindexed_block(2, 1, (MPI_Aint[]){own + 4, own + 400}, MPI_INT, &apart));
    OK(MPI_Type_commit(&apart));
    OK(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){own + 100}, MPI_INT, &shifted));
    OK(MPI_Type_commit(&shifted));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    CLASS(MPI_Put(&one, 1, MPI_INT, rank, theirs + 64, 1, MPI_INT, win), MPI_ERR_RMA_RANGE);
    CLASS(MPI_Put(two, 1, MPI_INT, rank, own + 128, 1, MPI_INT, win), MPI_ERR_RMA_RANGE);
    CLASS(MPI_Get(memory + 200, 33, MPI_INT, rank, own, 33, MPI_INT, win), MPI_ERR_RMA_RANGE);
    CLASS(MPI_Fetch_and_op(&one, two, MPI_INT, rank, own + 404, MPI_SUM, win), MPI_ERR_RMA_RANGE);
    CLASS(MPI_Compare_and_swap(&one, &one, two, MPI_INT, rank, own - 4, win), MPI_ERR_RMA_RANGE);
    OK(MPI_Get(memory + 200, 32, MPI_INT, rank, own, 32, MPI_INT, win));
    OK(MPI_Put((int[]){5, 6}, 2, MPI_INT, rank, 0, 1, apart, win));
    OK(MPI_Put(&one, 0, MPI_INT, rank, -5, 0, MPI_INT, win));
    /* A displacement below 0, with a type whose data lies so far above it (section 12.2.4). */
    OK(MPI_Accumulate(&one, 1, MPI_INT, rank, far, 1, shifted, MPI_SUM, win));
    OK(MPI_Win_unlock(rank, win));
    SAME(memory[0], one);
    SAME(memory[1], 5);
    SAME(memory[100], 6);
    OK(MPI_Type_free(&apart));
    OK(MPI_Type_free(&shifted));
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv) {
    MPI_Win win, freed;
    int own[4] = {0}, *base = own;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    next = 1 - rank;
    errors_return();
    creation();
    for (int kind = 0; kind < 2; kind++) {
        if (kind == 0)
            OK(MPI_Win_create(own, sizeof own, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        else
            OK(MPI_Win_allocate(sizeof own, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
        epochs(win);
        arguments(win);
        MPI_Aint bytes;
        int unit, *at;
        CLASS(MPI_Win_shared_query(win, size, &bytes, &unit, &at), MPI_ERR_RANK);
        freed = win;
        OK(MPI_Win_free(&win));
        handles(freed);
    }
    dynamic();
    MPI_Finalize();
    return verdict();
}
