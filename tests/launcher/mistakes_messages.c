/* Messages: receives without sends, sends without receives, circles. */
#include "mistakes.h"
#include <unistd.h>

static void cyclic_receive(void)
{
    receive(before, 7, world);
    send(next, 7, world);
}

static void cyclic_send(void)
{
    static char large[4 << 20];
    MPI_Send(large, sizeof large, MPI_CHAR, next, 7, world);
    MPI_Recv(large, sizeof large, MPI_CHAR, before, 7, world, MPI_STATUS_IGNORE);
}

static void cyclic_ssend(void)
{
    MPI_Ssend(&value, 1, MPI_INT, next, 7, world);
    receive(before, 7, world);
}

static void wrong_tag(void)
{
    MPI_Comm halo = named_dup("halo");
    if (rank == 1) send(0, 8, halo);
    if (rank == 0) receive(1, 7, halo);
}

static void wrong_tag_late(void)
{
    /* It comes when rank 0 has slept in vain. */
    if (rank == 1) sleep(1);
    if (rank == 1) send(0, 8, world);
    if (rank == 0) receive(1, 7, world);
}

static void wrong_source(void)
{
    if (rank == 1) send(0, 7, world);
    if (rank == 0) receive(2, 7, world);
}

static void wrong_communicator(void)
{
    MPI_Comm left = named_dup("left"), right = named_dup("right");
    if (rank == 1) send(0, 7, left);
    if (rank == 0) receive(1, 7, right);
}

static void missing_send(void)
{
    if (rank == 0) receive(1, 7, world);
    MPI_Barrier(world);
}

static void receive_from_finalized(void)
{
    if (rank == 0) receive(1, 7, world);
}

static void probe(void)
{
    if (rank == 0) MPI_Probe(1, 9, world, MPI_STATUS_IGNORE);
    MPI_Barrier(world);
}

static void any_source(void)
{
    if (rank == 0) receive(MPI_ANY_SOURCE, 9, world);
    MPI_Barrier(world);
}

static void waitall(void)
{
    MPI_Request requests[2];
    int values[2];
    if (rank == 0) {
        MPI_Irecv(&values[0], 1, MPI_INT, 1, 1, world, &requests[0]);
        MPI_Irecv(&values[1], 1, MPI_INT, 1, 2, world, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else {
        send(0, 1, world);
    }
    MPI_Barrier(world);
}

static void waitany(void)
{
    MPI_Request requests[2];
    int values[2], index;
    if (rank == 0) {
        MPI_Irecv(&values[0], 1, MPI_INT, 1, 1, world, &requests[0]);
        MPI_Irecv(&values[1], 1, MPI_INT, 1, 2, world, &requests[1]);
        MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(world);
}

static void self_send(void)
{
    static char large[4 << 20];
    MPI_Ssend(large, sizeof large, MPI_CHAR, rank, 7, world);
}

static void self_receive(void)
{
    MPI_Recv(&value, 1, MPI_INT, rank, 7, world, MPI_STATUS_IGNORE);
}

static void partition_not_ready(void)
{
    int parts[8] = {0};
    MPI_Request request;
    if (rank == 1) {
        MPI_Psend_init(parts, 4, 2, MPI_INT, 0, 7, world, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        for (int i = 0; i < 3; i++) MPI_Pready(i, request);
    } else {
        MPI_Precv_init(parts, 4, 2, MPI_INT, 1, 7, world, MPI_INFO_NULL, &request);
        MPI_Start(&request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void partition_not_ready_of_all(void)
{
    int parts[2][4] = {{0}};
    MPI_Request requests[3];
    MPI_Irecv(&value, 1, MPI_INT, 1 - rank, 3, world, &requests[0]);
    MPI_Precv_init(parts[0], 4, 1, MPI_INT, 1 - rank, 7, world, MPI_INFO_NULL, &requests[1]);
    MPI_Psend_init(parts[1], 4, 1, MPI_INT, 1 - rank, 7, world, MPI_INFO_NULL, &requests[2]);
    MPI_Startall(2, requests + 1);
    for (int i = 0; i < 4; i++) {
        if (rank == 0 || i % 2 == 0) MPI_Pready(i, requests[2]);
    }
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    MPI_Send(&value, 1, MPI_INT, 1 - rank, 3, world);
}

/* What the receiver waits for in vain while the sender has gone on. */
static void partitions_left_out(void)
{
    int parts[4] = {0};
    MPI_Request request;
    if (rank == 1) {
        MPI_Psend_init(parts, 2, 2, MPI_INT, 0, 7, world, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        MPI_Pready(1, request);
    } else {
        MPI_Precv_init(parts, 4, 1, MPI_INT, 1, 7, world, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(world);
}

static void partitions_not_started(void)
{
    MPI_Request request;
    if (rank == 1) {
        MPI_Psend_init(&value, 1, 1, MPI_INT, 0, 7, world, MPI_INFO_NULL, &request);
    } else {
        MPI_Precv_init(&value, 1, 1, MPI_INT, 1, 7, world, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void wrong_destination(void)
{
    if (rank == 1) send(0, 7, world);
    if (rank == 2) receive(1, 7, world);
    MPI_Barrier(world);
}

static void partitions_as_message(void)
{
    MPI_Request request;
    if (rank == 1) {
        MPI_Psend_init(&value, 1, 1, MPI_INT, 0, 7, world, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        MPI_Pready(0, request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        receive(1, 7, world);
    }
}

static void cycle_and_later_tag(void)
{
    /* What has come is wanted later: the mistake is the circle. */
    if (rank == 1) MPI_Send(&value, 1, MPI_INT, 0, 8, world);
    receive(next, 7, world);
    if (rank == 0) receive(1, 8, world);
}

static void cycle_and_later_start(void)
{
    MPI_Request request;
    if (rank == 1) MPI_Send_init(&value, 1, MPI_INT, 0, 7, world, &request);
    receive(next, 7, world);
    if (rank == 1) MPI_Start(&request);
}

static void cycle_and_later_source(void)
{
    if (rank == 2) MPI_Send(&value, 1, MPI_INT, 0, 7, world);
    if (rank == 0) receive(1, 7, world);
    if (rank == 1) receive(0, 7, world);
    if (rank == 0) receive(2, 7, world);
}

static void wrong_source_and_barrier(void)
{
    if (rank == 2) MPI_Send(&value, 1, MPI_INT, 0, 7, world);
    if (rank == 0) MPI_Probe(1, 7, world, MPI_STATUS_IGNORE);
    MPI_Barrier(world);
}

static void sendrecv_one_way(void)
{
    int from = 0;
    MPI_Sendrecv(&value, 1, MPI_INT, next, 7, &from, 1, MPI_INT, next, 7, world, MPI_STATUS_IGNORE);
}

static void sendrecv_of_others(void)
{
    /* Nobody sends. */
    int from = 0;
    MPI_Sendrecv(&value, 1, MPI_INT, MPI_PROC_NULL, 7, &from, 1, MPI_INT, next, 7, world, MPI_STATUS_IGNORE);
}

static void ssend_of_another_tag(void)
{
    if (rank == 0) receive(1, 7, world);
    if (rank == 1) MPI_Ssend(&value, 1, MPI_INT, 0, 8, world);
}

static void mprobe(void)
{
    MPI_Message message;
    if (rank == 0) MPI_Mprobe(1, 7, world, &message, MPI_STATUS_IGNORE);
    else send(0, 8, world);
    MPI_Barrier(world);
}

static void waitsome(void)
{
    MPI_Request requests[2];
    int values[2], indices[2], number;
    if (rank == 0) {
        MPI_Irecv(&values[0], 1, MPI_INT, 1, 1, world, &requests[0]);
        MPI_Irecv(&values[1], 1, MPI_INT, 2, 1, world, &requests[1]);
        MPI_Waitsome(2, requests, &number, indices, MPI_STATUSES_IGNORE);
    }
    MPI_Barrier(world);
}

static void sendrecv_partner(void)
{
    int from = rank == 0 ? next : before;
    MPI_Sendrecv_replace(&value, 1, MPI_INT, next, 7, from, 7, world, MPI_STATUS_IGNORE);
}

static void sendrecv_tags(void)
{
    MPI_Sendrecv_replace(&value, 1, MPI_INT, next, rank, before, rank, world, MPI_STATUS_IGNORE);
}

static void isend_waited_for(void)
{
    static char large[4 << 20];
    MPI_Request request;
    MPI_Isend(large, sizeof large, MPI_CHAR, next, 7, world, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Recv(large, sizeof large, MPI_CHAR, before, 7, world, MPI_STATUS_IGNORE);
}

static void worker_not_told(void)
{
    MPI_Status status;
    if (rank == 0) {
        for (int i = 1; i < size; i++) send(i, 1, world);
        for (int i = 1; i < size; i++) receive(MPI_ANY_SOURCE, 2, world);
        for (int i = 1; i < size - 1; i++) send(i, 3, world);
    } else {
        do {
            MPI_Recv(&value, 1, MPI_INT, 0, MPI_ANY_TAG, world, &status);
            if (status.MPI_TAG == 1) send(0, 2, world);
        } while (status.MPI_TAG != 3);
    }
}

static void one_step_less(void)
{
    for (int i = 0; i < 10 - (rank == 1); i++) {
        MPI_Sendrecv_replace(&value, 1, MPI_INT, next, 7, before, 7, world, MPI_STATUS_IGNORE);
    }
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, world);
}

static void large_order(void)
{
    static char large[4 << 20];
    for (int i = 1; i <= 2; i++) {
        if (rank == 0) MPI_Send(large, sizeof large, MPI_CHAR, 1, i, world);
        else MPI_Recv(large, sizeof large, MPI_CHAR, 0, 3 - i, world, MPI_STATUS_IGNORE);
    }
}

static void send_not_started(void)
{
    MPI_Request request;
    if (rank == 0) {
        MPI_Send_init(&value, 1, MPI_INT, 1, 7, world, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        receive(0, 7, world);
    }
    MPI_Barrier(world);
}

static void receive_not_started(void)
{
    MPI_Request requests[2];
    if (rank == 0) {
        MPI_Recv_init(&value, 1, MPI_INT, MPI_ANY_SOURCE, 7, world, requests);
    } else {
        MPI_Issend(&value, 1, MPI_INT, 0, 7, world, &requests[0]);
        MPI_Issend(&value, 1, MPI_INT, 0, 7, world, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Barrier(world);
}

static void buffered_and_not_received(void)
{
    static char buffer[1000000], data[500000];
    MPI_Buffer_attach(buffer, sizeof buffer);
    if (rank == 0) {
        void *own;
        int bytes;
        MPI_Bsend(data, sizeof data, MPI_CHAR, 1, 6, world);
        MPI_Buffer_detach(&own, &bytes);
    }
    MPI_Barrier(world);
}

static void issend_freed(void)
{
    static char data[1000];
    MPI_Request request;
    MPI_Issend(data, sizeof data, MPI_CHAR, next, 7, world, &request);
    MPI_Request_free(&request);
}

static void isendrecv_tags(void)
{
    MPI_Request request;
    MPI_Isendrecv_replace(&value, 1, MPI_INT, next, rank, before, rank, world, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void partitions_of_another_tag(void)
{
    static char data[64];
    MPI_Request request;
    if (rank == 0) MPI_Psend_init(data, 4, 16, MPI_CHAR, 1, 7, world, MPI_INFO_NULL, &request);
    else MPI_Precv_init(data, 4, 16, MPI_CHAR, 0, 8, world, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    if (rank == 0) MPI_Pready_range(0, 3, request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void sent_to_itself(void)
{
    /* Rank and destination are mixed up. */
    if (rank == 0) receive(1, 7, world);
    if (rank == 1) send(rank, 7, world);
}

static void name_of_two(void)
{
    MPI_Comm one = named_dup("halo"), other = named_dup("halo");
    if (rank == 0) receive(1, 7, other);
    if (rank == 1) send(0, 7, one);
}

const struct mistake mistakes_messages[] = {
    {"sent-to-itself", sent_to_itself},
    {"name-of-two", name_of_two},
    {"partitions-of-another-tag", partitions_of_another_tag},
    {"cyclic-receive", cyclic_receive},
    {"cyclic-send", cyclic_send},
    {"cyclic-ssend", cyclic_ssend},
    {"wrong-tag", wrong_tag},
    {"wrong-tag-late", wrong_tag_late},
    {"wrong-source", wrong_source},
    {"wrong-communicator", wrong_communicator},
    {"missing-send", missing_send},
    {"receive-from-finalized", receive_from_finalized},
    {"probe", probe},
    {"any-source", any_source},
    {"waitall", waitall},
    {"waitany", waitany},
    {"self-send", self_send},
    {"self-receive", self_receive},
    {"partition-not-ready", partition_not_ready},
    {"partition-not-ready-of-all", partition_not_ready_of_all},
    {"partitions-left-out", partitions_left_out},
    {"partitions-not-started", partitions_not_started},
    {"partitions-as-message", partitions_as_message},
    {"wrong-destination", wrong_destination},
    {"cycle-and-later-tag", cycle_and_later_tag},
    {"cycle-and-later-start", cycle_and_later_start},
    {"cycle-and-later-source", cycle_and_later_source},
    {"wrong-source-and-barrier", wrong_source_and_barrier},
    {"sendrecv-one-way", sendrecv_one_way},
    {"sendrecv-of-others", sendrecv_of_others},
    {"ssend-of-another-tag", ssend_of_another_tag},
    {"mprobe", mprobe},
    {"waitsome", waitsome},
    {"sendrecv-partner", sendrecv_partner},
    {"sendrecv-tags", sendrecv_tags},
    {"isendrecv-tags", isendrecv_tags},
    {"isend-waited-for", isend_waited_for},
    {"worker-not-told", worker_not_told},
    {"one-step-less", one_step_less},
    {"large-order", large_order},
    {"send-not-started", send_not_started},
    {"receive-not-started", receive_not_started},
    {"buffered-and-not-received", buffered_and_not_received},
    {"issend-freed", issend_freed},
    {NULL, NULL},
};
