/* MPI_Comm_join gives an error, and leaves nothing behind,
 * where the descriptor is no stream, the other end is closed or names what there is not.
 * RANKS: 1
 */
#include "check.h"
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

/* What a process says of itself: eight letters, its job's number, its place, zeros. */
enum { HELLO = 24, JOB = 8, PLACE = 16 };

/* Joins with an end that has said `theirs`, and nothing more. Reads what this process has said. */
static void joined(const unsigned char *theirs, int expected, char *said, size_t most) {
    MPI_Comm made;
    int ends[2];
    size_t got = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) abort();
    if (write(ends[1], theirs, HELLO) != HELLO) abort();
    if (shutdown(ends[1], SHUT_WR) != 0) abort();
    CLASS(MPI_Comm_join(ends[0], &made), expected);
    close(ends[0]);
    for (ssize_t more; got < most && (more = read(ends[1], said + got, most - got)) > 0;) got += (size_t)more;
    CHECK(got >= HELLO);
    close(ends[1]);
}

int main(int argc, char **argv) {
    MPI_Comm made;
    int ends[2], null;
    unsigned char theirs[HELLO] = {0};
    char said[HELLO + MPI_MAX_PORT_NAME] = "";
    OK(MPI_Init(&argc, &argv));
    errors_return();

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) abort();
    close(ends[1]);
    CLASS(MPI_Comm_join(ends[0], &made), MPI_ERR_OTHER);
    close(ends[0]);
    if ((null = open("/dev/null", O_RDWR)) < 0) abort();
    CLASS(MPI_Comm_join(null, &made), MPI_ERR_ARG);
    close(null);
    /* What is no stream: it would never be ready for writing, or keep no order. */
    if (pipe(ends) != 0) abort();
    CLASS(MPI_Comm_join(ends[0], &made), MPI_ERR_ARG);
    close(ends[0]);
    close(ends[1]);
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) != 0) abort();
    CLASS(MPI_Comm_join(ends[0], &made), MPI_ERR_ARG);
    close(ends[0]);
    close(ends[1]);

    /* No process of this library. */
    joined(theirs, MPI_ERR_OTHER, said, HELLO);
    memcpy(theirs, said, PLACE);
    /* One of this job, at places that there are not; and at this process's own. */
    for (int bit = 1; bit < 32; bit++) {
        unsigned place = 1u << bit;
        memcpy(theirs + PLACE, &place, 4);
        joined(theirs, MPI_ERR_OTHER, said, HELLO);
    }
    memset(theirs + PLACE, 0, 4);
    joined(theirs, MPI_ERR_ARG, said, HELLO);

    /* One of another job, for which this process opens a port and which then ends: the port is closed. */
    memset(theirs + JOB, 0xff, 8);
    joined(theirs, MPI_ERR_OTHER, said, sizeof said);
    CHECK(!strncmp(said + HELLO, "perusal:", 8));
    CLASS(MPI_Close_port(said + HELLO), MPI_ERR_PORT);
    MPI_Finalize();
    return verdict();
}
