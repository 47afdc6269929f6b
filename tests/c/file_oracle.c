/* Random views and accesses of all ranks against an array of bytes that every rank keeps: independent, collective,
 * split and nonblocking accesses, at offsets and at the individual file pointer, to and from memory with gaps, atomic
 * and not. Each rank owns some units of a tile, so that ranks write different bytes. Then accesses at the shared file
 * pointer, in any order and in that of the ranks, through a view that all ranks have.
 * RANKS: 1 2 3 4
 */
#include "file_forms.h"

enum { UNITS = 24, TILES = 6, ROUNDS = 120, LIMIT = 3 << 15, MOST = 200 };

static unsigned long long state = 88172645463325252ull;

/* The same numbers on all ranks. */
static unsigned below(unsigned n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 33) % n;
}

static unsigned char oracle[LIMIT];

/* What a rank does in a round. */
struct plan {
    int owned, units[UNITS]; /* units of the tile that are its own, ascending */
    long first, count;       /* etypes: where in its view, and how many */
};

/* The offset in the file of byte `at` of a rank's view. */
static long offset_of(const struct plan *plan, long disp, int unit, long at)
{
    long tile = (long)plan->owned * unit;
    return disp + at / tile * UNITS * unit + (long)plan->units[at % tile / unit] * unit + at % unit;
}

static unsigned char value(int round, int who, long at) { return (unsigned char)(round * 37 + who * 101 + at * 7 + 1); }

static void one_round(MPI_File file, MPI_File plain, int round)
{
    static unsigned char memory[3 * MOST * 16 + 64], seen[LIMIT];
    struct plan plans[16];
    const int unit = 1 + (int)below(4) * (int)below(5), how = (int)below(FORMS), gaps = (int)below(3), write = below(4) > 0;
    const long disp = below(50);
    for (int r = 0; r < size; r++) plans[r].owned = 0;
    for (int u = 0; u < UNITS; u++) {
        /* Some units are nobody's. */
        unsigned owner = below((unsigned)size + 1);
        if (owner < (unsigned)size) plans[owner].units[plans[owner].owned++] = u;
    }
    for (int r = 0; r < size; r++) {
        if (plans[r].owned == 0) return;
        plans[r].first = below((unsigned)plans[r].owned * 3);
        plans[r].count = below(MOST);
    }
    MPI_Datatype etype, filetype, unresized, elements;
    OK(MPI_Type_contiguous(unit, MPI_BYTE, &etype));
    OK(MPI_Type_commit(&etype));
    OK(MPI_Type_create_indexed_block(plans[rank].owned, 1, plans[rank].units, etype, &unresized));
    OK(MPI_Type_create_resized(unresized, 0, (MPI_Aint)UNITS * unit, &filetype));
    OK(MPI_Type_commit(&filetype));
    OK(MPI_Type_vector(1, unit, 1, MPI_BYTE, &unresized));
    OK(MPI_Type_create_resized(unresized, 0, unit + gaps, &elements));
    OK(MPI_Type_commit(&elements));
    OK(MPI_File_set_view(file, disp, etype, filetype, "native", MPI_INFO_NULL));
    OK(MPI_File_set_atomicity(file, round % 3 == 0));

    const struct plan *own = &plans[rank];
    MPI_Offset at = own->first, disp_of;
    OK(MPI_File_get_byte_offset(file, at, &disp_of));
    SAME(disp_of, offset_of(own, disp, unit, at * unit));
    MPI_Status status;
    int count = -1;
    memset(memory, 0, sizeof memory);
    if (write) {
        for (long i = 0; i < own->count; i++)
            for (int b = 0; b < unit; b++) memory[i * (unit + gaps) + b] = value(round, rank, i * unit + b);
    }
    /* Reads find the file as long as it ever becomes. */
    access_file(file, how, write, at, memory, (int)own->count, elements, &status);
    OK(MPI_Get_count(&status, elements, &count));
    SAME(count, own->count);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (write) {
        for (int r = 0; r < size; r++)
            for (long b = 0; b < plans[r].count * unit; b++)
                oracle[offset_of(&plans[r], disp, unit, plans[r].first * unit + b)] = value(round, r, b);
    } else {
        int wrong = 0;
        for (long i = 0; i < own->count; i++)
            for (int b = 0; b < unit; b++)
                wrong += memory[i * (unit + gaps) + b] != oracle[offset_of(own, disp, unit, (at + i) * unit + b)];
        SAME(wrong, 0);
    }
    if (how % 2) {
        MPI_Offset position;
        OK(MPI_File_get_position(file, &position));
        SAME(position, own->first + own->count);
    }
    OK(MPI_File_read_at(plain, 0, seen, LIMIT, MPI_BYTE, &status));
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    SAME(count, LIMIT);
    if (memcmp(seen, oracle, LIMIT) != 0) {
        long first = 0;
        while (seen[first] == oracle[first]) first++;
        fprintf(stderr, "round %d, rank %d, form %d: byte %ld is %d, expected %d\n", round, rank, how, first, seen[first], oracle[first]);
        failures++;
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Type_free(&etype));
    OK(MPI_Type_free(&filetype));
    OK(MPI_Type_free(&elements));
}

enum { CALLS = 3, FEW = 40, TOGETHER = 4 * CALLS * FEW * 16 };

/* What ranks have moved in one round of accesses at the shared file pointer:
 * of each call its etypes, its bytes and its status. */
struct moves {
    int counts[4][CALLS];
    unsigned char bytes[4][CALLS][FEW * 16];
};

static void shared_access(MPI_File file, int how, int write, void *buf, int count, MPI_Datatype type, MPI_Status *status)
{
    MPI_Request request;
    switch (how) {
    case 0: OK(write ? MPI_File_write_shared(file, buf, count, type, status) : MPI_File_read_shared(file, buf, count, type, status)); break;
    case 1:
        OK(write ? MPI_File_iwrite_shared(file, buf, count, type, &request) : MPI_File_iread_shared(file, buf, count, type, &request));
        OK(MPI_Wait(&request, status));
        break;
    case 2: OK(write ? MPI_File_write_ordered(file, buf, count, type, status) : MPI_File_read_ordered(file, buf, count, type, status)); break;
    default:
        OK(write ? MPI_File_write_ordered_begin(file, buf, count, type) : MPI_File_read_ordered_begin(file, buf, count, type));
        OK(write ? MPI_File_write_ordered_end(file, buf, status) : MPI_File_read_ordered_end(file, buf, status));
    }
}

/* Whether the bytes `stream`, from `at` on, are what all calls have moved, one call behind the other,
 * each rank's in the order of its calls. */
static int in_some_order(const struct moves *moves, const unsigned char *stream, long at, int unit, int next[4])
{
    int left = 0;
    for (int r = 0; r < size; r++) {
        if (next[r] == CALLS) continue;
        left = 1;
        long len = (long)moves->counts[r][next[r]] * unit;
        if (memcmp(stream + at, moves->bytes[r][next[r]], (size_t)len) != 0) continue;
        next[r]++;
        if (in_some_order(moves, stream, at + len, unit, next)) return 1;
        next[r]--;
    }
    return !left;
}

static void one_shared_round(MPI_File file, MPI_File plain, int round)
{
    static struct moves moves, all[4];
    static unsigned char memory[FEW * 64 + 64], stream[TOGETHER], seen[LIMIT];
    struct plan plan = {0};
    const int unit = 1 + (int)below(4) * (int)below(5), how = (int)below(4), gaps = (int)below(3), write = below(3) > 0;
    const long disp = below(50);
    /* At least six units of a tile, so that all of it fits into the file. */
    for (int u = 0; u < UNITS; u++)
        if (u % 4 == 0 || below(2)) plan.units[plan.owned++] = u;
    plan.first = below((unsigned)plan.owned * 3);
    memset(&moves, 0, sizeof moves);
    long total = 0;
    for (int c = 0; c < CALLS; c++)
        for (int r = 0; r < size; r++) total += moves.counts[r][c] = (int)below(FEW);

    MPI_Datatype etype, filetype, unresized, elements;
    OK(MPI_Type_contiguous(unit, MPI_BYTE, &etype));
    OK(MPI_Type_commit(&etype));
    OK(MPI_Type_create_indexed_block(plan.owned, 1, plan.units, etype, &unresized));
    OK(MPI_Type_create_resized(unresized, 0, (MPI_Aint)UNITS * unit, &filetype));
    OK(MPI_Type_commit(&filetype));
    OK(MPI_Type_create_resized(etype, 0, unit + gaps, &elements));
    OK(MPI_Type_commit(&elements));
    OK(MPI_File_set_view(file, disp, etype, filetype, "native", MPI_INFO_NULL));
    OK(MPI_File_set_atomicity(file, round % 3 == 0));
    OK(MPI_File_seek_shared(file, plan.first, MPI_SEEK_SET));
    for (int c = 0; c < CALLS; c++) {
        const int count = moves.counts[rank][c];
        unsigned char *mine = moves.bytes[rank][c];
        MPI_Status status;
        int counted = -1;
        memset(memory, 0, sizeof memory);
        for (int i = 0; write && i < count * unit; i++) {
            mine[i] = value(round, rank * CALLS + c, i);
            memory[i / unit * (unit + gaps) + i % unit] = mine[i];
        }
        shared_access(file, how, write, memory, count, elements, &status);
        OK(MPI_Get_count(&status, elements, &counted));
        SAME(counted, count);
        for (int i = 0; !write && i < count * unit; i++) mine[i] = memory[i / unit * (unit + gaps) + i % unit];
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_Offset position;
    OK(MPI_File_get_position_shared(file, &position));
    SAME(position, plan.first + total);
    OK(MPI_Allgather(&moves, sizeof moves, MPI_BYTE, all, sizeof moves, MPI_BYTE, MPI_COMM_WORLD));
    for (int r = 0; r < size; r++) memcpy(moves.bytes[r], all[r].bytes[r], sizeof moves.bytes[r]);
    OK(MPI_File_read_at(plain, 0, seen, LIMIT, MPI_BYTE, MPI_STATUS_IGNORE));
    for (long b = 0; b < total * unit; b++) {
        long at = offset_of(&plan, disp, unit, plan.first * unit + b);
        stream[b] = write ? seen[at] : oracle[at];
        if (write) oracle[at] = seen[at];
    }
    if (how < 2) {
        int next[4] = {0};
        CHECK(in_some_order(&moves, stream, 0, unit, next));
    } else {
        long at = 0;
        for (int c = 0; c < CALLS; c++)
            for (int r = 0; r < size; at += (long)moves.counts[r++][c] * unit)
                SAME(memcmp(stream + at, moves.bytes[r][c], (size_t)moves.counts[r][c] * (size_t)unit), 0);
    }
    /* Nothing else was written. */
    SAME(memcmp(seen, oracle, LIMIT), 0);
    if (failures) fprintf(stderr, "in shared round %d, rank %d, form %d, %s\n", round, rank, how, write ? "write" : "read");
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Type_free(&etype));
    OK(MPI_Type_free(&unresized));
    OK(MPI_Type_free(&filetype));
    OK(MPI_Type_free(&elements));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    name_file("file_oracle");
    MPI_File file, plain;
    MPI_Info hints;
    OK(MPI_Info_create(&hints));
    /* Several windows for one collective access. */
    OK(MPI_Info_set(hints, "cb_buffer_size", size == 2 ? "65536" : "4096"));
    /* Without mappings, and without the shared buffer. */
    if (size == 3) OK(MPI_Info_set(hints, "romio_ds_write", "disable"));
    if (size == 3) OK(MPI_Info_set(hints, "romio_ds_read", "disable"));
    if (size == 4) OK(MPI_Info_set(hints, "collective_buffering", "false"));
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, hints, &file));
    OK(MPI_Info_free(&hints));
    OK(MPI_File_set_size(file, LIMIT));
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &plain));
    for (int round = 0; round < ROUNDS && failures == 0; round++) one_round(file, plain, round);
    for (int round = 0; round < ROUNDS && failures == 0; round++) one_shared_round(file, plain, round);
    OK(MPI_File_close(&plain));
    OK(MPI_File_close(&file));
    CHECK(file == MPI_FILE_NULL);
    MPI_Finalize();
    return verdict();
}
