/* One classic mistake for each argument: programs that hang. tests/launcher/deadlocks.rs has what the launcher must say of each. Those of threads are in
 * mistakes_threads.c. */
#include "mistakes.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Not every MPI has mpi-ext.h. */
int MPIX_Comm_agree(MPI_Comm comm, int *flag);

int rank;
static int size;
static int value;
static const char *program;
static MPI_Comm world = MPI_COMM_WORLD;

static MPI_Comm named_dup(const char *name)
{
    MPI_Comm comm;
    MPI_Comm_dup(world, &comm);
    MPI_Comm_set_name(comm, name);
    return comm;
}

static MPI_Win named_window(void)
{
    MPI_Win win;
    MPI_Win_create(&value, sizeof value, sizeof value, MPI_INFO_NULL, world, &win);
    MPI_Win_set_name(win, "counters");
    return win;
}

static unsigned next_random(unsigned *state) { return *state = *state * 1664525u + 1013904223u, *state >> 8; }

/* Messages of many sizes between random pairs, all ranks drawing the same numbers; now and then one sleeps, in a moment when others wait for it. */
static void stress(long messages)
{
    static char data[300000];
    unsigned state = 1;
    MPI_Request request;
    for (long i = 0; i < messages; i++) {
        int from = next_random(&state) % size, to = next_random(&state) % size, tag = next_random(&state) % 8;
        int bytes = next_random(&state) % 64 ? next_random(&state) % 5000 : next_random(&state) % sizeof data;
        int pause = next_random(&state) % 500 == 0 ? next_random(&state) % 200000 : 0;
        if (from == to) continue;
        if (rank == from) {
            if (pause) usleep(pause);
            MPI_Send(data, bytes, MPI_CHAR, to, tag, world);
        } else if (rank == to) {
            MPI_Recv(data, sizeof data, MPI_CHAR, from, tag, world, MPI_STATUS_IGNORE);
        }
        if (i % 1000 == 999) {
            MPI_Ibarrier(world, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    }
}

/* As many collective calls as `number` says, of each kind that has a path of its own. */
static void rounds(MPI_Comm comm, int number)
{
    enum { MORE = 5000 };
    static int all[16 * MORE], own[MORE], sums[MORE];
    for (int i = 0; i < number; i++) {
        int many = i % 3 == 0 ? 1 : i % 3 == 1 ? 500 : MORE;
        switch (i % 4) {
        case 0: MPI_Barrier(comm); break;
        case 1: MPI_Allreduce(own, sums, many, MPI_INT, MPI_SUM, comm); break;
        case 2: MPI_Gather(own, many, MPI_INT, all, many, MPI_INT, 0, comm); break;
        default: MPI_Allgather(own, many, MPI_INT, all, many, MPI_INT, comm); break;
        }
    }
}

static void run(const char *mistake, const char *argument)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    if (is(mistake, "cyclic-receive")) {
        receive(before, 7, world);
        send(next, 7, world);
    } else if (is(mistake, "cyclic-send")) {
        static char large[4 << 20];
        MPI_Send(large, sizeof large, MPI_CHAR, next, 7, world);
        MPI_Recv(large, sizeof large, MPI_CHAR, before, 7, world, MPI_STATUS_IGNORE);
    } else if (is(mistake, "cyclic-ssend")) {
        MPI_Ssend(&value, 1, MPI_INT, next, 7, world);
        receive(before, 7, world);
    } else if (is(mistake, "wrong-tag")) {
        MPI_Comm halo = named_dup("halo");
        if (rank == 1) send(0, 8, halo);
        if (rank == 0) receive(1, 7, halo);
    } else if (is(mistake, "wrong-tag-late")) {
        /* It comes when rank 0 has slept in vain. */
        if (rank == 1) sleep(1);
        if (rank == 1) send(0, 8, world);
        if (rank == 0) receive(1, 7, world);
    } else if (is(mistake, "wrong-source")) {
        if (rank == 1) send(0, 7, world);
        if (rank == 0) receive(2, 7, world);
    } else if (is(mistake, "wrong-communicator")) {
        MPI_Comm left = named_dup("left"), right = named_dup("right");
        if (rank == 1) send(0, 7, left);
        if (rank == 0) receive(1, 7, right);
    } else if (is(mistake, "missing-send")) {
        if (rank == 0) receive(1, 7, world);
        MPI_Barrier(world);
    } else if (is(mistake, "missing-in-barrier")) {
        if (rank != 2) MPI_Barrier(world);
        else receive(0, 3, world);
    } else if (is(mistake, "different-collectives")) {
        if (rank == 0) MPI_Barrier(world);
        else MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, world);
    } else if (is(mistake, "two-communicators")) {
        MPI_Comm a = named_dup("a"), b = named_dup("b");
        MPI_Barrier(a);
        MPI_Barrier(b);
        MPI_Barrier(rank == 0 ? a : b);
        MPI_Barrier(rank == 0 ? b : a);
    } else if (is(mistake, "early-finalize")) {
        if (rank != 1) MPI_Barrier(world);
    } else if (is(mistake, "receive-from-finalized")) {
        if (rank == 0) receive(1, 7, world);
    } else if (is(mistake, "probe")) {
        if (rank == 0) MPI_Probe(1, 9, world, MPI_STATUS_IGNORE);
        MPI_Barrier(world);
    } else if (is(mistake, "any-source")) {
        if (rank == 0) receive(MPI_ANY_SOURCE, 9, world);
        MPI_Barrier(world);
    } else if (is(mistake, "waitall")) {
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
    } else if (is(mistake, "bcast-of-the-root-alone")) {
        if (rank == 0) MPI_Bcast(&value, 1, MPI_INT, 0, world);
        MPI_Barrier(world);
        if (rank == 0) MPI_Barrier(world);
    } else if (is(mistake, "waitany")) {
        MPI_Request requests[2];
        int values[2], index;
        if (rank == 0) {
            MPI_Irecv(&values[0], 1, MPI_INT, 1, 1, world, &requests[0]);
            MPI_Irecv(&values[1], 1, MPI_INT, 1, 2, world, &requests[1]);
            MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
        }
        MPI_Barrier(world);
    } else if (is(mistake, "self-send")) {
        static char large[4 << 20];
        MPI_Ssend(large, sizeof large, MPI_CHAR, rank, 7, world);
    } else if (is(mistake, "self-receive")) {
        MPI_Recv(&value, 1, MPI_INT, rank, 7, world, MPI_STATUS_IGNORE);
    } else if (is(mistake, "window-lock")) {
        MPI_Win win;
        MPI_Win_create(&value, sizeof value, sizeof value, MPI_INFO_NULL, world, &win);
        if (rank == 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Barrier(world);
        if (rank != 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Barrier(world);
    } else if (is(mistake, "window-start")) {
        MPI_Win win;
        MPI_Group group, other;
        int peer = 1 - rank;
        MPI_Win_create(&value, sizeof value, sizeof value, MPI_INFO_NULL, world, &win);
        MPI_Comm_group(world, &group);
        MPI_Group_incl(group, 1, &peer, &other);
        if (rank == 0) MPI_Win_start(other, 0, win);
        MPI_Barrier(world);
    } else if (is(mistake, "bcast-as-receive")) {
        if (rank == 0) MPI_Bcast(&value, 1, MPI_INT, 0, world);
        else receive(0, 0, world);
        MPI_Barrier(world);
    } else if (is(mistake, "bcast-to-receives")) {
        /* The root goes on to MPI_Finalize. */
        if (rank == 0) MPI_Bcast(&value, 1, MPI_INT, 0, world);
        else receive(0, 0, world);
    } else if (is(mistake, "waitany-collectives")) {
        /* Nothing of the first, and the second begun by rank 0 alone. */
        MPI_Request requests[2];
        MPI_Comm halo = named_dup("halo");
        int index, sum;
        if (rank == 0) {
            MPI_Ibarrier(halo, &requests[0]);
            MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, world, &requests[1]);
            MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
        } else {
            receive(0, 3, halo);
        }
    } else if (is(mistake, "allreduce-counts")) {
        /* Rank 0 gives few elements, the others many: they do not meet. */
        static int many[1 << 20], sums[1 << 20];
        for (int i = 0; i < 3; i++) MPI_Barrier(world);
        MPI_Allreduce(many, sums, rank == 0 ? 1 : 1 << 20, MPI_INT, MPI_SUM, world);
    } else if (is(mistake, "short-operations")) {
        /* All on the fast path. */
        MPI_Comm halo = named_dup("halo");
        float real = 1, most;
        int sum;
        rounds(halo, 8);
        if (rank == 0) MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, halo);
        else if (rank == 1) MPI_Allreduce(&real, &most, 1, MPI_FLOAT, MPI_MAX, halo);
        else receive(0, 3, halo);
    } else if (is(mistake, "short-types")) {
        MPI_Comm halo = named_dup("halo");
        char twelve[12];
        int three[3];
        rounds(halo, 8);
        if (rank == 0) receive(1, 3, halo);
        else if (rank == 1) MPI_Bcast(three, 3, MPI_INT, 0, halo);
        else MPI_Bcast(twelve, 12, MPI_CHAR, 0, halo);
    } else if (is(mistake, "nonblocking-collective")) {
        MPI_Request request;
        if (rank == 0) {
            MPI_Ibarrier(world, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            receive(0, 1, world);
        }
    } else if (is(mistake, "nonblocking-missing")) {
        /* The third barrier: rank 1 begins it and waits for a message, rank 2 never begins it. */
        MPI_Request requests[2];
        MPI_Comm halo = named_dup("halo");
        rounds(halo, 5);
        MPI_Ibarrier(halo, &requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        if (rank == 2) receive(0, 3, halo);
        MPI_Ibarrier(halo, &requests[0]);
        if (rank == 1) receive(2, 3, halo);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    } else if (is(mistake, "nonblocking-different")) {
        /* By messages, as below. */
        MPI_Request request;
        int all[2];
        if (rank == 0) MPI_Ibcast(&value, 1, MPI_INT, 1, world, &request);
        else MPI_Igather(&value, 1, MPI_INT, all, 1, MPI_INT, 1, world, &request);
        MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
    } else if (is(mistake, "nonblocking-roots")) {
        MPI_Request request;
        double many[16] = {0};
        MPI_Ibcast(many, 16, MPI_DOUBLE, 1 - rank, world, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (is(mistake, "nonblocking-and-blocking")) {
        int index;
        MPI_Request request = MPI_REQUEST_NULL;
        if (rank == 0) MPI_Ibarrier(world, &request);
        else MPI_Barrier(world);
        MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE);
    } else if (is(mistake, "persistent-missing")) {
        MPI_Request request;
        MPI_Bcast_init(&value, 1, MPI_INT, 0, world, MPI_INFO_NULL, &request);
        for (int i = 0; i < 3; i++) {
            if (i == 2 && rank == 0) receive(1, 3, world);
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Request_free(&request);
    } else if (is(mistake, "idup-missing")) {
        MPI_Request request;
        MPI_Comm new;
        if (rank == 0) receive(1, 3, world);
        MPI_Comm_idup(world, &new, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (is(mistake, "neighbours-differ")) {
        /* Rank 0 has rank 1 as a source; rank 1 sends to nobody. */
        MPI_Comm graph;
        int one = 1;
        MPI_Dist_graph_create_adjacent(world, rank == 0, &one, MPI_UNWEIGHTED, 0, &one, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
        MPI_Comm_set_name(graph, "graph");
        MPI_Neighbor_alltoall(&value, 1, MPI_INT, &one, 1, MPI_INT, graph);
        MPI_Barrier(world);
    } else if (is(mistake, "neighbour-missing")) {
        MPI_Comm ring;
        int periodic = 1, both[2];
        MPI_Cart_create(world, 1, &size, &periodic, 0, &ring);
        MPI_Comm_set_name(ring, "ring");
        if (rank == 1) receive(0, 3, ring);
        MPI_Neighbor_allgather(&value, 1, MPI_INT, both, 1, MPI_INT, ring);
    } else if (is(mistake, "partition-not-ready")) {
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
    } else if (is(mistake, "partition-not-ready-of-all")) {
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
    } else if (is(mistake, "partitions-as-message")) {
        MPI_Request request;
        if (rank == 1) {
            MPI_Psend_init(&value, 1, 1, MPI_INT, 0, 7, world, MPI_INFO_NULL, &request);
            MPI_Start(&request);
            MPI_Pready(0, request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            receive(1, 7, world);
        }
    } else if (is(mistake, "two-locks")) {
        MPI_Win win = named_window();
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
        MPI_Barrier(world);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1 - rank, 0, win);
    } else if (is(mistake, "cycle-and-later-tag")) {
        /* What has come is wanted later: the mistake is the circle. */
        if (rank == 1) MPI_Send(&value, 1, MPI_INT, 0, 8, world);
        receive(next, 7, world);
        if (rank == 0) receive(1, 8, world);
    } else if (is(mistake, "cycle-and-later-start")) {
        MPI_Request request;
        if (rank == 1) MPI_Send_init(&value, 1, MPI_INT, 0, 7, world, &request);
        receive(next, 7, world);
        if (rank == 1) MPI_Start(&request);
    } else if (is(mistake, "cycle-and-later-source")) {
        if (rank == 2) MPI_Send(&value, 1, MPI_INT, 0, 7, world);
        if (rank == 0) receive(1, 7, world);
        if (rank == 1) receive(0, 7, world);
        if (rank == 0) receive(2, 7, world);
    } else if (is(mistake, "wrong-source-and-barrier")) {
        if (rank == 2) MPI_Send(&value, 1, MPI_INT, 0, 7, world);
        if (rank == 0) MPI_Probe(1, 7, world, MPI_STATUS_IGNORE);
        MPI_Barrier(world);
    } else if (is(mistake, "sendrecv-one-way")) {
        int from = 0;
        MPI_Sendrecv(&value, 1, MPI_INT, next, 7, &from, 1, MPI_INT, next, 7, world, MPI_STATUS_IGNORE);
    } else if (is(mistake, "sendrecv-of-others")) {
        /* Nobody sends. */
        int from = 0;
        MPI_Sendrecv(&value, 1, MPI_INT, MPI_PROC_NULL, 7, &from, 1, MPI_INT, next, 7, world, MPI_STATUS_IGNORE);
    } else if (is(mistake, "ssend-of-another-tag")) {
        if (rank == 0) receive(1, 7, world);
        if (rank == 1) MPI_Ssend(&value, 1, MPI_INT, 0, 8, world);
    } else if (is(mistake, "lock-of-a-third")) {
        MPI_Win win = named_window();
        if (rank == 1) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, win);
        MPI_Barrier(world);
        if (rank == 1) receive(0, 3, world);
        if (rank != 2) MPI_Win_lock(MPI_LOCK_SHARED, 2, 0, win);
    } else if (is(mistake, "lock-of-own-window")) {
        MPI_Win win = named_window();
        if (rank == 1) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Barrier(world);
        if (rank == 1) receive(0, 3, world);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    } else if (is(mistake, "lock-kept")) {
        MPI_Win win = named_window();
        if (rank == 1) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, win);
        MPI_Barrier(world);
        if (rank == 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, win);
    } else if (is(mistake, "lock-shared")) {
        MPI_Win win = named_window();
        if (rank) MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        MPI_Barrier(world);
        if (rank == 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
        if (rank == 2) receive(0, 3, world);
    } else if (is(mistake, "lock-shared-by-one")) {
        MPI_Win win = named_window();
        if (rank) MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        if (rank == 1) MPI_Win_unlock(1, win);
        MPI_Barrier(world);
        if (rank == 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
        if (rank == 2) receive(0, 3, world);
    } else if (is(mistake, "lock-handed-over")) {
        /* Rank 1 releases the lock when the others wait for it, perhaps asleep; the one that gets it waits for the other. */
        MPI_Win win = named_window();
        if (rank == 1) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
        MPI_Barrier(world);
        if (rank == 1) {
            usleep(700000);
            MPI_Win_unlock(1, win);
        } else {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
            receive(2 - rank, 3, world);
        }
    } else if (is(mistake, "fence-missing")) {
        MPI_Win win = named_window();
        MPI_Win_fence(0, win);
        if (rank == 1) receive(0, 3, world);
        MPI_Win_fence(0, win);
    } else if (is(mistake, "window-freed-by-some")) {
        MPI_Win win = named_window();
        if (rank != 2) MPI_Win_free(&win);
    } else if (is(mistake, "post-without-start")) {
        MPI_Win win = named_window();
        MPI_Group group, other;
        int peer = 1;
        MPI_Comm_group(world, &group);
        MPI_Group_incl(group, 1, &peer, &other);
        if (rank == 0) {
            MPI_Win_post(other, 0, win);
            MPI_Win_wait(win);
        }
        MPI_Barrier(world);
    } else if (is(mistake, "file-opened-by-one")) {
        MPI_File file;
        if (rank == 0) MPI_File_open(world, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, &file);
        MPI_Barrier(world);
    } else if (is(mistake, "file-written-by-some")) {
        MPI_File file;
        MPI_File_open(world, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, &file);
        if (rank == 1) receive(0, 3, world);
        MPI_File_write_ordered(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
    } else if (is(mistake, "spawned-and-nothing-sent")) {
        MPI_Comm parent, children;
        char *arguments[] = {"spawned-and-nothing-sent", NULL};
        MPI_Comm_get_parent(&parent);
        if (parent == MPI_COMM_NULL) {
            MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, world, &children, MPI_ERRCODES_IGNORE);
            MPI_Comm_set_name(children, "children");
            receive(0, 1, children);
        } else {
            MPI_Comm_set_name(parent, "parents");
            receive(0, 1, parent);
        }
    } else if (is(mistake, "spawned-and-left")) {
        MPI_Comm parent, children;
        char *arguments[] = {"spawned-and-left", NULL};
        MPI_Comm_get_parent(&parent);
        if (parent == MPI_COMM_NULL) {
            MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, world, &children, MPI_ERRCODES_IGNORE);
            MPI_Comm_set_name(children, "children");
            MPI_Barrier(children);
        } else if (rank == 0) {
            MPI_Barrier(parent);
        }
    } else if (is(mistake, "intercomm-root")) {
        /* Rank 0 is the root; the other group names the second rank of its group, rank 2, as the root. */
        MPI_Comm half, bridge;
        int four[4] = {0};
        MPI_Comm_split(world, rank % 2, rank, &half);
        MPI_Intercomm_create(half, 0, world, 1 - rank % 2, 5, &bridge);
        MPI_Comm_set_name(bridge, "bridge");
        MPI_Bcast(four, 4, MPI_INT, rank % 2 ? 1 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, bridge);
        MPI_Barrier(world);
    } else if (is(mistake, "mprobe")) {
        MPI_Message message;
        if (rank == 0) MPI_Mprobe(1, 7, world, &message, MPI_STATUS_IGNORE);
        else send(0, 8, world);
        MPI_Barrier(world);
    } else if (is(mistake, "waitsome")) {
        MPI_Request requests[2];
        int values[2], indices[2], number;
        if (rank == 0) {
            MPI_Irecv(&values[0], 1, MPI_INT, 1, 1, world, &requests[0]);
            MPI_Irecv(&values[1], 1, MPI_INT, 2, 1, world, &requests[1]);
            MPI_Waitsome(2, requests, &number, indices, MPI_STATUSES_IGNORE);
        }
        MPI_Barrier(world);
    } else if (is(mistake, "ibarrier-and-receive")) {
        /* What rank 0 waits for comes behind the barrier, which rank 0 has not begun. */
        MPI_Request request;
        if (rank == 0) receive(1, 3, world);
        MPI_Ibarrier(world, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (rank == 1) send(0, 3, world);
    } else if (is(mistake, "ibarrier-and-finalize")) {
        MPI_Request request;
        if (rank == 1) {
            MPI_Ibarrier(world, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    } else if (is(mistake, "sendrecv-partner")) {
        int from = rank == 0 ? next : before;
        MPI_Sendrecv_replace(&value, 1, MPI_INT, next, 7, from, 7, world, MPI_STATUS_IGNORE);
    } else if (is(mistake, "sendrecv-tags")) {
        MPI_Sendrecv_replace(&value, 1, MPI_INT, next, rank, before, rank, world, MPI_STATUS_IGNORE);
    } else if (is(mistake, "isend-waited-for")) {
        static char large[4 << 20];
        MPI_Request request;
        MPI_Isend(large, sizeof large, MPI_CHAR, next, 7, world, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Recv(large, sizeof large, MPI_CHAR, before, 7, world, MPI_STATUS_IGNORE);
    } else if (is(mistake, "worker-not-told")) {
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
    } else if (is(mistake, "one-step-less")) {
        for (int i = 0; i < 10 - (rank == 1); i++) {
            MPI_Sendrecv_replace(&value, 1, MPI_INT, next, 7, before, 7, world, MPI_STATUS_IGNORE);
        }
        MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, world);
    } else if (is(mistake, "large-order")) {
        static char large[4 << 20];
        for (int i = 1; i <= 2; i++) {
            if (rank == 0) MPI_Send(large, sizeof large, MPI_CHAR, 1, i, world);
            else MPI_Recv(large, sizeof large, MPI_CHAR, 0, 3 - i, world, MPI_STATUS_IGNORE);
        }
    } else if (is(mistake, "split-by-some")) {
        MPI_Comm part;
        if (rank < 2) MPI_Comm_split(world, 0, rank, &part);
        MPI_Barrier(world);
    } else if (is(mistake, "numbers-after-creation")) {
        /* Calls that make something count as one each, whatever they send. */
        MPI_Comm halo = named_dup("halo"), made[4], parent;
        MPI_Win win;
        MPI_File file;
        char *arguments[] = {"numbers-after-creation", NULL};
        MPI_Comm_get_parent(&parent);
        if (parent != MPI_COMM_NULL) return;
        MPI_Comm_dup(halo, &made[0]);
        MPI_Comm_split(halo, rank % 2, rank, &made[1]);
        MPI_Dist_graph_create(halo, 1, &rank, &(int){1}, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made[2]);
        MPI_Win_create(&value, sizeof value, sizeof value, MPI_INFO_NULL, halo, &win);
        MPI_File_open(halo, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, &file);
        MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, halo, &made[3], MPI_ERRCODES_IGNORE);
        MPI_Barrier(halo);
        if (rank == 0) receive(1, 3, halo);
        MPI_Comm_dup(halo, &made[0]);
    } else if (is(mistake, "intercomm-tags")) {
        MPI_Comm half, bridge;
        MPI_Comm_split(world, rank % 2, rank, &half);
        MPI_Comm_set_name(half, "half");
        MPI_Intercomm_create(half, 0, world, 1 - rank % 2, 5 + rank % 2, &bridge);
    } else if (is(mistake, "send-not-started")) {
        MPI_Request request;
        if (rank == 0) {
            MPI_Send_init(&value, 1, MPI_INT, 1, 7, world, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            receive(0, 7, world);
        }
        MPI_Barrier(world);
    } else if (is(mistake, "receive-not-started")) {
        MPI_Request requests[2];
        if (rank == 0) {
            MPI_Recv_init(&value, 1, MPI_INT, MPI_ANY_SOURCE, 7, world, requests);
        } else {
            MPI_Issend(&value, 1, MPI_INT, 0, 7, world, &requests[0]);
            MPI_Issend(&value, 1, MPI_INT, 0, 7, world, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        }
        MPI_Barrier(world);
    } else if (is(mistake, "sleeps")) {
        /* No mistake: rank 1 does something else for a while. */
        if (rank == 1) sleep(3);
        MPI_Barrier(world);
    } else if (is(mistake, "relay")) {
        /* No mistake: a message goes round through ranks that sleep in MPI and outside of it, and large ones go along. */
        static char large[1 << 20];
        for (int round = 0; round < 40; round++) {
            if (rank == 0) {
                usleep(round % 4 * 60000);
                MPI_Send(large, sizeof large, MPI_CHAR, next, 1, world);
            }
            MPI_Recv(large, sizeof large, MPI_CHAR, before, 1, world, MPI_STATUS_IGNORE);
            if (rank != 0) MPI_Send(large, sizeof large, MPI_CHAR, next, 1, world);
        }
    } else if (is(mistake, "bcast-roots")) {
        /* Both send, and the elements are many. Members that share memory would notice; messages do not. */
        static int large[1 << 20];
        MPI_Comm halo = named_dup("halo");
        rounds(halo, 5);
        MPI_Bcast(large, 1 << 20, MPI_INT, rank, halo);
    } else if (is(mistake, "bcast-missing")) {
        MPI_Comm halo = named_dup("halo");
        rounds(halo, 16);
        if (rank == 1) receive(0, 3, halo);
        MPI_Bcast(&value, 1, MPI_INT, 1, halo);
    } else if (is(mistake, "reduce-missing")) {
        MPI_Comm halo = named_dup("halo");
        MPI_Datatype pair;
        MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
        MPI_Type_commit(&pair);
        double pairs[8] = {0};
        rounds(halo, 3);
        MPI_Bcast(pairs, 4, pair, 0, halo);
        if (rank == 0) receive(1, 3, halo);
        static double many[20000], sums[20000];
        MPI_Reduce(many, sums, 20000, MPI_DOUBLE, MPI_MAX, 0, halo);
    } else if (is(mistake, "gather-and-receive")) {
        int parts[8];
        if (rank == 1) MPI_Recv(parts, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, world, MPI_STATUS_IGNORE);
        MPI_Gather(&rank, 1, MPI_INT, parts, 1, MPI_INT, 0, world);
    } else if (is(mistake, "gather-without-two")) {
        int parts[8];
        if (rank == 1 || rank == 2) MPI_Recv(parts, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, world, MPI_STATUS_IGNORE);
        MPI_Gather(&rank, 1, MPI_INT, parts, 1, MPI_INT, 0, world);
    } else if (is(mistake, "buffered-and-not-received")) {
        static char buffer[1000000], data[500000];
        MPI_Buffer_attach(buffer, sizeof buffer);
        if (rank == 0) {
            void *own;
            int bytes;
            MPI_Bsend(data, sizeof data, MPI_CHAR, 1, 6, world);
            MPI_Buffer_detach(&own, &bytes);
        }
        MPI_Barrier(world);
    } else if (is(mistake, "issend-freed")) {
        static char data[1000];
        MPI_Request request;
        MPI_Issend(data, sizeof data, MPI_CHAR, next, 7, world, &request);
        MPI_Request_free(&request);
    } else if (is(mistake, "agree-and-barrier")) {
        MPI_Comm halo = named_dup("halo");
        if (rank == 0) MPIX_Comm_agree(halo, &value);
        MPI_Barrier(halo);
    } else if (strncmp(mistake, "thread", 6) == 0) {
        mistake_of_threads(mistake);
    } else if (is(mistake, "pipe")) {
        /* No mistake: rank 0 waits for another program while rank 1 waits for rank 0. */
        if (rank == 0) {
            FILE *other = popen("sleep 3; echo 1", "r");
            if (!other || fscanf(other, "%d", &value) != 1 || pclose(other)) MPI_Abort(world, 4);
        }
        MPI_Barrier(world);
    } else if (is(mistake, "stress")) {
        stress(argument ? atol(argument) : 20000);
    } else if (is(mistake, "traffic")) {
        char data[1000] = {0};
        for (;;) {
            MPI_Sendrecv_replace(data, sizeof data, MPI_CHAR, next, 1, before, 1, world, MPI_STATUS_IGNORE);
        }
    } else if (is(mistake, "long-sleep")) {
        if (rank == 1) sleep(1000);
        MPI_Barrier(world);
    } else {
        fprintf(stderr, "no such mistake: %s\n", mistake);
        MPI_Abort(world, 3);
    }
}

int main(int argc, char **argv)
{
    int provided;
    if (argc > 1 && (is(argv[1], "bcast-roots") || is(argv[1], "nonblocking-different"))) setenv("PERUSAL_COLL_SHARED", "off", 1);
    const char *level = getenv("MISTAKE_THREADS");
    int threads = level || (argc > 1 && strncmp(argv[1], "thread", 6) == 0);
    MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    if (getenv("MISTAKE_IDLE_THREAD")) start_idle();
    if (getenv("MISTAKE_WAITING_THREAD")) start_waiting();
    program = argv[0];
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    run(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : NULL);
    MPI_Finalize();
    return 0;
}
