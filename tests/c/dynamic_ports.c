/* Groups meet at ports and over sockets, names are published,
 * and what is wrong with a port or a name is an error of its class.
 * RANKS: 4
 */
#include "check.h"
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Both sides exchange a word and a collective, then disconnect. */
static void meet(MPI_Comm inter, int mine, int expected, int remote) {
    int size, word = -1, rank, sum = 0;
    OK(MPI_Comm_remote_size(inter, &size));
    SAME(size, remote);
    OK(MPI_Comm_rank(inter, &rank));
    if (rank == 0) {
        OK(MPI_Sendrecv(&mine, 1, MPI_INT, 0, 1, &word, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE));
        SAME(word, expected);
    }
    OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter));
    SAME(sum, expected * remote);
    OK(MPI_Comm_disconnect(&inter));
}

static void pairs(MPI_Comm half, int color, int rank, char *port) {
    MPI_Comm inter;
    /* Only the roots' ports count; the roots are different ranks of the halves. */
    for (int again = 0; again < 3; again++) {
        if (color == 0) {
            OK(MPI_Comm_accept(rank == 0 ? port : (char *)8, MPI_INFO_NULL, 0, half, &inter));
        } else {
            OK(MPI_Comm_connect(rank == 3 ? port : (char *)8, MPI_INFO_NULL, 1, half, &inter));
        }
        meet(inter, 10 + color, 11 - color, 2);
    }
}

/* One port, three processes that connect, in whatever order they come. */
static void many(int rank, char *port) {
    MPI_Comm inter;
    if (rank == 0) {
        int seen = 0;
        for (int i = 0; i < 3; i++) {
            int who;
            OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
            OK(MPI_Recv(&who, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE));
            seen |= 1 << who;
            OK(MPI_Comm_disconnect(&inter));
        }
        SAME(seen, 14);
    } else {
        OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
        OK(MPI_Send(&rank, 1, MPI_INT, 0, 0, inter));
        OK(MPI_Comm_disconnect(&inter));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void names(int rank, char *port) {
    char found[MPI_MAX_PORT_NAME] = "", service[64 + MPI_MAX_PORT_NAME];
    /* Names are known to all jobs of the user: this one is the job's own. */
    snprintf(service, sizeof service, "service of %s", port);
    if (rank == 0) {
        OK(MPI_Publish_name(service, MPI_INFO_NULL, port));
        CLASS(MPI_Publish_name(service, MPI_INFO_NULL, port), MPI_ERR_SERVICE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_Lookup_name(service, MPI_INFO_NULL, found));
    CHECK(!strcmp(found, port));
    CLASS(MPI_Lookup_name("nobody's", MPI_INFO_NULL, found), MPI_ERR_NAME);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        CLASS(MPI_Unpublish_name("nobody's", MPI_INFO_NULL, port), MPI_ERR_SERVICE);
        CLASS(MPI_Unpublish_name(service, MPI_INFO_NULL, "other"), MPI_ERR_SERVICE);
        OK(MPI_Unpublish_name(service, MPI_INFO_NULL, port));
        CLASS(MPI_Lookup_name(service, MPI_INFO_NULL, found), MPI_ERR_NAME);
    }
}

/* A name for this job alone: found here, and by nobody else (meeting.c looks for it from another job). */
static void narrow(int rank, char *port) {
    char found[MPI_MAX_PORT_NAME] = "";
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "scope", "job"));
    if (rank == 0) OK(MPI_Publish_name("only here", info, port));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_Lookup_name("only here", rank % 2 ? info : MPI_INFO_NULL, found));
    CHECK(!strcmp(found, port));
    CLASS(MPI_Lookup_name("nobody's", info, found), MPI_ERR_NAME);
    OK(MPI_Info_set(info, "scope", "world"));
    CLASS(MPI_Lookup_name("only here", info, found), MPI_ERR_INFO_VALUE);
    CLASS(MPI_Publish_name("another", info, port), MPI_ERR_INFO_VALUE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) OK(MPI_Unpublish_name("only here", MPI_INFO_NULL, port));
    OK(MPI_Info_free(&info));
}

static void errors(int rank) {
    MPI_Comm inter = 0;
    MPI_Info info;
    char port[MPI_MAX_PORT_NAME], hostile[MPI_MAX_PORT_NAME];
    memset(hostile, '%', sizeof hostile);
    hostile[sizeof hostile - 1] = 0;
    const char *wrong[] = {"", "nonsense", hostile, "perusal:", "perusal:0123456789abcdef:1", "perusal:\xff\n%s:1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CLASS(MPI_Comm_connect(wrong[i], MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
        CHECK(inter == MPI_COMM_NULL);
        CLASS(MPI_Comm_accept(wrong[i], MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
        CLASS(MPI_Close_port(wrong[i]), MPI_ERR_PORT);
    }
    OK(MPI_Open_port(MPI_INFO_NULL, port));
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "timeout", "0.05"));
    CLASS(MPI_Comm_connect(port, info, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
    CLASS(MPI_Comm_accept(port, info, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
    /* All members of a communicator learn of the root's error. */
    CLASS(MPI_Comm_connect(rank == 1 ? port : NULL, rank == 1 ? info : MPI_INFO_NULL, 1, MPI_COMM_WORLD, &inter), MPI_ERR_PORT);
    OK(MPI_Info_set(info, "timeout", "soon"));
    CLASS(MPI_Comm_connect(port, info, 0, MPI_COMM_SELF, &inter), MPI_ERR_INFO_VALUE);
    CLASS(MPI_Comm_connect(port, MPI_INFO_NULL, 1, MPI_COMM_SELF, &inter), MPI_ERR_ROOT);
    OK(MPI_Info_free(&info));
    OK(MPI_Close_port(port));
    CLASS(MPI_Close_port(port), MPI_ERR_PORT);
    CLASS(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
}

/* Ranks 0 and 1 meet over a socket, and so do 2 and 3. */
static void joined(int rank) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    socklen_t length = sizeof at.sun_family + 1 + snprintf(at.sun_path + 1, 90, "perusal-test-%d", rank);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), peer = -1;
    MPI_Comm inter;
    if (rank % 2 == 0) {
        length = sizeof at.sun_family;
        SAME(bind(fd, (struct sockaddr *)&at, length), 0);
        SAME(listen(fd, 1), 0);
        length = sizeof at;
        SAME(getsockname(fd, (struct sockaddr *)&at, &length), 0);
        OK(MPI_Send(&length, sizeof length, MPI_BYTE, rank + 1, 0, MPI_COMM_WORLD));
        OK(MPI_Send(&at, sizeof at, MPI_BYTE, rank + 1, 0, MPI_COMM_WORLD));
        peer = accept(fd, NULL, NULL);
    } else {
        OK(MPI_Recv(&length, sizeof length, MPI_BYTE, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Recv(&at, sizeof at, MPI_BYTE, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        SAME(connect(fd, (struct sockaddr *)&at, length), 0);
        peer = dup(fd);
    }
    OK(MPI_Comm_join(peer, &inter));
    /* The socket is the program's again. */
    char byte = 'x';
    SAME(write(peer, &byte, 1), 1);
    SAME(read(peer, &byte, 1), 1);
    meet(inter, rank, rank ^ 1, 1);
    close(peer);
    close(fd);
    CLASS(MPI_Comm_join(peer, &inter), MPI_ERR_ARG);
    CLASS(MPI_Comm_join(-1, &inter), MPI_ERR_ARG);
}

int main(int argc, char **argv) {
    int rank;
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm half;
    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    if (rank == 0) OK(MPI_Open_port(MPI_INFO_NULL, port));
    OK(MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank / 2, 0, &half));
    pairs(half, rank / 2, rank, port);
    MPI_Barrier(MPI_COMM_WORLD);
    many(rank, port);
    names(rank, port);
    narrow(rank, port);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) OK(MPI_Close_port(port));
    errors(rank);
    joined(rank);
    MPI_Comm_free(&half);
    MPI_Finalize();
    return verdict();
}
