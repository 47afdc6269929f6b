/* Messages whose send and receive do not fit: mistakes of unchecked.c. */
#include "unchecked.h"

/* An integer that is received as a double: blocking, by a request, and by the other half of a combined operation. */
void received_in_another_type(void) {
    int one[3] = {1, 2, 3};
    double as[3];
    MPI_Request request;
    if (rank == 1) {
        MPI_Send(one, 1, MPI_INT, 0, 7, halo);
        MPI_Send(one, 3, MPI_INT, 0, 8, halo);
        MPI_Sendrecv(one, 2, MPI_INT, 0, 9, as, 1, MPI_DOUBLE, 0, 9, halo, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(as, 1, MPI_DOUBLE, 1, 7, halo, MPI_STATUS_IGNORE);
        MPI_Irecv(as, 3, MPI_DOUBLE, 1, 8, halo, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Sendrecv(one, 1, MPI_INT, 1, 9, as, 1, MPI_DOUBLE, 1, 9, halo, MPI_STATUS_IGNORE);
    }
}

MPI_Datatype pair_of(MPI_Datatype first, MPI_Datatype second) {
    MPI_Datatype pair, types[2] = {first, second};
    int lengths[2] = {1, 1};
    MPI_Aint at[2] = {0, 8};
    MPI_Type_create_struct(2, lengths, at, types, &pair);
    MPI_Type_commit(&pair);
    return pair;
}

/* Whole numbers of elements, of another type: unexpected, awaited, persistent, in one piece and in several,
 * of structures, to itself. */
void sent_in_another_type(void) {
    static double data[4000];
    MPI_Datatype one = pair_of(MPI_INT, MPI_DOUBLE), other = pair_of(MPI_DOUBLE, MPI_INT);
    MPI_Request request;
    if (rank == 1) {
        MPI_Send(data, 2, MPI_INT, 0, 1, halo);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Ssend(data, 4000, MPI_DOUBLE, 0, 2, halo);
        MPI_Send_init(data, 2, one, 0, 3, halo, &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Recv(data, 4, MPI_FLOAT, 1, 1, halo, MPI_STATUS_IGNORE);
        MPI_Irecv(data, 4000, MPI_INT64_T, MPI_ANY_SOURCE, 2, halo, &request);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Recv(data, 4, other, 1, MPI_ANY_TAG, halo, MPI_STATUS_IGNORE);
        MPI_Sendrecv(data, 1, MPI_DOUBLE, 0, 4, data + 1, 1, MPI_LONG, 0, 4, halo, MPI_STATUS_IGNORE);
    }
    MPI_Type_free(&one);
    MPI_Type_free(&other);
}

/* Types that differ and fit: what a matched probe has taken is received later; structures and their parts; bytes;
 * what is not sent. */
void sent_in_types_that_fit(void) {
    int value[4] = {1, 2, 3, 4};
    float real = 1;
    MPI_Datatype pair = pair_of(MPI_INT, MPI_INT), vector;
    MPI_Type_vector(2, 1, 2, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    if (rank == 1) {
        for (int i = 0; i < 3; i++) {
            if (i == 1) MPI_Send(&real, 1, MPI_FLOAT, 0, 7, halo);
            else MPI_Send(value, 1 + i, MPI_INT, 0, 7, halo);
        }
        MPI_Send(value, 4, MPI_INT, 0, 8, halo);
        MPI_Send(value, 1, vector, 0, 9, halo);
        MPI_Send(&real, 4, MPI_BYTE, 0, 9, halo);
    } else if (rank == 0 && size > 1) {
        MPI_Message messages[2];
        long room[8];
        MPI_Mprobe(1, 7, halo, &messages[0], MPI_STATUS_IGNORE);
        MPI_Mprobe(1, 7, halo, &messages[1], MPI_STATUS_IGNORE);
        MPI_Recv(value, 4, MPI_INT, 1, 7, halo, MPI_STATUS_IGNORE);
        MPI_Mrecv(&real, 1, MPI_FLOAT, &messages[1], MPI_STATUS_IGNORE);
        MPI_Mrecv(value, 4, MPI_INT, &messages[0], MPI_STATUS_IGNORE);
        MPI_Recv(room, 2, pair, 1, 8, halo, MPI_STATUS_IGNORE);
        MPI_Recv(room, 2, pair, 1, 9, halo, MPI_STATUS_IGNORE);
        MPI_Recv(value, 1, MPI_INT, 1, 9, halo, MPI_STATUS_IGNORE);
    }
    /* One that is not sent, for there is no buffer, is none of those that are received. */
    MPI_Comm_set_errhandler(halo, MPI_ERRORS_RETURN);
    MPI_Bsend(&real, 1, MPI_FLOAT, rank, 5, halo);
    MPI_Comm_set_errhandler(halo, MPI_ERRORS_ARE_FATAL);
    MPI_Sendrecv(value, 1, MPI_INT, rank, 5, value + 1, 1, MPI_INT, rank, 5, halo, MPI_STATUS_IGNORE);
    MPI_Type_free(&pair);
    MPI_Type_free(&vector);
}

/* The receives begin after the sends: of a message that has come, one that has not been looked for,
 * and one that a probe has taken. */
void ready_without_receive(void) {
    static int value[2];
    volatile int *sent;
    MPI_Win win;
    MPI_Request request;
    MPI_Message message;
    MPI_Aint bytes;
    int unit;
    MPI_Win_allocate_shared(rank == 0 ? sizeof *sent : 0, sizeof *sent, MPI_INFO_NULL, halo, (void *)&sent, &win);
    MPI_Win_shared_query(win, 0, &bytes, &unit, (void *)&sent);
    if (rank == 0) *sent = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        MPI_Rsend(value, 2, MPI_INT, 0, 1, halo);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Rsend_init(value, 2, MPI_INT, 0, 2, halo, &request);
        MPI_Start(&request);
        *sent = 1;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
        MPI_Irsend(value, 2, MPI_INT, 0, 3, halo, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Recv(value, 2, MPI_INT, 1, 1, halo, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
        while (!*sent) continue;
        MPI_Recv(value, 2, MPI_INT, MPI_ANY_SOURCE, 2, halo, MPI_STATUS_IGNORE);
        MPI_Mprobe(1, 3, halo, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(value, 2, MPI_INT, &message, MPI_STATUS_IGNORE);
    }
    MPI_Win_free(&win);
}

/* Each rank has the receives before its neighbour sends:
 * of large messages and small, of nothing, again and again, and of its own. */
void ready_with_receive(void) {
    enum { MANY = 50000 };
    static int out[MANY], in[3][MANY];
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Request requests[5];
    MPI_Rsend_init(out, MANY, MPI_INT, next, 2, halo, &requests[3]);
    for (int round = 0; round < 5; round++) {
        MPI_Irecv(in[0], 1, MPI_INT, before, 1, halo, &requests[0]);
        MPI_Irecv(in[1], MANY, MPI_INT, MPI_ANY_SOURCE, 2, halo, &requests[1]);
        MPI_Irecv(in[2], 0, MPI_INT, before, MPI_ANY_TAG, halo, &requests[2]);
        MPI_Barrier(halo);
        MPI_Rsend(out, 1, MPI_INT, next, 1, halo);
        MPI_Start(&requests[3]);
        MPI_Irsend(out, 0, MPI_INT, next, 3, halo, &requests[4]);
        MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
        MPI_Irecv(in[0], 1, MPI_INT, rank, 1, halo, &requests[0]);
        MPI_Rsend(out, 1, MPI_INT, rank, 1, halo);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&requests[3]);
}

enum { PARTS = 4 };

static void start_parts(int parts[PARTS][2], MPI_Request *request) {
    if (rank == 1) MPI_Psend_init(parts, PARTS, 2, MPI_INT, 0, 7, halo, MPI_INFO_NULL, request);
    else MPI_Precv_init(parts, PARTS, 2, MPI_INT, 1, 7, halo, MPI_INFO_NULL, request);
    MPI_Start(request);
}

/* Before it is ready a partition may change. */
void partition_changed(void) {
    static int parts[PARTS][2], other;
    MPI_Request request;
    start_parts(parts, &request);
    if (rank == 1) {
        MPI_Pready_range(0, 2, request);
        parts[3][0] = 3;
        parts[2][1] = 2;
        MPI_Pready(3, request);
        MPI_Recv(parts[1], 1, MPI_INT, 0, 8, halo, MPI_STATUS_IGNORE);
    } else {
        MPI_Send(&other, 1, MPI_INT, 1, 8, halo);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
}

void partitions_fit(void) {
    static int parts[PARTS][2], other;
    MPI_Request request;
    if (size < 2 || rank > 1) return;
    start_parts(parts, &request);
    for (int round = 0; round < 3; round++) {
        if (round > 0) MPI_Start(&request);
        for (int i = 0; rank == 1 && i < PARTS; i++) {
            MPI_Recv(parts[i], 1, MPI_INT, 0, 8, halo, MPI_STATUS_IGNORE);
            parts[i][1] = round + i;
            MPI_Pready_list(1, &i, request);
        }
        for (int i = 0; rank == 0 && i < PARTS; i++) MPI_Send(&other, 1, MPI_INT, 1, 8, halo);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
}

/* A type with an element twice is sent, which is fine, and received. */
void elements_in_one_place(void) {
    static int value[4];
    int lengths[2] = {2, 2}, at[2] = {0, 1};
    MPI_Datatype twice;
    MPI_Type_indexed(2, lengths, at, MPI_INT, &twice);
    MPI_Type_commit(&twice);
    if (rank == 1) {
        MPI_Send(value, 1, twice, 0, 1, halo);
        MPI_Send(value, 4, MPI_INT, 0, 2, halo);
    } else {
        MPI_Recv(value, 4, MPI_INT, 1, 1, halo, MPI_STATUS_IGNORE);
        MPI_Recv(value, 1, twice, 1, 2, halo, MPI_STATUS_IGNORE);
    }
    MPI_Type_free(&twice);
}

/* The integer itself instead of its address. */
void no_memory(void) {
    MPI_Request request;
    if (rank == 1) return;
    MPI_Irecv((void *)0x1234, 1, MPI_INT, 1, 7, halo, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void never_started(void) {
    int value = 0;
    MPI_Request requests[2];
    MPI_Send_init(&value, 1, MPI_INT, rank, 7, halo, &requests[0]);
    MPI_Bcast_init(&value, 1, MPI_INT, 0, halo, MPI_INFO_NULL, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 2; i++) MPI_Request_free(&requests[i]);
    /* One of which nobody asks is none. */
    MPI_Send_init(&value, 1, MPI_INT, rank, 8, halo, &requests[0]);
    MPI_Request_free(&requests[0]);
}

void freed_while_active(void) {
    static int value, other;
    MPI_Request request;
    if (rank == 0) {
        MPI_Irecv(&value, 1, MPI_INT, 1, 7, halo, &request);
        MPI_Request_free(&request);
        /* What is cancelled may be freed. */
        MPI_Irecv(&other, 1, MPI_INT, 1, 8, halo, &request);
        MPI_Cancel(&request);
        MPI_Request_free(&request);
    }
    MPI_Barrier(halo);
    if (rank == 1) MPI_Send(&value, 1, MPI_INT, 0, 7, halo);
}

/* Packed while it is received into, and unpacked into what is sent. What is packed lies beside it. */
void packed_in_use(void) {
    int got = 0, sent = 5, value = 7, position = 0;
    char tape[64];
    MPI_Request requests[2];
    MPI_Irecv(&got, 1, MPI_INT, rank, 7, halo, &requests[0]);
    MPI_Issend(&sent, 1, MPI_INT, rank, 8, halo, &requests[1]);
    MPI_Pack(&value, 1, MPI_INT, tape, sizeof tape, &position, halo);
    MPI_Pack(&got, 1, MPI_INT, tape, sizeof tape, &position, halo);
    position = 0;
    MPI_Unpack(tape, sizeof tape, &position, &value, 1, MPI_INT, halo);
    position = 0;
    MPI_Unpack(tape, sizeof tape, &position, &sent, 1, MPI_INT, halo);
    sent = 5;
    MPI_Recv(&value, 1, MPI_INT, rank, 8, halo, MPI_STATUS_IGNORE);
    MPI_Send(&value, 1, MPI_INT, rank, 7, halo);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

/* Into the memory of partitions that have not come. Of one that has come the program may do what it likes. */
void partitions_in_use(void) {
    static int parts[4], other;
    MPI_Request request, sent;
    if (rank == 0) MPI_Psend_init(parts, 4, 1, MPI_INT, 1, 5, halo, MPI_INFO_NULL, &request);
    else MPI_Precv_init(parts, 4, 1, MPI_INT, 0, 5, halo, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    if (rank == 0) {
        MPI_Pready(3, request);
        for (int i = 0; i < 2; i++) MPI_Recv(&other, 1, MPI_INT, 1, 6, halo, MPI_STATUS_IGNORE);
        MPI_Pready_range(0, 2, request);
    } else {
        for (int there = 0; !there;) MPI_Parrived(request, 3, &there);
        MPI_Send(&parts[3], 1, MPI_INT, 0, 6, halo);
        MPI_Isend(&parts[1], 1, MPI_INT, 0, 6, halo, &sent);
        MPI_Wait(&sent, MPI_STATUS_IGNORE);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
}

/* A receive and a buffered send of what is attached; and an attachment of what is received into. */
void attached_in_use(void) {
    static int buffer[1000];
    int value = 0;
    MPI_Request request;
    MPI_Buffer_attach(buffer, sizeof buffer);
    if (rank == 0) {
        MPI_Bsend(&value, 1, MPI_INT, rank, 7, halo);
        MPI_Recv(&buffer[900], 1, MPI_INT, rank, 7, halo, MPI_STATUS_IGNORE);
        MPI_Bsend(&buffer[900], 1, MPI_INT, rank, 8, halo);
        MPI_Recv(&value, 1, MPI_INT, rank, 8, halo, MPI_STATUS_IGNORE);
    }
    MPI_Buffer_detach(&(void *){0}, &(int){0});
    if (rank == 0) {
        MPI_Irecv(&buffer[1], 1, MPI_INT, rank, 9, halo, &request);
        MPI_Comm_attach_buffer(halo, buffer, sizeof buffer);
        MPI_Send(&value, 1, MPI_INT, rank, 9, halo);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Comm_detach_buffer(halo, &(void *){0}, &(int){0});
    }
}

/* What has been detached, in each way, is the program's again. */
void attached_buffers_fit(void) {
    static int buffer[1000];
    int value = 0;
    void *place;
    MPI_Comm comm;
    MPI_Session session;
    for (int way = 0; way < 5; way++) {
        if (way == 0) {
            MPI_Buffer_attach(buffer, sizeof buffer);
            MPI_Bsend(&value, 1, MPI_INT, rank, 7, halo);
            MPI_Recv(&value, 1, MPI_INT, rank, 7, halo, MPI_STATUS_IGNORE);
            MPI_Buffer_detach(&place, &(int){0});
        } else if (way < 4) {
            MPI_Comm_dup(halo, &comm);
            MPI_Comm_attach_buffer(comm, buffer, sizeof buffer);
            if (way == 1) MPI_Comm_detach_buffer(comm, &place, &(int){0});
            if (way == 2) MPI_Comm_disconnect(&comm);
            else MPI_Comm_free(&comm);
        } else {
            MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
            MPI_Session_attach_buffer(session, buffer, sizeof buffer);
            MPI_Session_finalize(&session);
        }
        MPI_Sendrecv(&value, 1, MPI_INT, rank, 7, &buffer[way], 1, MPI_INT, rank, 7, halo, MPI_STATUS_IGNORE);
    }
}
