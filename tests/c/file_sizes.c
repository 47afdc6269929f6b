/* The length of a file against an array of bytes: random writes that make it longer, reads that its end cuts short, in
 * every form, with and without a view; sizes that are set and preallocated; files that are opened again in other modes
 * and with hints that users of other MPIs set.
 * RANKS: 1 2 3 4
 */
#include "file_forms.h"

enum { LIMIT = 1 << 16, ROUNDS = 250 };

static unsigned long long state = 1234567;
static unsigned char oracle[LIMIT];
static MPI_Offset length;
static MPI_File file;

/* The same numbers on all ranks. */
static int below(int n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (unsigned)n);
}

static MPI_Info draw_hints(void)
{
    static const char *const keys[] = {"romio_cb_write", "romio_cb_read", "romio_ds_write", "romio_ds_read", "cb_buffer_size", "cb_nodes",
        "collective_buffering", "striping_factor", "romio_no_indep_rw", "access_style"};
    static const char *const values[][3] = {{"enable", "disable", "automatic"}, {"enable", "disable", "automatic"},
        {"enable", "disable", "automatic"}, {"enable", "disable", "automatic"}, {"4096", "20000", "none"}, {"1", "2", "100"},
        {"true", "false", "maybe"}, {"4", "-1", ""}, {"true", "false", "0"}, {"write_once", "read_once,random", "reverse_sequential"}};
    MPI_Info info;
    OK(MPI_Info_create(&info));
    for (int i = 0; i < 10; i++)
        if (below(3) == 0) {
            const char *value = values[i][below(3)];
            OK(MPI_Info_set(info, keys[i], *value ? value : " "));
        }
    return info;
}

/* In a mode in which both is allowed, and whose pointers are where they must be. */
static void open_again(int first)
{
    int mode = MPI_MODE_RDWR, append = below(3) == 0;
    MPI_Offset at;
    MPI_Info info = draw_hints();
    if (first) mode |= MPI_MODE_CREATE | MPI_MODE_EXCL;
    else {
        OK(MPI_File_close(&file));
        CHECK(access(name, F_OK) == 0);
        if (below(2)) mode |= MPI_MODE_CREATE;
    }
    if (append) mode |= MPI_MODE_APPEND;
    if (below(2)) mode |= MPI_MODE_UNIQUE_OPEN;
    OK(MPI_File_open(MPI_COMM_WORLD, name, mode, info, &file));
    OK(MPI_Info_free(&info));
    OK(MPI_File_get_position(file, &at));
    SAME(at, append ? length : 0);
    OK(MPI_File_get_position_shared(file, &at));
    SAME(at, append ? length : 0);
    /* What lies behind one rank's end is written by all, in order. */
    if (append && length + size * 100 < LIMIT) {
        unsigned char bytes[100];
        MPI_Status status;
        int found;
        for (int r = size - 1; r >= 0; r--) memset(oracle + length + r * 100, r + 1, 100), memset(bytes, rank + 1, 100);
        OK(MPI_File_write_ordered(file, bytes, 100, MPI_BYTE, &status));
        OK(MPI_Get_count(&status, MPI_BYTE, &found));
        SAME(found, 100);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        length += size * 100;
    }
}

/* Each rank through a view of blocks of `block` bytes in turn, or of all bytes; only its own blocks are written. */
static void access_some(int round)
{
    static unsigned char memory[LIMIT];
    const int how = below(FORMS), write = below(2), block = 1 + below(below(2) ? 20 : 900), all = !write && below(3) == 0;
    const int disp = below(200), count_of_all = below(LIMIT / 2 / size - 1000), first = below(500);
    /* Ranks have different lengths. */
    int counts[16];
    for (int r = 0; r < size; r++) counts[r] = below(4) ? count_of_all : below(1000);
    MPI_Datatype filetype;
    if (all) OK(MPI_Type_dup(MPI_BYTE, &filetype));
    else {
        MPI_Datatype blocks;
        OK(MPI_Type_contiguous(block, MPI_BYTE, &blocks));
        OK(MPI_Type_create_resized(blocks, 0, (MPI_Aint)block * size, &filetype));
        OK(MPI_Type_free(&blocks));
    }
    OK(MPI_Type_commit(&filetype));
    MPI_Info info = draw_hints();
    OK(MPI_File_set_view(file, disp + (all ? 0 : rank * block), MPI_BYTE, filetype, "native", info));
    OK(MPI_Info_free(&info));
    OK(MPI_File_set_atomicity(file, below(4) == 0));
    MPI_Offset longest = length, at;
    MPI_Status status;
    int found, wrong = 0, there = 0;
    for (int r = 0; r < size; r++) {
        if (r == rank && !write) memset(memory, 0xEE, sizeof memory);
        for (int i = 0; i < counts[r]; i++) {
            const int e = first + i;
            at = all ? disp + e : disp + (MPI_Offset)e / block * block * size + r * block + e % block;
            const unsigned char value = (unsigned char)(round * 31 + r * 7 + i);
            if (r == rank && write) memory[i] = value;
            if (write && at < LIMIT) oracle[at] = value;
            if (write && at >= longest) longest = at + 1;
            if (r == rank && at < length) there = i + 1;
        }
    }
    CHECK(longest <= LIMIT);
    access_file(file, how, write, first, memory, counts[rank], MPI_BYTE, &status);
    OK(MPI_Get_count(&status, MPI_BYTE, &found));
    SAME(found, write ? counts[rank] : there);
    for (int i = 0; !write && i < there; i++) {
        const int e = first + i;
        at = all ? disp + e : disp + (MPI_Offset)e / block * block * size + rank * block + e % block;
        wrong += memory[i] != oracle[at];
    }
    SAME(wrong, 0);
    if (write) length = longest;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Type_free(&filetype));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    if (failures) fprintf(stderr, "form %d, %s, blocks of %d%s, from %d on, at %d\n", how, write ? "write" : "read", block, all ? ", all" : "", first, disp);
}

static void set_length(void)
{
    MPI_Offset asked = below(LIMIT * 2 / 3);
    if (below(2)) {
        OK(MPI_File_set_size(file, asked));
        if (asked < length) memset(oracle + asked, 0, (size_t)(length - asked));
        length = asked;
    } else {
        OK(MPI_File_preallocate(file, asked));
        if (asked > length) length = asked;
    }
}

static void check_all(void)
{
    static unsigned char seen[LIMIT + 1];
    MPI_Status status;
    MPI_Offset found;
    int count;
    OK(MPI_File_get_size(file, &found));
    SAME(found, length);
    OK(MPI_File_read_at(file, 0, seen, LIMIT + 1, MPI_BYTE, &status));
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    SAME(count, length);
    SAME(memcmp(seen, oracle, (size_t)length), 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc > 1) state = strtoull(argv[1], NULL, 0);
    name_file("file_sizes");
    open_again(1);
    for (int round = 0, failed = 0; round < ROUNDS && failed == 0; round++) {
        switch (below(8)) {
        case 0: open_again(0); break;
        case 1: set_length(); break;
        default: access_some(round);
        }
        check_all();
        if (failures) fprintf(stderr, "round %d, rank %d of %d\n", round, rank, size);
        OK(MPI_Allreduce(&failures, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    }
    OK(MPI_File_close(&file));
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_UNIQUE_OPEN, MPI_INFO_NULL, &file));
    OK(MPI_File_close(&file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(access(name, F_OK) != 0);
    MPI_Finalize();
    return verdict();
}
