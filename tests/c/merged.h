/* What windows and files do on a communicator of processes that did not begin together. */
#include "check.h"
#include <unistd.h>

enum { SLOTS = 40, ROUNDS = 40, LONG = 600, WORDS = SLOTS + LONG };

/* The kinds of windows. */
enum { PRIVATE, SHARED, ALLOCATED, CONTIGUOUS, APART, DYNAMIC, KINDS };

/* A window of so many words of each member: where they are here, and which displacement they have at member `of`. */
static MPI_Win window(MPI_Comm all, int kind, long long **words, MPI_Aint *begins) {
    MPI_Win win = MPI_WIN_NULL;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Aint bytes = WORDS * sizeof(long long), at = 0;
    if (kind == PRIVATE || kind == DYNAMIC) *words = malloc((size_t)bytes);
    if (kind == SHARED) OK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, words));
    if (kind == APART) {
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "alloc_shared_noncontig", "true"));
    }
    if (kind == PRIVATE || kind == SHARED) OK(MPI_Win_create(*words, bytes, 8, MPI_INFO_NULL, all, &win));
    if (kind == ALLOCATED) OK(MPI_Win_allocate(bytes, 8, MPI_INFO_NULL, all, words, &win));
    if (kind == CONTIGUOUS || kind == APART) OK(MPI_Win_allocate_shared(bytes, 8, info, all, words, &win));
    if (kind == DYNAMIC) {
        OK(MPI_Win_create_dynamic(MPI_INFO_NULL, all, &win));
        OK(MPI_Win_attach(win, *words, bytes));
        OK(MPI_Get_address(*words, &at));
    }
    if (kind == APART) OK(MPI_Info_free(&info));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    memset(*words, 0, (size_t)bytes);
    OK(MPI_Allgather(&at, 1, MPI_AINT, begins, 1, MPI_AINT, all));
    return win;
}

static void free_window(MPI_Win *win, int kind, long long *words) {
    if (kind == DYNAMIC) OK(MPI_Win_detach(*win, words));
    OK(MPI_Win_free(win));
    if (kind == PRIVATE || kind == DYNAMIC) free(words);
    if (kind == SHARED) OK(MPI_Free_mem(words));
}

/* Members of two jobs access each other's memory, with every synchronisation. */
static void one_sided(MPI_Comm all, int r, int n) {
    MPI_Aint *begins = malloc(sizeof(MPI_Aint) * (size_t)n);
    MPI_Group everybody, to, from;
    int next = (r + 1) % n, before = (r + n - 1) % n, worlds;
    long long ones[LONG], other[LONG], *words, *theirs, mine = 1000 + r, got, one = 1;
    for (int i = 0; i < LONG; i++) ones[i] = 1;
    OK(MPI_Comm_size(MPI_COMM_WORLD, &worlds));
    for (int kind = 0; kind < KINDS; kind++) {
        MPI_Win win = window(all, kind, &words, begins), own;
        if (win == MPI_WIN_NULL) continue;
#define AT(member, word) (kind == DYNAMIC ? begins[member] + 8 * (MPI_Aint)(word) : (MPI_Aint)(word))
        OK(MPI_Win_fence(0, win));
        OK(MPI_Put(&mine, 1, MPI_LONG_LONG, next, AT(next, r), 1, MPI_LONG_LONG, win));
        OK(MPI_Win_fence(0, win));
        SAME(words[before], 1000 + before);
        OK(MPI_Get(&got, 1, MPI_LONG_LONG, next, AT(next, r), 1, MPI_LONG_LONG, win));
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
        SAME(got, mine);
        if (kind == CONTIGUOUS || kind == APART) {
            MPI_Aint room;
            int unit;
            OK(MPI_Win_shared_query(win, next, &room, &unit, &theirs));
            SAME(theirs[r], mine);
            if (kind == CONTIGUOUS && r + 1 < n) CHECK(theirs == words + WORDS);
        }
        /* Post, start, complete, wait: round the ring. */
        OK(MPI_Win_get_group(win, &everybody));
        OK(MPI_Group_incl(everybody, 1, &next, &to));
        OK(MPI_Group_incl(everybody, 1, &before, &from));
        for (int i = 0; i < ROUNDS; i++) {
            got = 7000 + i;
            OK(MPI_Win_post(from, 0, win));
            OK(MPI_Win_start(to, 0, win));
            OK(MPI_Put(&got, 1, MPI_LONG_LONG, next, AT(next, n), 1, MPI_LONG_LONG, win));
            OK(MPI_Win_complete(win));
            OK(MPI_Win_wait(win));
            SAME(words[n], 7000 + i);
        }
        OK(MPI_Group_free(&everybody));
        OK(MPI_Group_free(&to));
        OK(MPI_Group_free(&from));
        /* A counter that is read and written under a lock. */
        for (int i = 0; i < ROUNDS; i++) {
            int target = i % 2 ? n - 1 : 0;
            OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
            OK(MPI_Get(&got, 1, MPI_LONG_LONG, target, AT(target, n + 1), 1, MPI_LONG_LONG, win));
            OK(MPI_Win_flush(target, win));
            got++;
            OK(MPI_Put(&got, 1, MPI_LONG_LONG, target, AT(target, n + 1), 1, MPI_LONG_LONG, win));
            OK(MPI_Win_unlock(target, win));
        }
        /* Single values first, then many: atomic with each other,
         * and with those of a window of this job alone over the same memory. */
        if (kind == SHARED || kind == PRIVATE) {
            OK(MPI_Win_create(words, WORDS * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &own));
            OK(MPI_Win_lock_all(0, own));
        }
        OK(MPI_Win_lock_all(0, win));
        for (int i = 0; i < ROUNDS; i++)
            for (int target = 0; target < n; target++) {
                OK(MPI_Fetch_and_op(&one, &got, MPI_LONG_LONG, target, AT(target, SLOTS), MPI_SUM, win));
                if (i > ROUNDS / 2)
                    OK(MPI_Accumulate(ones, LONG, MPI_LONG_LONG, target, AT(target, SLOTS), LONG, MPI_LONG_LONG, MPI_SUM, win));
                if ((kind == SHARED || kind == PRIVATE) && target < worlds)
                    OK(MPI_Accumulate(&one, 1, MPI_LONG_LONG, target, SLOTS, 1, MPI_LONG_LONG, MPI_SUM, own));
            }
        OK(MPI_Win_flush_all(win));
        OK(MPI_Get_accumulate(ones, LONG, MPI_LONG_LONG, other, LONG, MPI_LONG_LONG, next, AT(next, SLOTS), LONG, MPI_LONG_LONG,
                              MPI_NO_OP, win));
        OK(MPI_Win_unlock_all(win));
        if (kind == SHARED || kind == PRIVATE) {
            OK(MPI_Win_unlock_all(own));
            OK(MPI_Win_free(&own));
        }
        OK(MPI_Barrier(all));
        OK(MPI_Win_lock(MPI_LOCK_SHARED, r, 0, win));
        int longs = ROUNDS - ROUNDS / 2 - 1, alone = kind == SHARED || kind == PRIVATE ? worlds * ROUNDS : 0;
        SAME(words[SLOTS], (long long)n * (ROUNDS + longs) + alone);
        SAME(words[WORDS - 1], (long long)n * longs);
        if (r == 0 || r == n - 1) SAME(words[n + 1], (long long)n * ROUNDS / 2);
        OK(MPI_Win_unlock(r, win));
        CLASS(MPI_Put(&mine, 1, MPI_LONG_LONG, next, 0, 1, MPI_LONG_LONG, win), MPI_ERR_RMA_SYNC);
        free_window(&win, kind, words);
    }
    free(begins);
}

/* Members of two jobs write one file: together, at the shared pointer, in order, in the background. */
static void into_a_file(MPI_Comm all, int r, int n) {
    enum { BLOCK = 100, BLOCKS = 400 };
    char path[64] = "", *out = malloc(BLOCK * BLOCKS), *in = malloc((size_t)(BLOCK * BLOCKS * n));
    MPI_File file;
    MPI_Datatype blocks;
    MPI_Offset bytes, at;
    MPI_Request request;
    snprintf(path, sizeof path, "/tmp/perusal-meeting-%d", (int)getpid());
    OK(MPI_Bcast(path, sizeof path, MPI_CHAR, 0, all));
    CLASS(MPI_File_open(all, "/nowhere/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    OK(MPI_File_open(all, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_Type_vector(BLOCKS, BLOCK, BLOCK * n, MPI_CHAR, &blocks));
    OK(MPI_Type_commit(&blocks));
    for (int round = 0; round < 5; round++) {
        memset(out, r + 10 * round + 1, BLOCK * BLOCKS);
        OK(MPI_File_set_view(file, (MPI_Offset)r * BLOCK, MPI_CHAR, blocks, "native", MPI_INFO_NULL));
        OK(MPI_File_set_atomicity(file, round == 3));
        if (round == 4) {
            OK(MPI_File_iwrite_at_all(file, 0, out, BLOCK * BLOCKS, MPI_CHAR, &request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else
            OK(MPI_File_write_at_all(file, 0, out, BLOCK * BLOCKS, MPI_CHAR, MPI_STATUS_IGNORE));
        OK(MPI_Barrier(all));
        memset(out, 0, BLOCK * BLOCKS);
        OK(MPI_File_read_at_all(file, 0, out, BLOCK * BLOCKS, MPI_CHAR, MPI_STATUS_IGNORE));
        SAME(out[0], r + 10 * round + 1);
        SAME(out[BLOCK * BLOCKS - 1], r + 10 * round + 1);
        OK(MPI_File_set_view(file, 0, MPI_CHAR, MPI_CHAR, "native", MPI_INFO_NULL));
        OK(MPI_File_read_at_all(file, 0, in, BLOCK * BLOCKS * n, MPI_CHAR, MPI_STATUS_IGNORE));
        for (int i = 0; i < BLOCKS * n; i++)
            for (int end = 0; end < 2; end++) SAME(in[i * BLOCK + end * (BLOCK - 1)], i % n + 10 * round + 1);
    }
    OK(MPI_Type_free(&blocks));
    OK(MPI_File_set_size(file, 0));
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    for (int i = 0; i < 10; i++) OK(MPI_File_write_shared(file, out, 8, MPI_CHAR, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(all));
    OK(MPI_File_get_position_shared(file, &at));
    OK(MPI_File_get_size(file, &bytes));
    SAME(at, 80 * n);
    SAME(bytes, 80 * n);
    OK(MPI_Barrier(all));
    memset(out, r, 8);
    OK(MPI_File_write_ordered(file, out, 8, MPI_CHAR, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(all));
    OK(MPI_File_read_at(file, 80 * n, in, 8 * n, MPI_CHAR, MPI_STATUS_IGNORE));
    for (int i = 0; i < n; i++) SAME(in[8 * i], i);
    OK(MPI_Barrier(all));
    OK(MPI_File_close(&file));
    free(out);
    free(in);
}

/* Communicators made of groups alone: of all in the other order, and of each with the last, who comes to all others in
 * turn, whatever call they are in. */
static void of_groups(MPI_Comm all, int r, int n) {
    MPI_Group everybody, some;
    MPI_Comm made;
    int back[1][3] = {{n - 1, 0, -1}}, rank, sum;
    OK(MPI_Comm_group(all, &everybody));
    OK(MPI_Group_range_incl(everybody, 1, back, &some));
    for (int i = 0; i < 3; i++) {
        OK(MPI_Comm_create_from_group(some, "all", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made));
        OK(MPI_Comm_rank(made, &rank));
        SAME(rank, n - 1 - r);
        OK(MPI_Allreduce(&r, &sum, 1, MPI_INT, MPI_SUM, made));
        SAME(sum, n * (n - 1) / 2);
        OK(MPI_Comm_free(&made));
    }
    OK(MPI_Group_free(&some));
    for (int first = n - 2; first >= 0; first--) {
        int two[] = {first, n - 1};
        if (r != two[0] && r != two[1]) continue;
        OK(MPI_Group_incl(everybody, 2, two, &some));
        OK(MPI_Comm_create_from_group(some, "pair", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made));
        OK(MPI_Allreduce(&r, &sum, 1, MPI_INT, MPI_SUM, made));
        SAME(sum, first + n - 1);
        OK(MPI_Comm_free(&made));
        OK(MPI_Group_free(&some));
    }
    OK(MPI_Group_free(&everybody));
}
