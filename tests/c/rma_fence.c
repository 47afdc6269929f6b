/* Fences: put, get and accumulate with every layout, through windows of every kind (MPI 5.0 section 12.5.1).
 * RANKS: 1 2 3 5
 */
#include "check.h"

static int rank, size;

enum { ROOM = 256, MIDDLE = 64, ELEMENTS = 8 };
enum kind { CREATE, FIXED, ALLOCATE, SHARED, KINDS };

static int fixed[ROOM];

static int *make(enum kind kind, MPI_Win *win) {
    int *base = NULL;
    switch (kind) {
    case CREATE:
        base = malloc(sizeof fixed);
        OK(MPI_Win_create(base, sizeof fixed, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, win));
        break;
    case FIXED:
        base = fixed;
        OK(MPI_Win_create_c(base, sizeof fixed, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, win));
        break;
    case ALLOCATE:
        OK(MPI_Win_allocate(sizeof fixed, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, win));
        break;
    default:
        OK(MPI_Win_allocate_shared(sizeof fixed, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, win));
    }
    return base;
}

enum { LAYOUTS = 5 };
static MPI_Datatype layouts[LAYOUTS];
static int counts[LAYOUTS];

/* Two times eight integers each. */
static void make_layouts(void) {
    int lengths[] = {1, 3, 4}, places[] = {20, 0, 10};
    MPI_Aint bytes[] = {4, 40, 80};
    MPI_Datatype types[] = {MPI_INT, MPI_INT, MPI_INT}, structure;
    layouts[0] = MPI_INT;
    counts[0] = 2 * ELEMENTS;
    OK(MPI_Type_vector(4, 2, 5, MPI_INT, &layouts[1]));
    OK(MPI_Type_indexed(3, lengths, places, MPI_INT, &layouts[2]));
    OK(MPI_Type_create_struct(3, lengths, bytes, types, &structure));
    OK(MPI_Type_create_resized(structure, 0, 112, &layouts[3]));
    OK(MPI_Type_free(&structure));
    OK(MPI_Type_vector(4, 2, -5, MPI_INT, &layouts[4]));
    for (int i = 1; i < LAYOUTS; i++) {
        OK(MPI_Type_commit(&layouts[i]));
        counts[i] = 2;
    }
}

static void fill(int *to, int from) {
    for (int i = 0; i < ROOM; i++) to[i] = from * 1000 + i;
}

/* What moves from one layout to the other, as a message would. */
static void move(int *from, int a, int *to, int b) {
    OK(MPI_Sendrecv(from + MIDDLE, counts[a], layouts[a], 0, 0, to + MIDDLE, counts[b], layouts[b], 0, 0, MPI_COMM_SELF,
                    MPI_STATUS_IGNORE));
}

static void same(const int *actual, const int *expected, const char *what, int kind, int a, int b) {
    if (memcmp(actual, expected, sizeof fixed)) {
        fprintf(stderr, "%s of window %d from layout %d to %d\n", what, kind, a, b);
        failures++;
    }
}

static void every_layout(enum kind kind, int *base, MPI_Win win) {
    int origin[ROOM], expected[ROOM], other[ROOM], part[ROOM];
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    for (int a = 0; a < LAYOUTS; a++) {
        for (int b = 0; b < LAYOUTS; b++) {
            fill(base, -1);
            fill(origin, rank);
            OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
            OK(MPI_Put(origin + MIDDLE, counts[a], layouts[a], next, MIDDLE, counts[b], layouts[b], win));
            OK(MPI_Win_fence(MPI_MODE_NOSTORE, win));
            fill(expected, -1);
            fill(other, previous);
            move(other, a, expected, b);
            same(base, expected, "put", kind, a, b);
            OK(MPI_Win_fence(0, win));

            fill(base, rank);
            fill(origin, -1);
            OK(MPI_Win_fence(MPI_MODE_NOPUT, win));
            OK(MPI_Get_c(origin + MIDDLE, counts[a], layouts[a], next, MIDDLE, counts[b], layouts[b], win));
            OK(MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOPUT, win));
            fill(expected, -1);
            fill(other, next);
            move(other, b, expected, a);
            same(origin, expected, "get", kind, a, b);

            fill(base, 7);
            fill(origin, rank);
            OK(MPI_Win_fence(0, win));
            for (int to = 0; to < size; to++)
                OK(MPI_Accumulate(origin + MIDDLE, counts[a], layouts[a], to, MIDDLE, counts[b], layouts[b], MPI_SUM, win));
            OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
            fill(expected, 7);
            for (int from = 0; from < size; from++) {
                memset(part, 0, sizeof part);
                fill(other, from);
                move(other, a, part, b);
                for (int i = 0; i < ROOM; i++) expected[i] += part[i];
            }
            same(base, expected, "accumulate", kind, a, b);
            OK(MPI_Win_fence(0, win));
        }
    }
}

/* Members with different displacement units, and one without memory. */
static void units(void) {
    MPI_Win win;
    int unit = 1 << rank % 4, value = rank, *mine = calloc(ROOM, sizeof *mine);
    MPI_Aint bytes = rank == 0 && size > 1 ? 0 : ROOM * sizeof *mine;
    OK(MPI_Win_create(bytes ? mine : NULL, bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_fence(0, win));
    for (int to = size > 1; to < size; to++)
        OK(MPI_Put(&value, 1, MPI_INT, to, (rank + 1) * 8 / (1 << to % 4), 1, MPI_INT, win));
    OK(MPI_Put(&value, 0, MPI_INT, 0, 0, 0, MPI_INT, win));
    OK(MPI_Put(&value, 1, MPI_INT, MPI_PROC_NULL, 1 << 20, 1, MPI_INT, win));
    OK(MPI_Get(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win));
    OK(MPI_Accumulate(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    SAME(value, rank);
    for (int from = 0; from < size && bytes; from++) SAME(mine[(from + 1) * 2], from);
    OK(MPI_Win_free(&win));
    CHECK(win == MPI_WIN_NULL);
    free(mine);
}

/* Two windows over the same memory, and windows of parts of the ranks. */
static void several(void) {
    MPI_Win wins[2], half;
    MPI_Comm part;
    int mine[4] = {0}, n, own, value;
    OK(MPI_Win_create(mine, sizeof mine, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &wins[0]));
    OK(MPI_Win_create(mine, sizeof mine, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &wins[1]));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part));
    OK(MPI_Win_create(mine + 3, sizeof(int), 1, MPI_INFO_NULL, part, &half));
    OK(MPI_Comm_size(part, &n));
    OK(MPI_Comm_rank(part, &own));
    OK(MPI_Comm_free(&part));
    for (int i = 0; i < 2; i++) OK(MPI_Win_fence(0, wins[i]));
    value = rank + 10;
    OK(MPI_Put(&value, 1, MPI_INT, (rank + 1) % size, 1, 1, MPI_INT, wins[0]));
    OK(MPI_Put(&value, 1, MPI_INT, (rank + 1) % size, 2 * sizeof(int), 1, MPI_INT, wins[1]));
    for (int i = 0; i < 2; i++) OK(MPI_Win_fence(0, wins[i]));
    SAME(mine[1], (rank + size - 1) % size + 10);
    SAME(mine[2], mine[1]);
    OK(MPI_Win_fence(0, half));
    OK(MPI_Accumulate_c(&own, 1, MPI_INT, n - 1, 0, 1, MPI_INT, MPI_SUM, half));
    OK(MPI_Win_fence(0, half));
    SAME(mine[3], own == n - 1 ? n * (n - 1) / 2 : 0);
    OK(MPI_Win_free(&wins[1]));
    OK(MPI_Win_free(&half));
    OK(MPI_Win_free(&wins[0]));
}

/* More than any buffer between the two holds. */
static void large(enum kind kind) {
    enum { MANY = 1 << 20 };
    MPI_Win win;
    MPI_Datatype every_other;
    long *base, *origin = malloc(MANY * sizeof *origin);
    if (kind == CREATE) {
        base = malloc(MANY * sizeof *base);
        OK(MPI_Win_create(base, MANY * sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    } else {
        OK(MPI_Win_allocate(MANY * sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    }
    OK(MPI_Type_vector(MANY / 2, 1, 2, MPI_LONG, &every_other));
    OK(MPI_Type_commit(&every_other));
    for (long i = 0; i < MANY; i++) base[i] = -1, origin[i] = rank * (long)MANY + i;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put_c(origin, MANY / 2, MPI_LONG, (rank + 1) % size, 0, 1, every_other, win));
    OK(MPI_Win_fence(0, win));
    long from = (rank + size - 1) % size * (long)MANY, wrong = 0;
    for (long i = 0; i < MANY; i++) wrong += base[i] != (i % 2 ? -1 : from + i / 2);
    SAME(wrong, 0);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get(origin, 1, every_other, (rank + 1) % size, 0, MANY / 2, MPI_LONG, win));
    OK(MPI_Win_fence(0, win));
    wrong = 0;
    for (long i = 0; i < MANY; i += 2) wrong += origin[i] != (i / 2 % 2 ? -1 : rank * (long)MANY + i / 4);
    SAME(wrong, 0);
    OK(MPI_Accumulate(base + MANY / 2, MANY / 4, MPI_LONG, rank, 0, MANY / 4, MPI_LONG, MPI_REPLACE, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Type_free(&every_other));
    OK(MPI_Win_free(&win));
    free(origin);
    if (kind == CREATE) free(base);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    make_layouts();
    for (enum kind kind = CREATE; kind < KINDS; kind++) {
        MPI_Win win;
        int *base = make(kind, &win);
        every_layout(kind, base, win);
        OK(MPI_Win_free(&win));
        if (kind == CREATE) free(base);
    }
    units();
    several();
    large(CREATE);
    large(ALLOCATE);
    for (int i = 1; i < LAYOUTS; i++) OK(MPI_Type_free(&layouts[i]));
    MPI_Finalize();
    return verdict();
}
