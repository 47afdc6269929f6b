/* Processes that have sessions alone spawn others, and join over a socket. A spawned program that has sessions alone
 * makes the spawn fail, as one without MPI does: its parent comes with MPI_Init. Its place is for others.
 * RANKS: 1 2
 * OPTIONS: --universe 64
 */
#include "check.h"
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { TIMES = 20 };

static MPI_Comm of_all(MPI_Session session) {
    MPI_Group group;
    MPI_Comm all;
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, "perusal://test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &all));
    OK(MPI_Group_free(&group));
    return all;
}

static int child(const char *how) {
    MPI_Session session;
    if (!strcmp(how, "sessions")) {
        OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
        MPI_Comm parent, all = of_all(session);
        OK(MPI_Comm_get_parent(&parent));
        CHECK(parent == MPI_COMM_NULL);
        OK(MPI_Barrier(all));
        OK(MPI_Comm_disconnect(&all));
        OK(MPI_Session_finalize(&session));
        return verdict();
    }
    MPI_Comm parent;
    int word = 7;
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_get_parent(&parent));
    OK(MPI_Send(&word, 1, MPI_INT, 0, 0, parent));
    OK(MPI_Comm_disconnect(&parent));
    OK(MPI_Finalize());
    return verdict();
}

static void spawns(const char *self, MPI_Comm all, int rank) {
    MPI_Comm inter;
    char *sessions[] = {"sessions", NULL}, *world[] = {"world", NULL};
    int codes[2], word;
    for (int again = 0; again < TIMES; again++) {
        CLASS(MPI_Comm_spawn("true", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, all, &inter, codes), MPI_ERR_SPAWN);
        CHECK(inter == MPI_COMM_NULL);
        CLASS(MPI_Comm_spawn(self, sessions, 2, MPI_INFO_NULL, 0, all, &inter, codes), MPI_ERR_SPAWN);
        SAME(codes[0], MPI_ERR_SPAWN);
        SAME(codes[1], MPI_ERR_SPAWN);
        OK(MPI_Comm_spawn(self, world, 2, MPI_INFO_NULL, 0, all, &inter, codes));
        if (rank == 0)
            for (int i = 0; i < 2; i++) {
                OK(MPI_Recv(&word, 1, MPI_INT, i, 0, inter, MPI_STATUS_IGNORE));
                SAME(word, 7);
            }
        OK(MPI_Comm_disconnect(&inter));
    }
}

/* With a session alone that has made no communicator MPI_COMM_SELF names nothing, and is not needed. */
static void joins(int rank, int size, int socket) {
    MPI_Comm inter;
    int word = -1;
    if (size < 2) return;
    OK(MPI_Comm_join(socket, &inter));
    OK(MPI_Sendrecv(&rank, 1, MPI_INT, 0, 0, &word, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE));
    SAME(word, !rank);
    OK(MPI_Comm_disconnect(&inter));
}

/* A connection between ranks 0 and 1. */
static int connected(MPI_Comm all, int rank) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    socklen_t length = sizeof at.sun_family;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (rank == 0) {
        SAME(bind(fd, (struct sockaddr *)&at, length), 0);
        SAME(listen(fd, 1), 0);
        length = sizeof at;
        SAME(getsockname(fd, (struct sockaddr *)&at, &length), 0);
    }
    OK(MPI_Bcast(&length, sizeof length, MPI_BYTE, 0, all));
    OK(MPI_Bcast(&at, sizeof at, MPI_BYTE, 0, all));
    if (rank == 0) return accept(fd, NULL, NULL);
    SAME(connect(fd, (struct sockaddr *)&at, length), 0);
    return fd;
}

int main(int argc, char **argv) {
    MPI_Session session;
    int rank, size, socket = -1;
    if (argc > 1) return child(argv[1]);
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    MPI_Comm all = of_all(session);
    OK(MPI_Comm_rank(all, &rank));
    OK(MPI_Comm_size(all, &size));
    if (size > 1) socket = connected(all, rank);
    spawns(argv[0], all, rank);
    OK(MPI_Comm_disconnect(&all));
    OK(MPI_Session_finalize(&session));
    /* Another session, with which no communicator of all ranks is made. */
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    joins(rank, size, socket);
    OK(MPI_Session_finalize(&session));
    return verdict();
}
