/* Post, start, complete, wait and test: rings, all with all, groups that overlap,
 * empty groups (MPI 5.0 section 12.5.2).
 * RANKS: 2 3 5
 */
#include "check.h"

static int rank, size;
static MPI_Group everybody;

static MPI_Group of(int n, const int *ranks) {
    MPI_Group group;
    OK(MPI_Group_incl(everybody, n, ranks, &group));
    return group;
}

enum { ROUNDS = 100 };

/* Each puts to the next, many times; what was put is there after the wait. */
static void ring(MPI_Win win, long *base, int tests) {
    int next = (rank + 1) % size, previous = (rank + size - 1) % size, flag;
    MPI_Group to = of(1, &next), from = of(1, &previous);
    for (long i = 0; i < ROUNDS; i++) {
        long value = i * size + rank;
        OK(MPI_Win_post(from, i % 2 ? MPI_MODE_NOSTORE : 0, win));
        OK(MPI_Win_start(to, 0, win));
        OK(MPI_Put(&value, 1, MPI_LONG, next, 0, 1, MPI_LONG, win));
        OK(MPI_Win_complete(win));
        if (tests)
            do OK(MPI_Win_test(win, &flag));
            while (!flag);
        else
            OK(MPI_Win_wait(win));
        SAME(base[0], i * size + previous);
    }
    OK(MPI_Group_free(&to));
    OK(MPI_Group_free(&from));
}

/* One after the other is the target of all others, which get and accumulate. */
static void star(MPI_Win win, long *base) {
    for (int centre = 0; centre < size; centre++) {
        int others[16], n = 0;
        for (int i = 0; i < size; i++)
            if (i != centre) others[n++] = i;
        if (rank == centre) {
            MPI_Group origins = of(n, others);
            base[0] = 1000 + centre;
            base[1] = 0;
            OK(MPI_Win_post(origins, 0, win));
            OK(MPI_Win_wait(win));
            SAME(base[1], size * (size - 1) / 2 - centre);
            OK(MPI_Group_free(&origins));
        } else {
            long got = -1, own = rank;
            MPI_Group target = of(1, &centre);
            OK(MPI_Win_start(target, 0, win));
            OK(MPI_Get(&got, 1, MPI_LONG, centre, 0, 1, MPI_LONG, win));
            OK(MPI_Accumulate(&own, 1, MPI_LONG, centre, 1, 1, MPI_LONG, MPI_SUM, win));
            OK(MPI_Win_complete(win));
            SAME(got, 1000 + centre);
            OK(MPI_Group_free(&target));
        }
    }
}

/* Everybody is exposed to everybody, itself too. */
static void all_with_all(MPI_Win win, long *base) {
    for (int i = 0; i < ROUNDS; i++) {
        long value = i * 100 + rank;
        OK(MPI_Win_post(everybody, 0, win));
        OK(MPI_Win_start(everybody, 0, win));
        for (int to = 0; to < size; to++) OK(MPI_Put(&value, 1, MPI_LONG, to, rank, 1, MPI_LONG, win));
        OK(MPI_Win_complete(win));
        OK(MPI_Win_wait(win));
        for (int from = 0; from < size; from++) SAME(base[from], i * 100 + from);
    }
}

/* A target sees only those origins that it has posted to; epochs of others go on meanwhile. */
static void pipeline(MPI_Win win, long *base) {
    int next = rank + 1, previous = rank - 1;
    base[0] = rank == 0 ? 1 : 0;
    for (int i = 0; i < ROUNDS; i++) {
        if (rank > 0) {
            MPI_Group from = of(1, &previous);
            OK(MPI_Win_post(from, 0, win));
            OK(MPI_Win_wait(win));
            OK(MPI_Group_free(&from));
            SAME(base[0], i + rank + 1);
        }
        if (rank < size - 1) {
            MPI_Group to = of(1, &next);
            long value = rank == 0 ? i + 2 : base[0] + 1;
            OK(MPI_Win_start(to, 0, win));
            OK(MPI_Put(&value, 1, MPI_LONG, next, 0, 1, MPI_LONG, win));
            OK(MPI_Win_complete(win));
            OK(MPI_Group_free(&to));
        }
    }
}

static void empty(MPI_Win win) {
    int flag = 0;
    OK(MPI_Win_start(MPI_GROUP_EMPTY, 0, win));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, win));
    OK(MPI_Win_wait(win));
    OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, win));
    OK(MPI_Win_test(win, &flag));
    CHECK(flag);
}

/* Whether the memory is exposed, only its rank knows; a test says no until the origin has completed. */
static void tests_wait(MPI_Win win, long *base) {
    int flag, n, token = 0;
    if (rank > 1) return;
    int other = 1 - rank;
    MPI_Group peer = of(1, &other);
    if (rank == 0) {
        base[0] = 0;
        OK(MPI_Win_post(peer, 0, win));
        for (n = 0; n < 10; n++) {
            OK(MPI_Win_test(win, &flag));
            CHECK(!flag);
        }
        MPI_Send(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        do OK(MPI_Win_test(win, &flag));
        while (!flag);
        SAME(base[0], 5);
    } else {
        long value = 5;
        OK(MPI_Win_start(peer, 0, win));
        OK(MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win));
        MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        OK(MPI_Win_complete(win));
    }
    OK(MPI_Group_free(&peer));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int kind = 0; kind < 2; kind++) {
        MPI_Win win;
        long own[16], *base = own;
        if (kind == 0)
            OK(MPI_Win_allocate(sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        else
            OK(MPI_Win_create(own, sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        OK(MPI_Win_get_group(win, &everybody));
        ring(win, base, 0);
        ring(win, base, 1);
        star(win, base);
        all_with_all(win, base);
        pipeline(win, base);
        empty(win);
        MPI_Barrier(MPI_COMM_WORLD);
        tests_wait(win, base);
        OK(MPI_Group_free(&everybody));
        OK(MPI_Win_free(&win));
    }
    MPI_Finalize();
    return verdict();
}
