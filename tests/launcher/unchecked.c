/* Programs with a mistake each that no error and no hang shows: tests/launcher/checks.rs says what `mpiexec --check`
 * says of them. The argument names the mistake. */
#include "unchecked.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int rank, size;
MPI_Comm halo;
static const char *path = "checked-file";

static void bystander(void) { MPI_Barrier(MPI_COMM_WORLD); }

static void receive_never_completed(void) {
    static int value;
    if (rank == 0) {
        MPI_Request request;
        MPI_Irecv(&value, 1, MPI_INT, 1, 7, halo, &request);
    } else {
        value = 5;
        MPI_Send(&value, 1, MPI_INT, 0, 7, halo);
    }
}

static void send_never_completed(void) {
    static int values[4];
    if (rank == 0) {
        MPI_Request request;
        MPI_Isend(values, 4, MPI_INT, 1, 3, MPI_COMM_WORLD, &request);
    } else {
        MPI_Recv(values, 4, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void persistent_never_freed(void) {
    static double value;
    MPI_Request request;
    MPI_Recv_init(&value, 1, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
}

static void collective_never_completed(void) {
    static int sum, one = 1;
    MPI_Request request;
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    bystander();
}

static void unreceived(void) {
    int value = 1;
    if (rank == 1)
        for (int i = 0; i < 3; i++) MPI_Send(&value, 1, MPI_INT, 0, 9, halo);
}

static void matched_and_left(void) {
    int value = 1;
    if (rank == 1) MPI_Send(&value, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
    MPI_Message message;
    if (rank == 0) MPI_Mprobe(1, 9, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
}

static void sum(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *count; i++) ((int *)inout)[i] += ((int *)in)[i];
}

static void on_error(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    (void)code;
}

static void objects_never_freed(void) {
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comm);
    MPI_Comm_set_name(comm, "rows");
    MPI_Datatype column;
    MPI_Type_vector(3, 1, 5, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    MPI_Group group;
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Op op;
    MPI_Op_create(sum, 1, &op);
    MPI_Errhandler handler;
    int key;
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Win win;
    void *base;
    MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    if (rank == 0) {
        MPI_Datatype pair;
        for (int i = 0; i < 4; i++) MPI_Type_contiguous(2, MPI_INT, &pair);
    }
}

static void roots_differ(void) {
    int value[4] = {0};
    MPI_Bcast(value, 4, MPI_INT, rank, MPI_COMM_WORLD);
}

static void lengths_differ(void) {
    int value[8] = {0}, sums[8];
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Reduce(value, sums, rank ? 5 : 4, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void types_differ(void) {
    float value[4] = {0};
    MPI_Bcast(value, 4, rank ? MPI_FLOAT : MPI_INT, 0, halo);
}

static void operations_differ(void) {
    double value = 1, most;
    MPI_Allreduce(&value, &most, 1, MPI_DOUBLE, rank ? MPI_MIN : MPI_MAX, MPI_COMM_WORLD);
}

static void functions_differ(void) {
    int value = 1, all[2] = {0, 0};
    MPI_Request request;
    if (rank == 0)
        MPI_Iallreduce(&value, all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    else
        MPI_Iallgather(&value, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void received_twice(void) {
    static int buffer[4];
    int value[4] = {1, 2, 3, 4};
    MPI_Request requests[2];
    if (rank == 0) {
        MPI_Irecv(buffer, 4, MPI_INT, 1, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(buffer + 2, 2, MPI_INT, 1, 2, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else {
        MPI_Send(value, 4, MPI_INT, 0, 1, MPI_COMM_WORLD);
        MPI_Send(value, 2, MPI_INT, 0, 2, MPI_COMM_WORLD);
    }
}

static void sent_and_received(void) {
    static int buffer[4];
    int value[4] = {0};
    if (rank == 0) {
        MPI_Request request;
        MPI_Isend(buffer, 4, MPI_INT, 1, 1, MPI_COMM_WORLD, &request);
        MPI_Recv(buffer, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Send(value, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
        MPI_Recv(value, 4, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void changed(void) {
    static int buffer[4];
    if (rank == 0) {
        MPI_Request request;
        MPI_Isend(buffer, 4, MPI_INT, 1, 1, MPI_COMM_WORLD, &request);
        buffer[2] = 7;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(buffer, 4, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void exchange_twice(void) {
    static int out[4], in[4];
    MPI_Request requests[2];
    MPI_Isendrecv(out, 4, MPI_INT, 1 - rank, 1, in, 4, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, &requests[0]);
    if (rank == 0) MPI_Irecv(out + 1, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &requests[1]);
    else MPI_Isend(in, 1, MPI_INT, 0, 2, halo, &requests[1]);
    if (rank == 0) MPI_Cancel(&requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    if (rank == 0) MPI_Recv(in, 1, MPI_INT, 1, 2, halo, MPI_STATUS_IGNORE);
}

static MPI_Win window(void) {
    MPI_Win win;
    int *base;
    MPI_Win_allocate(16 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_set_name(win, "counters");
    return win;
}

static void got_into_twice(void) {
    MPI_Win win = window();
    static int room[4];
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        MPI_Get(room, 4, MPI_INT, 1, 0, 4, MPI_INT, win);
        MPI_Get(room + 3, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
        MPI_Win_flush(0, win);
        /* What is flushed elsewhere is still in use. */
        MPI_Put(room, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
        MPI_Win_flush_local_all(win);
        MPI_Put(room, 4, MPI_INT, 0, 4, 4, MPI_INT, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

static void put_and_changed(void) {
    MPI_Win win = window();
    int value = 1;
    MPI_Win_fence(0, win);
    if (rank == 0) {
        MPI_Put(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
        value = 2;
    }
    MPI_Win_fence(0, win);
    value = 3;
    MPI_Win_free(&win);
}

static void put_and_freed(void) {
    MPI_Win win = window();
    static int value[2], got;
    MPI_Win_fence(0, win);
    MPI_Put(value, 1, MPI_INT, 0, rank, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    if (rank == 0) {
        MPI_Get(&got, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
        MPI_Accumulate(value, 2, MPI_INT, 1, 4, 2, MPI_INT, MPI_SUM, win);
        MPI_Put(value, 0, MPI_INT, 1, 0, 0, MPI_INT, win);
        MPI_Put(value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win);
    }
    MPI_Win_free(&win);
}

static void requested_put_and_received(void) {
    MPI_Win win = window();
    static int value, other;
    MPI_Request request;
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    if (rank == 0) {
        MPI_Rput(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, win, &request);
        MPI_Recv(&value, 1, MPI_INT, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Recv(&value, 1, MPI_INT, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Rget(&value, 1, MPI_INT, 1, 1, 1, MPI_INT, win, &request);
    } else {
        for (int i = 0; i < 2; i++) MPI_Send(&other, 1, MPI_INT, 0, 4, MPI_COMM_WORLD);
    }
    MPI_Win_unlock(1, win);
    MPI_Win_free(&win);
}

static MPI_File file(int mode) {
    MPI_File opened;
    MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &opened);
    return opened;
}

static void read_into_twice(void) {
    MPI_File opened = file(MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE);
    static char room[64];
    MPI_Request request;
    if (rank == 0) {
        MPI_File_iread_at(opened, 0, room, 64, MPI_CHAR, &request);
        MPI_File_write_at(opened, 100, room, 32, MPI_CHAR, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_File_write_at_all_begin(opened, 64 * rank, room, 64, MPI_CHAR);
    if (rank == 0) MPI_File_read_at(opened, 0, room, 1, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_write_at_all_end(opened, room, MPI_STATUS_IGNORE);
    if (rank == 0) MPI_File_read_at(opened, 0, room, 1, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_close(&opened);
}

static void modes_differ(void) {
    MPI_File opened = file(rank ? MPI_MODE_RDWR | MPI_MODE_CREATE : MPI_MODE_WRONLY | MPI_MODE_CREATE);
    MPI_File_close(&opened);
}

static void sizes_differ(void) {
    MPI_File opened = file(MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE);
    MPI_File_set_size(opened, 10 + rank);
    MPI_File_close(&opened);
}

static void hints_differ(void) {
    MPI_Info info;
    MPI_Win win;
    int *base;
    MPI_Info_create(&info);
    if (rank) MPI_Info_set(info, "no_locks", "true");
    MPI_Win_allocate(16, 1, info, MPI_COMM_WORLD, &base, &win);
    MPI_Info_free(&info);
    MPI_Win_fence(rank ? MPI_MODE_NOPRECEDE : 0, win);
    MPI_Win_free(&win);
}

/* The last rank dies; what the first has left is said all the same, but messages may have no receiver any more. */
static void left_after_death(void) {
    MPI_Request request;
    static int value, other;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 1) raise(SIGKILL);
    MPI_Recv(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Irecv(&value, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &request);
    MPI_Send(&other, 1, MPI_INT, 0, 6, MPI_COMM_SELF);
}

/* Nothing is wrong with this one: everything is there once, completed and freed. */
static void bcast_of_root_alone(void) {
    int value = 0;
    if (rank == 0) MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
}

static void collective_changed(void) {
    int value = rank, sum;
    MPI_Request request;
    MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, halo, &request);
    if (rank == 1) value = 5;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void buffers_overlap(void) {
    int data[6] = {0}, zeros[2] = {0, 0}, ones[2] = {1, 1};
    MPI_Sendrecv(data, 2, MPI_INT, 1 - rank, 4, data + 1, 2, MPI_INT, 1 - rank, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Gatherv(data, 1, MPI_INT, data + 1, ones, zeros, MPI_INT, 0, halo);
    /* In place nothing overlaps. */
    MPI_Reduce_scatter_block(MPI_IN_PLACE, data, 2, MPI_INT, MPI_SUM, halo);
    MPI_Request request;
    MPI_Ireduce_scatter_block(MPI_IN_PLACE, data, 2, MPI_INT, MPI_SUM, halo, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    /* Elements of one buffer in the gaps of the other. */
    MPI_Datatype even;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &even);
    MPI_Type_commit(&even);
    MPI_Alltoall(data, 1, even, data + 1, 1, even, halo);
    MPI_Type_free(&even);
}

static void put_of_another_type(void) {
    int values[2] = {1, 2}, *base;
    MPI_Win win;
    MPI_Win_allocate(sizeof values, sizeof *values, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_set_name(win, "shelf");
    MPI_Win_fence(0, win);
    if (rank == 0) {
        MPI_Put(values, 2, MPI_INT, 1, 0, 2, MPI_FLOAT, win);
        MPI_Put(values, 8, MPI_BYTE, 0, 0, 2, MPI_INT, win);
    }
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}

static void clean(void) {
    sent_in_types_that_fit();
    ready_with_receive();
    partitions_fit();
    attached_buffers_fit();
    types_of_pieces_fit();
    edges_of_grids_fit();
    groups_fit();
    group_calls_fit();
    roots_between_groups_fit();
    starts_fit();
    accesses_fit();
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    static double grid[16][16];
    MPI_Datatype column;
    MPI_Type_vector(16, 1, 16, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    for (int round = 0; round < 50; round++) {
        MPI_Request requests[4];
        MPI_Irecv(&grid[0][0], 1, column, before, 1, halo, &requests[0]);
        MPI_Irecv(&grid[0][15], 1, column, next, 2, halo, &requests[1]);
        MPI_Isend(&grid[0][14], 1, column, next, 1, halo, &requests[2]);
        MPI_Isend(&grid[0][1], 1, column, before, 2, halo, &requests[3]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        double sums[2] = {0, 0};
        MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, halo);
        MPI_Bcast(grid, round, round % 2 ? MPI_BYTE : MPI_CHAR, round % size, MPI_COMM_WORLD);
    }
    MPI_Request persistent[2], one;
    int out = rank, in = -1, flag = 0;
    MPI_Send_init(&out, 1, MPI_INT, next, 5, MPI_COMM_WORLD, &persistent[0]);
    MPI_Recv_init(&in, 1, MPI_INT, before, 5, MPI_COMM_WORLD, &persistent[1]);
    for (int round = 0; round < 5; round++) {
        out = round;
        MPI_Startall(2, persistent);
        MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&persistent[0]);
    MPI_Request_free(&persistent[1]);
    MPI_Sendrecv_replace(&out, 1, MPI_INT, next, 6, before, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Ibarrier(MPI_COMM_WORLD, &one);
    while (!flag) MPI_Test(&one, &flag, MPI_STATUS_IGNORE);
    int counts[64], displs[64], gathered[64 * 64];
    for (int i = 0; i < size; i++) counts[i] = i + 1, displs[i] = 64 * i;
    int own[64] = {0};
    MPI_Gatherv(own, rank + 1, MPI_INT, gathered, counts, displs, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Scatterv(gathered, counts, displs, MPI_INT, own, rank + 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Allgatherv(own, rank + 1, MPI_INT, gathered, counts, displs, MPI_INT, MPI_COMM_WORLD);
    MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &one);
    MPI_Cancel(&one);
    MPI_Wait(&one, MPI_STATUS_IGNORE);
    MPI_Isend(&out, 1, MPI_INT, next, 8, MPI_COMM_WORLD, &one);
    MPI_Recv(&in, 1, MPI_INT, before, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Request_free(&one);
    MPI_Comm copy;
    MPI_Comm_idup(halo, &copy, &one);
    MPI_Wait(&one, MPI_STATUS_IGNORE);
    MPI_Comm_free(&copy);
    MPI_Type_free(&column);
    MPI_Isendrecv(&out, 1, MPI_INT, next, 9, &in, 1, MPI_INT, before, 9, MPI_COMM_WORLD, &one);
    MPI_Wait(&one, MPI_STATUS_IGNORE);
    MPI_Win win = window();
    MPI_Win_lock_all(0, win);
    for (int round = 0; round < 5; round++) {
        out = round;
        MPI_Put(&out, 1, MPI_INT, next, 0, 1, MPI_INT, win);
        MPI_Put(&out, 1, MPI_INT, before, 1, 1, MPI_INT, win);
        MPI_Win_flush(next, win);
        MPI_Win_flush_local(before, win);
        MPI_Fetch_and_op(&out, &in, MPI_INT, next, 2, MPI_SUM, win);
        MPI_Rget(&flag, 1, MPI_INT, next, 3, 1, MPI_INT, win, &one);
        MPI_Wait(&one, MPI_STATUS_IGNORE);
        flag = 7;
        MPI_Win_flush_all(win);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_File opened = file(MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE);
    MPI_File_set_size(opened, 4096);
    MPI_File_iwrite_at(opened, 4 * rank, &out, 1, MPI_INT, &one);
    MPI_Wait(&one, MPI_STATUS_IGNORE);
    out = 9;
    MPI_File_write_all_begin(opened, &out, 1, MPI_INT);
    MPI_File_write_all_end(opened, &out, MPI_STATUS_IGNORE);
    MPI_File_close(&opened);
    int dims[1] = {size}, wraps[1] = {1};
    MPI_Comm_split_type(halo, rank ? MPI_COMM_TYPE_SHARED : MPI_UNDEFINED, 0, MPI_INFO_NULL, &copy);
    if (copy != MPI_COMM_NULL) MPI_Comm_free(&copy);
    MPI_Cart_create(halo, 1, dims, wraps, 0, &copy);
    MPI_Comm_disconnect(&copy);
}

/* A port that stays open beside one that is closed. A buffer may stay attached (MPI 5.0 section 11.2.2). */
static void port_never_closed(void) {
    static char buffer[1000];
    char port[MPI_MAX_PORT_NAME], closed[MPI_MAX_PORT_NAME];
    MPI_Buffer_attach(buffer, sizeof buffer);
    if (rank) return;
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Open_port(MPI_INFO_NULL, closed);
    MPI_Close_port(closed);
}

struct mistake {
    const char *name;
    void (*make)(void);
} mistakes[] = {
    {"receive-never-completed", receive_never_completed},
    {"send-never-completed", send_never_completed},
    {"persistent-never-freed", persistent_never_freed},
    {"collective-never-completed", collective_never_completed},
    {"unreceived", unreceived},
    {"matched-and-left", matched_and_left},
    {"objects-never-freed", objects_never_freed},
    {"roots-differ", roots_differ},
    {"lengths-differ", lengths_differ},
    {"types-differ", types_differ},
    {"received-in-another-type", received_in_another_type},
    {"sent-in-another-type", sent_in_another_type},
    {"ready-without-receive", ready_without_receive},
    {"operations-differ", operations_differ},
    {"functions-differ", functions_differ},
    {"long-lengths-differ", long_lengths_differ},
    {"counts-differ", counts_differ},
    {"lists-differ", lists_differ},
    {"scattered-lists-differ", scattered_lists_differ},
    {"types-of-pieces-differ", types_of_pieces_differ},
    {"mixtures-differ", mixtures_differ},
    {"received-twice", received_twice},
    {"sent-and-received", sent_and_received},
    {"changed", changed},
    {"partition-changed", partition_changed},
    {"exchange-twice", exchange_twice},
    {"got-into-twice", got_into_twice},
    {"put-and-changed", put_and_changed},
    {"put-and-freed", put_and_freed},
    {"requested-put-and-received", requested_put_and_received},
    {"read-into-twice", read_into_twice},
    {"modes-differ", modes_differ},
    {"sizes-differ", sizes_differ},
    {"split-types-differ", split_types_differ},
    {"grids-differ", grids_differ},
    {"groups-of-roots-differ", groups_of_roots_differ},
    {"root-of-nobody", root_of_nobody},
    {"partitions-in-use", partitions_in_use},
    {"attached-in-use", attached_in_use},
    {"making-functions-differ", making_functions_differ},
    {"groups-differ", groups_differ},
    {"group-call-left-out", group_call_left_out},
    {"starts-differ", starts_differ},
    {"hints-differ", hints_differ},
    {"left-after-death", left_after_death},
    {"bcast-of-root-alone", bcast_of_root_alone},
    {"collective-changed", collective_changed},
    {"buffers-overlap", buffers_overlap},
    {"put-of-another-type", put_of_another_type},
    {"accessed-by-two", accessed_by_two},
    {"fence-asserts-wrongly", fence_asserts_wrongly},
    {"elements-in-one-place", elements_in_one_place},
    {"no-memory", no_memory},
    {"never-started", never_started},
    {"freed-while-active", freed_while_active},
    {"called-by-another-thread", called_by_another_thread},
    {"called-at-once", called_at_once},
    {"collective-at-once", collective_at_once},
    {"awaited-by-two", awaited_by_two},
    {"packed-in-use", packed_in_use},
    {"received-where-others-put", received_where_others_put},
    {"port-never-closed", port_never_closed},
    {"clean", clean},
};

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, level_of(argc > 1 ? argv[1] : ""), &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &halo);
    MPI_Comm_set_name(halo, "halo");
    int found = 0;
    if (argc > 2) path = argv[2];
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        if (argc > 1 && strcmp(argv[1], mistakes[i].name) == 0) {
            mistakes[i].make();
            found = 1;
        }
    if (!found) {
        fprintf(stderr, "no such mistake\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Comm_free(&halo);
    MPI_Finalize();
    return 0;
}
