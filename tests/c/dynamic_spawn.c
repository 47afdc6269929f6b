/* Spawned processes are a world of their own, connected with those that spawned them: sizes, arguments, messages of all
 * sizes, collectives, a merged communicator, one-sided communication, disconnection, and again.
 * RANKS: 2 5
 */
#include "check.h"
#include <unistd.h>

enum { CHILDREN = 3, LARGE = 1 << 20 };

static void exchange(MPI_Comm inter, int parent) {
    int rank, remote;
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_remote_size(inter, &remote));
    int *data = malloc(LARGE * sizeof *data);
    for (int peer = 0; peer < remote; peer++) {
        for (int size = 1; size <= LARGE; size *= 32) {
            MPI_Request request;
            int *in = malloc(size * sizeof *in);
            OK(MPI_Irecv(in, size, MPI_INT, peer, size % 1000, inter, &request));
            for (int i = 0; i < size; i++) data[i] = parent * 1000000 + rank * 1000 + peer + i;
            OK(MPI_Send(data, size, MPI_INT, peer, size % 1000, inter));
            MPI_Status status;
            OK(MPI_Wait(&request, &status));
            SAME(status.MPI_SOURCE, peer);
            SAME(in[0], !parent * 1000000 + peer * 1000 + rank);
            SAME(in[size - 1], !parent * 1000000 + peer * 1000 + rank + size - 1);
            free(in);
        }
    }
    free(data);
    int root = parent ? (rank == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0, word = parent ? 77 : 0;
    OK(MPI_Bcast(&word, 1, MPI_INT, root, inter));
    if (!parent) SAME(word, 77);
    int one = 1, sum = 0;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter));
    SAME(sum, remote);
}

static void together(MPI_Comm inter, int parent) {
    MPI_Comm merged;
    int rank, size, local, sum;
    OK(MPI_Intercomm_merge(inter, !parent, &merged));
    OK(MPI_Comm_rank(merged, &rank));
    OK(MPI_Comm_size(merged, &size));
    OK(MPI_Comm_size(inter, &local));
    if (parent) CHECK(rank < local); else CHECK(rank >= size - local);
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, merged));
    SAME(sum, size * (size - 1) / 2);
    int *base;
    MPI_Win win;
    OK(MPI_Win_allocate(size * sizeof *base, sizeof *base, MPI_INFO_NULL, merged, &base, &win));
    OK(MPI_Win_fence(0, win));
    for (int to = 0; to < size; to++) OK(MPI_Put(&rank, 1, MPI_INT, to, rank, 1, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    for (int from = 0; from < size; from++) SAME(base[from], from);
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_disconnect(&merged));
    CHECK(merged == MPI_COMM_NULL);
}

static void universe(void) {
    int *value, flag;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag));
    CHECK(flag && *value >= 2);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag));
    CHECK(flag && *value == 0);
}

static int child(int argc, char **argv, MPI_Comm parent) {
    int size;
    SAME(argc, 4);
    CHECK(!strcmp(argv[1], "child") && !strcmp(argv[2], "") && !strcmp(argv[3], "a b"));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    SAME(size, CHILDREN);
    exchange(parent, 0);
    together(parent, 0);
    OK(MPI_Comm_disconnect(&parent));
    OK(MPI_Comm_get_parent(&parent));
    CHECK(parent == MPI_COMM_NULL);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    return verdict();
}

int main(int argc, char **argv) {
    MPI_Comm parent;
    OK(MPI_Init(&argc, &argv));
    errors_return();
    universe();
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        int code = child(argc, argv, parent);
        if (code) MPI_Abort(MPI_COMM_WORLD, code);
        MPI_Finalize();
        return code;
    }
    for (int again = 0; again < 3; again++) {
        char *arguments[] = {"child", "", "a b", NULL};
        int size, rank, remote, codes[CHILDREN] = {-1, -1, -1};
        MPI_Comm inter;
        OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
        OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
        int root = again % size;
        /* Only the root's arguments count. */
        OK(MPI_Comm_spawn(rank == root ? argv[0] : NULL, rank == root ? arguments : (char **)16, CHILDREN,
                          MPI_INFO_NULL, root, MPI_COMM_WORLD, &inter, codes));
        for (int i = 0; i < CHILDREN; i++) SAME(codes[i], MPI_SUCCESS);
        OK(MPI_Comm_remote_size(inter, &remote));
        SAME(remote, CHILDREN);
        exchange(inter, 1);
        together(inter, 1);
        OK(MPI_Comm_disconnect(&inter));
    }
    MPI_Finalize();
    return verdict();
}
