/* Programs of several mpiexec that meet: meeting MODE NAME [COUNT [FILE]]. */
#define _DEFAULT_SOURCE
#include "../c/merged.h"
#include <mpi-ext.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char *program;
static int rank, size;

/* Says what has happened, and makes a file of it, if it is given a name. */
static void up(const char *what, const char *path) {
    if (rank != 0) return;
    printf("%s\n", what);
    fflush(stdout);
    if (path) fclose(fopen(path, "w"));
}

/* Partitioned messages round a ring of all: short and long partitions,
 * into private memory and into that which a job shares. */
static void in_partitions(MPI_Comm all, int r, int n) {
    enum { PARTS = 4, MOST = 64 << 10 };
    MPI_Request requests[2];
    int next = (r + 1) % n, before = (r + n - 1) % n, flag;
    for (int kind = 0; kind < 4; kind++) {
        int each = kind & 1 ? MOST : 16;
        char *out = malloc(PARTS * MOST), *in = malloc(PARTS * MOST), *shared, *to;
        OK(MPI_Alloc_mem(PARTS * MOST, MPI_INFO_NULL, &shared));
        to = kind & 2 ? shared : in;
        OK(MPI_Precv_init(to, PARTS / 2, 2 * each, MPI_CHAR, before, 3, all, MPI_INFO_NULL, &requests[0]));
        OK(MPI_Psend_init(out, PARTS, each, MPI_CHAR, next, 3, all, MPI_INFO_NULL, &requests[1]));
        for (int round = 0; round < 3; round++) {
            memset(to, 0, (size_t)PARTS * each);
            OK(MPI_Startall(2, requests));
            for (int part = PARTS - 1; part >= 0; part--) {
                memset(out + (size_t)part * each, 10 * r + part + round, (size_t)each);
                OK(MPI_Pready(part, requests[1]));
            }
            for (flag = 0; !flag;) OK(MPI_Parrived(requests[0], 1, &flag));
            SAME(to[2 * each], (char)(10 * before + 2 + round));
            OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
            for (int part = 0; part < PARTS; part++)
                for (int i = 0; i < 2; i++) SAME(to[part * each + i * (each - 1)], (char)(10 * before + part + round));
        }
        OK(MPI_Request_free(&requests[0]));
        OK(MPI_Request_free(&requests[1]));
        OK(MPI_Free_mem(shared));
        free(out);
        free(in);
    }
}

/* A window that outlives every communicator of its members' connects them still. */
static void outlive(MPI_Comm *inter, int high, const char *path) {
    MPI_Comm all;
    MPI_Win win;
    MPI_Group group;
    long long *words, mine;
    int r, n;
    OK(MPI_Intercomm_merge(*inter, high, &all));
    OK(MPI_Win_allocate(8, 8, MPI_INFO_NULL, all, &words, &win));
    OK(MPI_Comm_free(&all));
    OK(MPI_Comm_disconnect(inter));
    OK(MPI_Win_get_group(win, &group));
    OK(MPI_Group_rank(group, &r));
    OK(MPI_Group_size(group, &n));
    OK(MPI_Group_free(&group));
    mine = 5 + r;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&mine, 1, MPI_LONG_LONG, (r + 1) % n, 0, 1, MPI_LONG_LONG, win));
    OK(MPI_Win_fence(0, win));
    SAME(*words, 5 + (r + n - 1) % n);
    if (path) {
        up("met", path);
        for (;;) MPI_Win_fence(0, win), usleep(1000);
    }
    OK(MPI_Win_free(&win));
}

/* What rests on one order of deaths is an error at once on a communicator of both jobs, and leaves it as it was. */
static void alive(MPI_Comm both) {
    MPI_Comm made;
    MPI_Request request;
    MPI_Group dead;
    int flag = 1, members = -1;
    CLASS(MPIX_Comm_agree(both, &flag), MPI_ERR_COMM);
    CLASS(MPIX_Comm_iagree(both, &flag, &request), MPI_ERR_COMM);
    CLASS(MPIX_Comm_shrink(both, &made), MPI_ERR_COMM);
    CLASS(MPIX_Comm_ishrink(both, &made, &request), MPI_ERR_COMM);
    CLASS(MPIX_Comm_revoke(both), MPI_ERR_COMM);
    SAME(flag, 1);
    OK(MPIX_Comm_is_revoked(both, &flag));
    SAME(flag, 0);
    OK(MPIX_Comm_get_failed(both, &dead));
    OK(MPI_Group_size(dead, &members));
    SAME(members, 0);
    OK(MPI_Group_free(&dead));
    OK(MPIX_Comm_ack_failed(both, 0, &members));
    SAME(members, 0);
    OK(MPIX_Comm_ack_failed(both, 1, &members));
    SAME(members, 0);
    OK(MPI_Barrier(both));
}

/* Everything works between the groups, but for what only one job can decide. */
static void talk(MPI_Comm inter, int high) {
    MPI_Comm all, half, again, back;
    MPI_Request requests[2];
    int theirs, r, n, sum = -1, mine, other = -1, members = 0;
    OK(MPI_Comm_remote_size(inter, &theirs));
    OK(MPI_Allreduce(&size, &sum, 1, MPI_INT, MPI_SUM, inter));
    SAME(sum, theirs * theirs);
    OK(MPI_Intercomm_merge(inter, high, &all));
    OK(MPI_Comm_rank(all, &r));
    OK(MPI_Comm_size(all, &n));
    SAME(n, size + theirs);
    SAME(r, high ? theirs + rank : rank);
    for (int bytes = 1; bytes <= 4 << 20; bytes *= 16) {
        char *out = malloc((size_t)bytes), *in = malloc((size_t)bytes), *shared;
        OK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &shared));
        int next = (r + 1) % n, before = (r + n - 1) % n;
        memset(out, r, (size_t)bytes);
        memset(shared, r + 100, (size_t)bytes);
        for (int i = 0; i < 3; i++) {
            OK(MPI_Irecv(in, bytes, MPI_CHAR, i == 1 ? MPI_ANY_SOURCE : before, 7, all, &requests[0]));
            OK(MPI_Isend(i == 2 ? shared : out, bytes, MPI_CHAR, next, 7, all, &requests[1]));
            OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
            SAME(in[0], before + (i == 2 ? 100 : 0));
            SAME(in[bytes - 1], before + (i == 2 ? 100 : 0));
        }
        /* Into memory that is shared within a job. */
        OK(MPI_Sendrecv(out, bytes, MPI_CHAR, next, 8, shared, bytes, MPI_CHAR, before, 8, all, MPI_STATUS_IGNORE));
        SAME(shared[bytes - 1], before);
        OK(MPI_Bcast(in, bytes, MPI_CHAR, n - 1, all));
        OK(MPI_Free_mem(shared));
        free(out);
        free(in);
    }
    for (int i = 0; i < 20; i++) {
        OK(MPI_Allreduce(&r, &sum, 1, MPI_INT, MPI_SUM, all));
        SAME(sum, n * (n - 1) / 2);
        OK(MPI_Iallreduce(&r, &other, 1, MPI_INT, MPI_MAX, all, &requests[0]));
        OK(MPI_Wait(requests, MPI_STATUS_IGNORE));
        SAME(other, n - 1);
        OK(MPI_Barrier(all));
    }
    int *everybody = malloc(sizeof(int) * (size_t)n);
    OK(MPI_Allgather(&r, 1, MPI_INT, everybody, 1, MPI_INT, all));
    for (int i = 0; i < n; i++) SAME(everybody[i], i);
    free(everybody);
    /* Communicators of members of both jobs, and one that connects such. */
    OK(MPI_Comm_split(all, r % 2, -r, &half));
    OK(MPI_Comm_size(half, &members));
    SAME(members, (n + 1 - r % 2) / 2);
    OK(MPI_Intercomm_create(half, 0, all, r % 2 ? (n - 1) / 2 * 2 : (n - 2) / 2 * 2 + 1, 5, &back));
    mine = r;
    OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_MAX, back));
    SAME(sum, r % 2 ? (n - 1) / 2 * 2 : (n - 2) / 2 * 2 + 1);
    OK(MPI_Comm_free(&back));
    OK(MPI_Comm_free(&half));
    OK(MPI_Comm_dup(all, &again));
    OK(MPI_Barrier(again));
    OK(MPI_Comm_free(&again));
    in_partitions(all, r, n);
    of_groups(all, r, n);
    one_sided(all, r, n);
    into_a_file(all, r, n);
    alive(inter);
    alive(all);
    OK(MPI_Comm_free(&all));
}

/* Messages of one byte to a mebibyte to another process, which sends them back. */
static void there_and_back(MPI_Comm inter, int to, int seed) {
    char *out = malloc(1 << 20), *in = malloc(1 << 20);
    for (int bytes = 1; bytes <= 1 << 20; bytes *= 32) {
        memset(out, seed + bytes, (size_t)bytes);
        OK(MPI_Send(out, bytes, MPI_CHAR, to, 3, inter));
        OK(MPI_Recv(in, bytes, MPI_CHAR, to, 3, inter, MPI_STATUS_IGNORE));
        SAME(memcmp(in, out, (size_t)bytes), 0);
    }
    free(out);
    free(in);
}

static void back(MPI_Comm inter) {
    char *buffer = malloc(1 << 20);
    for (int bytes = 1; bytes <= 1 << 20; bytes *= 32) {
        OK(MPI_Recv(buffer, bytes, MPI_CHAR, 0, 3, inter, MPI_STATUS_IGNORE));
        OK(MPI_Send(buffer, bytes, MPI_CHAR, 0, 3, inter));
    }
    free(buffer);
}

/* Two processes are spawned, and talk with all. */
static void have_a_child(MPI_Comm all, int root) {
    MPI_Comm children, family;
    char *argv[] = {"born", "", NULL};
    int r, n, sum;
    OK(MPI_Comm_rank(all, &r));
    OK(MPI_Comm_size(all, &n));
    OK(MPI_Comm_spawn(program, argv, 2, MPI_INFO_NULL, root, all, &children, MPI_ERRCODES_IGNORE));
    if (r == 0)
        for (int to = 0; to < 2; to++) there_and_back(children, to, 100 + to);
    OK(MPI_Intercomm_merge(children, 0, &family));
    for (int i = 0; i < 20; i++) {
        OK(MPI_Allreduce(&r, &sum, 1, MPI_INT, MPI_SUM, family));
        SAME(sum, n * (n - 1) / 2 + 200);
    }
    OK(MPI_Comm_disconnect(&family));
    OK(MPI_Comm_disconnect(&children));
}

/* One job after the other joins the communicator of all that were there before, and none has met all others but so. */
static void grow(MPI_Comm all, int have, int count, const char *port) {
    MPI_Comm inter, made;
    int r, n, mine;
    for (; have < count; have++) {
        OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, all, &inter));
        OK(MPI_Intercomm_merge(inter, 0, &made));
        mine = have + 1;
        OK(MPI_Bcast(&mine, 1, MPI_INT, 0, made));
        OK(MPI_Comm_disconnect(&inter));
        if (all != MPI_COMM_WORLD) OK(MPI_Comm_disconnect(&all));
        all = made;
    }
    OK(MPI_Comm_rank(all, &r));
    OK(MPI_Comm_size(all, &n));
    in_partitions(all, r, n);
    of_groups(all, r, n);
    one_sided(all, r, n);
    into_a_file(all, r, n);
    alive(all);
    /* Processes that one of the jobs spawns are met by all, also where one has had the place of another. */
    for (int i = 0; i < 6; i++) have_a_child(all, i % 2 ? n - 1 : 0);
    OK(MPI_Comm_disconnect(&all));
}

/* The name of a service for the job's own processes, and the key that says so. */
static MPI_Info narrow(const char *name, char *own, size_t room) {
    MPI_Info info;
    snprintf(own, room, "%s, here", name);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "scope", "job"));
    return info;
}

static void publish(const char *name, char *port) {
    if (rank == 0) {
        char own[200];
        MPI_Info info = narrow(name, own, sizeof own);
        OK(MPI_Open_port(MPI_INFO_NULL, port));
        OK(MPI_Publish_name(own, info, port));
        OK(MPI_Info_free(&info));
        OK(MPI_Publish_name(name, MPI_INFO_NULL, port));
    }
}

static void find(const char *name, char *port) {
    int class = MPI_ERR_NAME;
    while (rank == 0 && class == MPI_ERR_NAME) {
        OK(MPI_Error_class(MPI_Lookup_name(name, MPI_INFO_NULL, port), &class));
        usleep(5000);
    }
    if (rank == 0) {
        char own[200], none[MPI_MAX_PORT_NAME];
        MPI_Info info = narrow(name, own, sizeof own);
        CLASS(MPI_Lookup_name(own, MPI_INFO_NULL, none), MPI_ERR_NAME);
        CLASS(MPI_Lookup_name(name, info, none), MPI_ERR_NAME);
        OK(MPI_Info_free(&info));
    }
    SAME(rank == 0 ? class : MPI_SUCCESS, MPI_SUCCESS);
}

static MPI_Comm joined(const char *path, int listens) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), peer = fd;
    MPI_Comm inter;
    strncpy(at.sun_path, path, sizeof at.sun_path - 1);
    if (listens) {
        SAME(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
        SAME(listen(fd, 1), 0);
        peer = accept(fd, NULL, NULL);
        unlink(path);
    } else {
        while (connect(fd, (struct sockaddr *)&at, sizeof at)) usleep(5000);
    }
    OK(MPI_Comm_join(peer, &inter));
    char byte = 'x';
    SAME(write(peer, &byte, 1), 1);
    SAME(read(peer, &byte, 1), 1);
    close(peer);
    if (listens) close(fd);
    return inter;
}

/* A port of another job at which nobody accepts, ports of jobs that are not there, and names. */
static void mistakes(const char *port) {
    MPI_Comm inter;
    MPI_Info info;
    char own[MPI_MAX_PORT_NAME], other[MPI_MAX_PORT_NAME + 8];
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "timeout", "0.2"));
    CLASS(MPI_Comm_connect(port, info, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
    CHECK(inter == MPI_COMM_NULL);
    /* It is another job's: only who has opened it accepts there, or closes it. */
    CLASS(MPI_Comm_accept(port, info, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
    CLASS(MPI_Close_port(port), MPI_ERR_PORT);
    snprintf(other, sizeof other, "%s9", port);
    CLASS(MPI_Comm_connect(other, info, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
    OK(MPI_Open_port(MPI_INFO_NULL, own));
    for (int at = 0; own[at]; at++) {
        char changed[MPI_MAX_PORT_NAME];
        strcpy(changed, own);
        changed[at] = changed[at] == '1' ? '2' : '1';
        CLASS(MPI_Comm_connect(changed, info, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
    }
    OK(MPI_Info_free(&info));
}

int main(int argc, char **argv) {
    const char *mode = argv[1], *name = argv[2];
    int count = argc > 3 ? atoi(argv[3]) : 1, word = 0;
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter, all;
    program = argv[0];
    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    int brief = strstr(mode, "-brief") != NULL;
    if (!strcmp(mode, "serve") || !strcmp(mode, "serve-brief")) {
        publish(name, port);
        up("open", NULL);
        for (int i = 0; i < count; i++) {
            OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
            if (!brief) talk(inter, 0);
            if (!brief && i == 0) outlive(&inter, 0, NULL);
            else OK(MPI_Comm_disconnect(&inter));
        }
        up("served", NULL);
    } else if (!strcmp(mode, "visit") || !strcmp(mode, "visit-brief")) {
        find(name, port);
        for (int i = 0; i < count; i++) {
            OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
            if (inter == MPI_COMM_NULL) return 1;
            if (!brief) talk(inter, 1);
            if (!brief && i == 0) outlive(&inter, 1, NULL);
            else OK(MPI_Comm_disconnect(&inter));
        }
        up("visited", NULL);
    } else if (!strcmp(mode, "gather")) {
        publish(name, port);
        up("open", NULL);
        grow(MPI_COMM_WORLD, 0, count, port);
        up("gathered", NULL);
    } else if (!strcmp(mode, "come")) {
        int have = 0;
        find(name, port);
        OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
        if (inter == MPI_COMM_NULL) return 1;
        OK(MPI_Intercomm_merge(inter, 1, &all));
        OK(MPI_Bcast(&have, 1, MPI_INT, 0, all));
        OK(MPI_Comm_disconnect(&inter));
        grow(all, have, count, port);
        up("came", NULL);
    } else if (!strcmp(mode, "host")) {
        /* Guests, and processes that are spawned, have the same places in turn. */
        publish(name, port);
        up("open", NULL);
        for (int i = 0; i < count; i++) {
            OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
            int guests;
            OK(MPI_Comm_remote_size(inter, &guests));
            for (int to = 0; to < guests; to++) there_and_back(inter, to, 10 * i + to);
            OK(MPI_Comm_disconnect(&inter));
            if (i > 0) have_a_child(MPI_COMM_WORLD, 0);
        }
        up("hosted", NULL);
    } else if (!strcmp(mode, "look-in")) {
        find(name, port);
        OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
        if (inter == MPI_COMM_NULL) return 1;
        back(inter);
        OK(MPI_Comm_disconnect(&inter));
        up("looked in", NULL);
    } else if (!strcmp(mode, "born")) {
        OK(MPI_Comm_get_parent(&inter));
        back(inter);
        OK(MPI_Intercomm_merge(inter, 1, &all));
        for (int i = 0, mine = 100, sum; i < 20; i++) OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, all));
        OK(MPI_Comm_disconnect(&all));
        OK(MPI_Comm_disconnect(&inter));
    } else if (!strcmp(mode, "listen-apart") || !strcmp(mode, "call-apart")) {
        inter = joined(name, mode[0] == 'l');
        CHECK(inter == MPI_COMM_NULL);
        up("apart", NULL);
    } else if (!strcmp(mode, "listen") || !strcmp(mode, "call")) {
        inter = joined(name, mode[0] == 'l');
        if (inter != MPI_COMM_NULL) {
            talk(inter, mode[0] == 'l');
            OK(MPI_Comm_disconnect(&inter));
            up("joined", NULL);
        }
    } else if (!strcmp(mode, "unwilling")) {
        publish(name, port);
        up("open", NULL);
        OK(MPI_Recv(&word, 1, MPI_INT, 0, 3, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    } else if (!strcmp(mode, "turned-away")) {
        find(name, port);
        CLASS(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter), MPI_ERR_PORT);
        CHECK(inter == MPI_COMM_NULL);
        up("turned away", NULL);
        /* The handler that ends the job says why. */
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
        if (rank == 0) MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    } else if (!strcmp(mode, "mistaken")) {
        find(name, port);
        mistakes(port);
        up("refused", NULL);
    } else {
        /* "wait-…": connected; "window-…": by a window alone; "part-…": after that. Until somebody is killed. */
        if (strstr(mode, "serve")) {
            publish(name, port);
            OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
        } else {
            find(name, port);
            OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
        }
        OK(MPI_Barrier(inter));
        if (!strncmp(mode, "window", 6)) outlive(&inter, strstr(mode, "serve") == NULL, argv[4]);
        if (!strncmp(mode, "part", 4)) {
            OK(MPI_Comm_disconnect(&inter));
            /* Rank 0 tells of all ranks. */
            OK(MPI_Barrier(MPI_COMM_WORLD));
        }
        up("met", argc > 4 ? argv[4] : NULL);
        if (!strncmp(mode, "part", 4)) {
            for (int i = 0; i < 100; i++) {
                usleep(10000);
                OK(MPI_Barrier(MPI_COMM_WORLD));
            }
            up("alone", NULL);
        } else {
            MPI_Comm_set_errhandler(inter, MPI_ERRORS_ARE_FATAL);
            MPI_Recv(&word, 1, MPI_INT, 0, 3, inter, MPI_STATUS_IGNORE);
        }
    }
    MPI_Finalize();
    return verdict();
}
