/* A launcher that answers nothing, as that of a job which has been stopped, delays MPI_Lookup_name a little and
 * MPI_Comm_connect as long as that may wait; so does one that cannot take another connection now.
 * RANKS: 1
 */
#include "check.h"
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char LIMIT[] = "0.3";

/* Connecting at the port of that job ends when its time is over, and not before. */
static void connects(const char *job) {
    MPI_Comm made;
    MPI_Info info;
    char port[MPI_MAX_PORT_NAME];
    double start = MPI_Wtime();
    snprintf(port, sizeof port, "perusal:%s:1", job);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "timeout", LIMIT));
    CLASS(MPI_Comm_connect(port, info, 0, MPI_COMM_SELF, &made), MPI_ERR_PORT);
    CHECK(made == MPI_COMM_NULL);
    CHECK(MPI_Wtime() - start >= atof(LIMIT));
    OK(MPI_Info_free(&info));
}

int main(int argc, char **argv) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char job[17], name[64], port[MPI_MAX_PORT_NAME];
    int listens = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), asks;
    OK(MPI_Init(&argc, &argv));
    errors_return();
    /* The socket of a launcher of this user, in the abstract namespace. */
    snprintf(job, sizeof job, "%016x", (unsigned)getpid());
    int length = snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "perusal-%u-%s", (unsigned)geteuid(), job) + 1;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)length);
    if (bind(listens, (struct sockaddr *)&at, size) != 0 || listen(listens, 8) != 0) abort();

    connects(job);
    snprintf(name, sizeof name, "nobody's of %s", job);
    CLASS(MPI_Lookup_name(name, MPI_INFO_NULL, port), MPI_ERR_NAME);

    /* Until no more connection is taken. */
    do asks = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    while (asks >= 0 && connect(asks, (struct sockaddr *)&at, size) == 0);
    connects(job);
    MPI_Finalize();
    return verdict();
}
