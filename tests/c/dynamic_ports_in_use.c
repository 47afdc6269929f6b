/* A port goes on to serve while communicators that began at it are in use; a group that waits there when it closes gets
 * an error of its class; and names are looked up while they are published and taken back.
 * RANKS: 4
 */
#include "check.h"

static int rank;

/* Rank 0 accepts all others, one after the other, and keeps the first communicators. */
static void several(char *port) {
    MPI_Comm inter[4];
    MPI_Info soon;
    int word, connects = 0;
    for (int other = 1; other < 4; other++) {
        if (rank == 0) {
            OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter[other]));
            for (int i = 1; i <= other; i++) {
                OK(MPI_Send(&other, 1, MPI_INT, 0, i, inter[i]));
                OK(MPI_Recv(&word, 1, MPI_INT, 0, i, inter[i], MPI_STATUS_IGNORE));
                SAME(word, 10 * other);
            }
        } else if (rank <= other) {
            if (rank == other) {
                OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter[0]));
                connects = 1;
            }
            OK(MPI_Recv(&word, 1, MPI_INT, 0, rank, inter[0], MPI_STATUS_IGNORE));
            SAME(word, other);
            word *= 10;
            OK(MPI_Send(&word, 1, MPI_INT, 0, rank, inter[0]));
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    /* Connected to the port already, and not accepted another time. */
    OK(MPI_Info_create(&soon));
    OK(MPI_Info_set(soon, "timeout", "0.1"));
    if (connects) {
        MPI_Comm again;
        CLASS(MPI_Comm_connect(port, soon, 0, MPI_COMM_SELF, &again), MPI_ERR_PORT);
        CHECK(again == MPI_COMM_NULL);
        OK(MPI_Send(&rank, 1, MPI_INT, 0, 7, inter[0]));
        OK(MPI_Comm_disconnect(&inter[0]));
    } else {
        for (int i = 1; i < 4; i++) {
            OK(MPI_Recv(&word, 1, MPI_INT, 0, 7, inter[i], MPI_STATUS_IGNORE));
            SAME(word, i);
            OK(MPI_Comm_disconnect(&inter[i]));
        }
    }
    OK(MPI_Info_free(&soon));
}

/* Ranks 1 to 3 connect, rank 0 accepts one of them and closes the port; the others learn of it, whenever they come. */
static void closed(char *port) {
    MPI_Comm inter = MPI_COMM_NULL;
    int class = MPI_SUCCESS, met, all = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
        OK(MPI_Close_port(port));
    } else {
        int code = MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
        if (code != MPI_SUCCESS) OK(MPI_Error_class(code, &class));
        CHECK(class == MPI_SUCCESS || class == MPI_ERR_PORT);
    }
    met = class == MPI_SUCCESS;
    OK(MPI_Allreduce(&met, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    SAME(all, 2);
    if (met) OK(MPI_Comm_disconnect(&inter));
    CLASS(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
    CLASS(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
}

/* The name is there, or it is not: nobody sees anything between. */
static void looked_up(const char *port) {
    char name[64 + MPI_MAX_PORT_NAME], found[MPI_MAX_PORT_NAME];
    for (int i = 0; i < 200; i++) {
        /* Names are known to all jobs of the user: this one's are its own. */
        snprintf(name, sizeof name, "name %d of %s", i % 3, port);
        if (rank == 0) {
            OK(MPI_Publish_name(name, MPI_INFO_NULL, port));
            CLASS(MPI_Publish_name(name, MPI_INFO_NULL, "another"), MPI_ERR_SERVICE);
            CLASS(MPI_Unpublish_name(name, MPI_INFO_NULL, "another"), MPI_ERR_SERVICE);
            OK(MPI_Unpublish_name(name, MPI_INFO_NULL, port));
            CLASS(MPI_Unpublish_name(name, MPI_INFO_NULL, port), MPI_ERR_SERVICE);
        } else {
            strcpy(found, "as it was");
            int code = MPI_Lookup_name(name, MPI_INFO_NULL, found);
            if (code == MPI_SUCCESS) CHECK(!strcmp(found, port));
            else CLASS(code, MPI_ERR_NAME);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CLASS(MPI_Lookup_name(name, MPI_INFO_NULL, found), MPI_ERR_NAME);
}

int main(int argc, char **argv) {
    char port[MPI_MAX_PORT_NAME] = "";
    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    if (rank == 0) OK(MPI_Open_port(MPI_INFO_NULL, port));
    OK(MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD));
    several(port);
    looked_up(port);
    closed(port);
    MPI_Finalize();
    return verdict();
}
