/* Persistent collectives have memory of their own from their first start on. Ranks start them in different orders; more
 * of them than there is memory for live at once, and communicators made meanwhile work.
 * RANKS: 1 2 3 5
 */
#include "check.h"

enum { KINDS = 11, SIZES = 3, TIMES = 60, MANY = 154 };
static const int sizes[SIZES] = {3, 300, 40000};
static int rank, size;

struct prepared {
    int kind, n, *out, *in;
    MPI_Request request;
};

/* What rank r has at place i at a time. */
static int value(int r, int i, int time) { return (r + 1) * 1000 + i % 100 + time; }

static void prepare(struct prepared *p, int kind, int n, MPI_Comm comm)
{
    p->kind = kind, p->n = n;
    p->out = calloc((size_t)n * (size_t)size, sizeof(int)), p->in = calloc((size_t)n * (size_t)size, sizeof(int));
    switch (kind) {
    case 0: OK(MPI_Allreduce_init(p->out, p->in, n, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &p->request)); break;
    case 1: OK(MPI_Alltoall_init(p->out, n, MPI_INT, p->in, n, MPI_INT, comm, MPI_INFO_NULL, &p->request)); break;
    case 2: OK(MPI_Allgather_init(p->out, n, MPI_INT, p->in, n, MPI_INT, comm, MPI_INFO_NULL, &p->request)); break;
    case 3: OK(MPI_Reduce_scatter_block_init(p->out, p->in, n, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &p->request)); break;
    case 4: OK(MPI_Barrier_init(comm, MPI_INFO_NULL, &p->request)); break;
    case 5: OK(MPI_Bcast_init(p->in, n, MPI_INT, size - 1, comm, MPI_INFO_NULL, &p->request)); break;
    case 6: OK(MPI_Gather_init(p->out, n, MPI_INT, p->in, n, MPI_INT, 0, comm, MPI_INFO_NULL, &p->request)); break;
    case 7: OK(MPI_Scatter_init(p->out, n, MPI_INT, p->in, n, MPI_INT, size - 1, comm, MPI_INFO_NULL, &p->request)); break;
    case 8: OK(MPI_Reduce_init(p->out, p->in, n, MPI_INT, MPI_SUM, 0, comm, MPI_INFO_NULL, &p->request)); break;
    case 9: OK(MPI_Scan_init(p->out, p->in, n, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &p->request)); break;
    default: OK(MPI_Exscan_init(p->out, p->in, n, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &p->request));
    }
}

static void fill(struct prepared *p, int time)
{
    for (int i = 0; i < p->n * size; i++) p->out[i] = value(rank, i, time), p->in[i] = -1;
    if (p->kind == 5 && rank == size - 1) for (int i = 0; i < p->n; i++) p->in[i] = value(rank, i, time);
}

/* The sum of the first `ranks` ranks at a place. */
static int sum(int ranks, int i, int time) { return 1000 * ranks * (ranks + 1) / 2 + ranks * (i % 100 + time); }

static void verify(const struct prepared *p, int time)
{
    int n = p->n, wrong = 0;
    for (int i = 0; i < n; i++) {
        if (p->kind == 0) wrong += p->in[i] != sum(size, i, time);
        if (p->kind == 3) wrong += p->in[i] != sum(size, rank * n + i, time);
        if (p->kind == 5) wrong += p->in[i] != value(size - 1, i, time);
        if (p->kind == 7) wrong += p->in[i] != value(size - 1, rank * n + i, time);
        if (p->kind == 8 && rank == 0) wrong += p->in[i] != sum(size, i, time);
        if (p->kind == 9) wrong += p->in[i] != sum(rank + 1, i, time);
        if (p->kind == 10 && rank > 0) wrong += p->in[i] != sum(rank, i, time);
        for (int r = 0; r < size; r++) {
            if (p->kind == 1) wrong += p->in[r * n + i] != value(r, rank * n + i, time);
            if (p->kind == 2 || (p->kind == 6 && rank == 0)) wrong += p->in[r * n + i] != value(r, i, time);
        }
    }
    if (wrong) fprintf(stderr, "rank %d: kind %d of %d, time %d: %d values are wrong\n", rank, p->kind, n, time, wrong);
    failures += wrong > 0;
}

int main(int argc, char **argv)
{
    static struct prepared all[KINDS * SIZES], many[MANY];
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int p = 0; p < KINDS * SIZES; p++) prepare(all + p, p % KINDS, sizes[p / KINDS], MPI_COMM_WORLD);
    for (int time = 0; time < TIMES; time++) {
        for (int p = 0; p < KINDS * SIZES; p++) fill(all + p, time);
        /* Every rank begins with another one, and every second goes backwards. */
        for (int i = 0; i < KINDS * SIZES; i++) {
            int at = (5 * rank + time + i) % (KINDS * SIZES);
            OK(MPI_Start(&all[rank % 2 ? KINDS * SIZES - 1 - at : at].request));
        }
        for (int p = 0; p < KINDS * SIZES; p++) {
            OK(MPI_Wait(&all[p].request, MPI_STATUS_IGNORE));
            verify(all + p, time);
        }
    }
    for (int p = 0; p < MANY; p++) prepare(many + p, p % KINDS, 5, MPI_COMM_WORLD);
    for (int time = 0; time < TIMES; time++) {
        for (int p = 0; p < MANY; p++) {
            fill(many + p, time);
            OK(MPI_Start(&many[p].request));
        }
        if (time == TIMES - 2) {
            MPI_Comm dup;
            int one = 1, all_ones;
            OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
            OK(MPI_Allreduce(&one, &all_ones, 1, MPI_INT, MPI_SUM, dup));
            SAME(all_ones, size);
            OK(MPI_Comm_free(&dup));
        }
        for (int p = MANY - 1; p >= 0; p--) {
            OK(MPI_Wait(&many[p].request, MPI_STATUS_IGNORE));
            verify(many + p, time);
        }
    }
    /* One is freed and another made: it begins by messages again. */
    OK(MPI_Request_free(&all[0].request));
    prepare(all, 0, 3, MPI_COMM_WORLD);
    fill(all, 7);
    OK(MPI_Start(&all[0].request));
    OK(MPI_Wait(&all[0].request, MPI_STATUS_IGNORE));
    verify(all, 7);
    for (int p = 0; p < KINDS * SIZES; p++) OK(MPI_Request_free(&all[p].request));
    for (int p = 0; p < MANY; p++) OK(MPI_Request_free(&many[p].request));
    OK(MPI_Finalize());
    return verdict();
}
