/* Places of processes that have ended are used again: more spawns than there are places, with messages of all sizes.
 * RANKS: 2 10
 */
#include "check.h"

enum { ROUNDS = 120, LARGE = 100000 };

int main(int argc, char **argv) {
    MPI_Comm parent, inter;
    int rank, word;
    static int in[LARGE], out[LARGE];
    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        int most, peers;
        OK(MPI_Comm_remote_size(parent, &peers));
        for (int peer = 0; peer < peers; peer++) {
            MPI_Status status;
            OK(MPI_Recv(in, LARGE, MPI_INT, peer, 5, parent, &status));
            OK(MPI_Get_count(&status, MPI_INT, &most));
            for (int i = 0; i < most; i++) in[i]++;
            OK(MPI_Send(in, most, MPI_INT, peer, 6, parent));
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Comm_disconnect(&parent));
        MPI_Finalize();
        return verdict();
    }
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    for (int round = 0; round < ROUNDS; round++) {
        int children = 1 + round % 3, most = round % 4 == 3 ? LARGE : 1 + round * 7;
        OK(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, children, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
        for (int child = 0; child < children; child++) {
            for (int i = 0; i < most; i++) out[i] = round + child + i + rank;
            OK(MPI_Send(out, most, MPI_INT, child, 5, inter));
            OK(MPI_Recv(in, most, MPI_INT, child, 6, inter, MPI_STATUS_IGNORE));
            for (int i = 0; i < most; i++) if (in[i] != out[i] + 1) { SAME(in[i], out[i] + 1); break; }
        }
        OK(MPI_Comm_disconnect(&inter));
        if (failures) MPI_Abort(MPI_COMM_WORLD, 1);
    }
    word = rank;
    OK(MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD));
    SAME(word, 0);
    MPI_Finalize();
    return verdict();
}
