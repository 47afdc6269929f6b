/* Members of MPI_Allgather and MPI_Allgatherv need not have their blocks alike:
 * some have gaps between them, whatever algorithm the library selects.
 * RANKS: 3 5
 * ENV: PERUSAL_COLL_DIRECT_FROM=1
 */
#include "check.h"

int main(int argc, char **argv) {
    enum { MOST = 8, APART = 40 };
    int rank, size, own[MOST], all[MOST * APART], counts[MOST], places[MOST];
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    for (int i = 0; i <= rank; i++) own[i] = 10 * rank + i;
    MPI_Datatype wide;
    OK(MPI_Type_create_resized(MPI_INT, 0, APART * sizeof(int), &wide));
    OK(MPI_Type_commit(&wide));
    for (int apart = -1; apart < size; apart++) {
        for (int r = 0, at = 0; r < size; at += r + 1, r++) {
            counts[r] = r + 1;
            places[r] = apart == rank ? APART * r : at;
        }
        for (int i = 0; i < MOST * APART; i++) all[i] = -1;
        OK(MPI_Allgatherv(own, rank + 1, MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD));
        for (int r = 0; r < size; r++)
            for (int i = 0; i <= r; i++) SAME(all[places[r] + i], 10 * r + i);
        OK(MPI_Allgather(own, 1, MPI_INT, all, 1, apart == rank ? wide : MPI_INT, MPI_COMM_WORLD));
        for (int r = 0; r < size; r++) SAME(all[apart == rank ? APART * r : r], 10 * r);
    }
    OK(MPI_Type_free(&wide));
    MPI_Finalize();
    return verdict();
}
