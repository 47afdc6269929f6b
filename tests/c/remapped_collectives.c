/* Collectives of buffers that the library remaps give what they give of others, also where a buffer begins and ends
 * within a page, and change nothing beside it.
 * RANKS: 2 3 4
 * ENV: PERUSAL_COPY_REMAP_AFTER=2
 */
#include "remapped.h"

/* After the first, whose buffers are not remapped yet, members look again whether they are after 15 others. */
enum { ROUNDS = 20 };
enum { MOST = 4, BESIDE = 3000, CANARY = 0x5a5a5a5a };

static int rank, size;

static int value(int at, int from, int to, int round) { return at * 31 + from * 1009 + to * 77 + round; }

/* Integers with a few in front and behind that must stay. */
static int *buffer_of(int count)
{
    int *all = malloc((count + 2L * BESIDE) * sizeof *all);
    for (int at = 0; at < BESIDE; at++) all[at] = all[BESIDE + count + at] = CANARY;
    return all + BESIDE;
}

static void give_back(int *buffer, int count)
{
    int beside = 0;
    for (int at = 0; at < BESIDE; at++)
        beside += buffer[at - BESIDE] == CANARY && buffer[count + at] == CANARY;
    SAME(beside, BESIDE);
    free(buffer - BESIDE);
}

/* What member `to` gets in `count` integers from member `from`. */
static void holds(const int *block, int count, int from, int to, int round)
{
    int at = 0;
    while (at < count && block[at] == value(at, from, to, round)) at++;
    SAME(at, count);
}

static void fill(int *block, int count, int from, int to, int round)
{
    for (int at = 0; at < count; at++) block[at] = value(at, from, to, round);
}

/* Sums of the members from 0 to `last`, to each of which a member has given `value` for member 0. */
static void holds_sums(const int *results, int first, int count, int last, int round)
{
    int at = 0;
    for (; at < count; at++) {
        int sum = 0;
        for (int from = 0; from <= last; from++) sum += value(first + at, from, 0, round);
        if (results[at] != sum) break;
    }
    SAME(at, count);
}

static void clear(int *buffer, int count) { memset(buffer, 0xee, count * sizeof *buffer); }

static void blocks(int count)
{
    int *many = buffer_of(size * count), *also = buffer_of(size * count), *one = buffer_of(count);
    for (int round = 0; round < ROUNDS; round++) {
        int root = round % size;
        fill(one, count, rank, 0, round);
        clear(many, size * count);
        OK(MPI_Gather(one, count, MPI_INT, many, count, MPI_INT, root, MPI_COMM_WORLD));
        for (int from = 0; rank == root && from < size; from++) holds(many + from * count, count, from, 0, round);

        for (int to = 0; to < size; to++) fill(many + to * count, count, root, to, round);
        clear(one, count);
        OK(MPI_Scatter(many, count, MPI_INT, one, count, MPI_INT, root, MPI_COMM_WORLD));
        holds(one, count, root, rank, round);

        fill(one, count, rank, 0, round);
        clear(many, size * count);
        OK(MPI_Allgather(one, count, MPI_INT, many, count, MPI_INT, MPI_COMM_WORLD));
        for (int from = 0; from < size; from++) holds(many + from * count, count, from, 0, round);
        clear(many, size * count);
        fill(many + rank * count, count, rank, 5, round);
        OK(MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, many, count, MPI_INT, MPI_COMM_WORLD));
        for (int from = 0; from < size; from++) holds(many + from * count, count, from, 5, round);

        for (int to = 0; to < size; to++) fill(many + to * count, count, rank, to, round);
        clear(also, size * count);
        OK(MPI_Alltoall(many, count, MPI_INT, also, count, MPI_INT, MPI_COMM_WORLD));
        for (int from = 0; from < size; from++) holds(also + from * count, count, from, rank, round);
        /* While this is under way, messages of a longer buffer that its blocks are a part of. */
        MPI_Request request, send;
        clear(also, size * count);
        OK(MPI_Ialltoall(many, count, MPI_INT, also, count, MPI_INT, MPI_COMM_WORLD, &request));
        for (int i = 0; i < 3; i++) {
            int next = (rank + 1) % size, before = (rank + size - 1) % size;
            OK(MPI_Isend(many, size * count, MPI_INT, next, 0, MPI_COMM_WORLD, &send));
            int *in = buffer_of(size * count);
            OK(MPI_Recv(in, size * count, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            for (int to = 0; to < size; to++) holds(in + to * count, count, before, to, round);
            give_back(in, size * count);
            OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
        }
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        for (int from = 0; from < size; from++) holds(also + from * count, count, from, rank, round);

        if (rank == root) fill(one, count, root, 9, round); else clear(one, count);
        OK(MPI_Bcast(one, count, MPI_INT, root, MPI_COMM_WORLD));
        holds(one, count, root, 9, round);
    }
    /* What has just been stored takes the ring, if it is short. */
    if (can_remap() && count > 100000) CHECK(is_remapped(one + count / 2) && is_remapped(many + size * count / 2));
    give_back(many, size * count);
    give_back(also, size * count);
    give_back(one, count);
}

static void reductions(int count)
{
    int *own = buffer_of(count), *results = buffer_of(count), part = count / size;
    for (int round = 0; round < ROUNDS; round++) {
        int root = round % size;
        fill(own, count, rank, 0, round);
        clear(results, count);
        OK(MPI_Reduce(own, results, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD));
        if (rank == root) holds_sums(results, 0, count, size - 1, round);
        clear(results, count);
        OK(MPI_Allreduce(own, results, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        holds_sums(results, 0, count, size - 1, round);
        clear(results, count);
        OK(MPI_Reduce_scatter_block(own, results, part, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        holds_sums(results, rank * part, part, size - 1, round);
        clear(results, count);
        OK(MPI_Scan(own, results, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        holds_sums(results, 0, count, rank, round);
        fill(results, count, 8, 8, round);
        OK(MPI_Exscan(own, results, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        if (rank > 0) holds_sums(results, 0, count, rank - 1, round);
        else holds(results, count, 8, 8, round);
        fill(results, count, rank, 0, round);
        OK(MPI_Allreduce(MPI_IN_PLACE, results, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        holds_sums(results, 0, count, size - 1, round);
        fill(results, count, rank, 0, round);
        OK(MPI_Scan(MPI_IN_PLACE, results, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        holds_sums(results, 0, count, rank, round);
    }
    give_back(own, count);
    give_back(results, count);
}

static void uneven(int count)
{
    int counts[MOST], places[MOST], total = 0;
    for (int r = 0; r < size; r++) {
        counts[r] = count + r * 1111;
        places[r] = total;
        total += counts[r];
    }
    int *all = buffer_of(total), *own = buffer_of(counts[rank]);
    for (int round = 0; round < ROUNDS; round++) {
        fill(own, counts[rank], rank, 0, round);
        clear(all, total);
        OK(MPI_Allgatherv(own, counts[rank], MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD));
        for (int from = 0; from < size; from++) holds(all + places[from], counts[from], from, 0, round);
        clear(own, counts[rank]);
        for (int to = 0; to < size; to++) fill(all + places[to], counts[to], 1, to, round);
        OK(MPI_Scatterv(all, counts, places, MPI_INT, own, counts[rank], MPI_INT, 1, MPI_COMM_WORLD));
        holds(own, counts[rank], 1, rank, round);
        clear(all, total);
        OK(MPI_Gatherv(own, counts[rank], MPI_INT, all, counts, places, MPI_INT, 0, MPI_COMM_WORLD));
        for (int from = 0; rank == 0 && from < size; from++) holds(all + places[from], counts[from], 1, from, round);
    }
    give_back(all, total);
    give_back(own, counts[rank]);
}

int main(void)
{
    static const int counts[] = {9000, 40001, 150000};
    MPI_Init(NULL, NULL);
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 3; i++) {
        blocks(counts[i]);
        reductions(counts[i]);
        uneven(counts[i]);
    }
    MPI_Finalize();
    return verdict();
}
