/* A window of a single rank, without a launcher: every flavour, and accumulates of pairs in derived types.
RANKS: 1
*/
#include "check.h"
#include <mpi.h>
#include <stddef.h>
#include <string.h>

struct pair {
    short value;
    int index;
};

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int own[4] = {1, 2, 3, 4}, *base = own;
    for (int flavour = 0; flavour < 4; flavour++) {
        MPI_Win win;
        MPI_Aint place = 0;
        if (flavour == 0) {
            MPI_Win_create(own, sizeof own, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        } else if (flavour == 1) {
            MPI_Win_allocate(sizeof own, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
        } else if (flavour == 2) {
            MPI_Win_allocate_shared(sizeof own, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
        } else {
            MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
            MPI_Win_attach(win, own, sizeof own);
            MPI_Get_address(own, &place);
            base = own;
        }
        MPI_Win_fence(0, win);
        int five = 5, seen = 0;
        MPI_Aint third = flavour == 3 ? place + 2 * (MPI_Aint)sizeof(int) : 2;
        MPI_Put(&five, 1, MPI_INT, 0, third, 1, MPI_INT, win);
        MPI_Accumulate(&five, 1, MPI_INT, 0, third, 1, MPI_INT, MPI_SUM, win);
        MPI_Win_fence(0, win);
        MPI_Get(&seen, 1, MPI_INT, 0, third, 1, MPI_INT, win);
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
        CHECK(seen == 10 && base[2] == 10);
        MPI_Win_free(&win);
    }

    /* Every second of six pairs, each of which has a gap, and two numbers of one type as a pair. */
    struct pair pairs[6], larger[3];
    memset(pairs, 0, sizeof pairs);
    for (int i = 0; i < 6; i++) pairs[i] = (struct pair){(short)(10 * i), i};
    for (int i = 0; i < 3; i++) larger[i] = (struct pair){15, 100 + i};
    MPI_Datatype second;
    MPI_Type_vector(3, 1, 2, MPI_SHORT_INT, &second);
    MPI_Type_commit(&second);
    MPI_Win win;
    MPI_Win_create(pairs, sizeof pairs, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(0, win);
    MPI_Accumulate(larger, 3, MPI_SHORT_INT, 0, 0, 1, second, MPI_MAXLOC, win);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    const struct pair expected[6] = {{15, 100}, {10, 1}, {20, 2}, {30, 3}, {40, 4}, {50, 5}};
    for (int i = 0; i < 6; i++) {
        CHECK(pairs[i].value == expected[i].value && pairs[i].index == expected[i].index);
    }
    int both[4] = {1, 7, 9, 2}, more[4] = {3, 5, 9, 1};
    MPI_Win_create(both, sizeof both, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(0, win);
    MPI_Accumulate(more, 2, MPI_2INT, 0, 0, 2, MPI_2INT, MPI_MAXLOC, win);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    CHECK(both[0] == 3 && both[1] == 5 && both[2] == 9 && both[3] == 1);
    MPI_Type_free(&second);
    MPI_Finalize();
    return verdict();
}
