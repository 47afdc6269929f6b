/* Messages of buffers that the library remaps have what the program has stored, whatever it does with its memory:
 * buffers that begin anywhere, grow, shrink, overlap, are under way several times, are freed, and are allocated anew;
 * and nothing beside them changes.
 * RANKS: 2 4
 * ENV: PERUSAL_COPY_REMAP_AFTER=2
 */
#include "remapped.h"
#include <sys/mman.h>

enum { BLOCK = 3 << 19, ROUNDS = 4, BESIDE = 3 * PAGE };

static int rank, peer;

static unsigned char at_place(long at, int seed) { return (unsigned char)(at * 7 + at / 255 + seed * 13); }

static void fill(unsigned char *buffer, long bytes, int seed)
{
    for (long at = 0; at < bytes; at++) buffer[at] = at_place(at, seed);
}

/* Bytes from the beginning on that are as `fill` makes them. */
static long good(const unsigned char *buffer, long bytes, int seed)
{
    long at = 0;
    while (at < bytes && buffer[at] == at_place(at, seed)) at++;
    return at;
}

static void send(const unsigned char *buffer, int bytes)
{
    OK(MPI_Send(buffer, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD));
}

static void receive(unsigned char *buffer, int bytes, int seed)
{
    memset(buffer, 0xee, bytes);
    OK(MPI_Recv(buffer, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    SAME(good(buffer, bytes, seed), bytes);
}

/* Both ways, so that both ranks send and receive in one block. */
static void there_and_back(unsigned char *buffer, int bytes, int seed)
{
    if (rank % 2 == 0) {
        fill(buffer, bytes, seed);
        send(buffer, bytes);
        receive(buffer, bytes, seed + 1);
    } else {
        receive(buffer, bytes, seed);
        fill(buffer, bytes, seed + 1);
        send(buffer, bytes);
    }
}

static void neighbours_stay(void)
{
    static const struct { int offset, bytes; } pieces[] = {
        {0, 32768},      {16, 32768},      {4095, 40000},   {4096, 65536},   {4097, 65537},
        {5000, 100001},  {5000, 300000},   {4096, 600000},  {1, 1 << 20},    {100000, 50000},
        {300001, 70000}, {200000, 400000}, {8192, 131072},  {12288, 131072}, {4096, 800000},
    };
    unsigned char *block = malloc(BLOCK);
    for (int p = 0; p < (int)(sizeof pieces / sizeof *pieces); p++) {
        int offset = pieces[p].offset, bytes = pieces[p].bytes;
        for (int i = 0; i < ROUNDS; i++) {
            int before = p + i, behind = p + i + 100, front = offset < BESIDE ? offset : BESIDE;
            fill(block + offset - front, front, before);
            fill(block + offset + bytes, BESIDE, behind);
            there_and_back(block + offset, bytes, i + p);
            SAME(good(block + offset - front, front, before), front);
            SAME(good(block + offset + bytes, BESIDE, behind), BESIDE);
        }
        /* The longest so far: nothing but its inner pages. */
        if (can_remap() && p == 8) CHECK(is_remapped(block + offset + bytes / 2));
        if (p <= 8) CHECK(!is_remapped(block + offset) && !is_remapped(block + offset + bytes - 1));
    }
    free(block);
}

/* A send that waits while the buffer that it is a part of is remapped again, and others take the heap's memory. */
static void several_under_way(void)
{
    /* Longer than what takes the ring if it has changed. */
    enum { PART = 280000, WHOLE = 560000, OTHERS = 6 };
    unsigned char *buffer = malloc(WHOLE), *others[OTHERS], *room = malloc(WHOLE);
    for (int i = 0; i < OTHERS; i++) others[i] = malloc(WHOLE);
    /* The part has a place of its own before the whole has one. */
    for (int i = 0; i < 3; i++) there_and_back(buffer, PART, i);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Request parts[2];
        if (rank % 2 == 0) {
            fill(buffer, WHOLE, i);
            OK(MPI_Isend(buffer, PART, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &parts[0]));
            OK(MPI_Isend(buffer + 1000, PART, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &parts[1]));
            for (int j = 0; j < 3; j++) OK(MPI_Ssend(buffer, WHOLE, MPI_BYTE, peer, 2, MPI_COMM_WORLD));
            for (int j = 0; j < OTHERS; j++) {
                fill(others[j], WHOLE, i + j + 50);
                for (int k = 0; k < 2; k++) OK(MPI_Ssend(others[j], WHOLE, MPI_BYTE, peer, 3, MPI_COMM_WORLD));
            }
            OK(MPI_Waitall(2, parts, MPI_STATUSES_IGNORE));
        } else {
            for (int j = 0; j < 3; j++) {
                OK(MPI_Recv(room, WHOLE, MPI_BYTE, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
                SAME(good(room, WHOLE, i), WHOLE);
            }
            for (int j = 0; j < 2 * OTHERS; j++) {
                OK(MPI_Recv(room, WHOLE, MPI_BYTE, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
                SAME(good(room, WHOLE, i + j / 2 + 50), WHOLE);
            }
            OK(MPI_Recv(room, PART, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            SAME(good(room, PART, i), PART);
            OK(MPI_Recv(room, PART, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            long at = 0;
            while (at < PART && room[at] == at_place(at + 1000, i)) at++;
            SAME(at, PART);
        }
    }
    for (int i = 0; i < OTHERS; i++) free(others[i]);
    free(buffer);
    free(room);
}

/* Memory that is freed and allocated anew lies where remapped buffers lay, and is none of them. */
static void freed_and_allocated(void)
{
    for (int i = 0; i < 12; i++) {
        int bytes = i % 3 == 0 ? 1 << 20 : i % 3 == 1 ? 200000 : 70000;
        unsigned char *buffer = i % 2 ? calloc(1, bytes) : malloc(bytes);
        for (int at = 0; i % 2 && at < bytes; at++)
            if (buffer[at]) {
                CHECK(!"calloc's memory is zero");
                break;
            }
        for (int j = 0; j < 4; j++) there_and_back(buffer, bytes, i + j);
        if (i % 4 == 3) {
            /* It moves, or grows: what was in it is in it. */
            fill(buffer, bytes, 77);
            buffer = realloc(buffer, 5 * bytes);
            SAME(good(buffer, bytes, 77), bytes);
            fill(buffer, 5 * bytes, 78);
            for (int j = 0; j < 4; j++) there_and_back(buffer, 5 * bytes, i + j);
            buffer = realloc(buffer, bytes / 2);
            there_and_back(buffer, bytes / 2, i);
        }
        free(buffer);
    }
}

/* Exchanges, persistent requests, and receives with more room than the message takes. */
static void other_forms(void)
{
    enum { BYTES = 300001 };
    unsigned char *out = malloc(BYTES), *in = malloc(BYTES + 5000);
    MPI_Request requests[2];
    OK(MPI_Send_init(out, BYTES, MPI_BYTE, peer, 4, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Recv_init(in, BYTES + 5000, MPI_BYTE, peer, 4, MPI_COMM_WORLD, &requests[1]));
    for (int i = 0; i < 2 * ROUNDS; i++) {
        fill(out, BYTES, i + rank);
        fill(in, BYTES + 5000, 3);
        OK(MPI_Startall(2, requests));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        SAME(good(in, BYTES, i + peer), BYTES);
        long at = BYTES;
        while (at < BYTES + 5000 && in[at] == at_place(at, 3)) at++;
        SAME(at, BYTES + 5000);
        fill(out, BYTES, i + rank + 40);
        OK(MPI_Sendrecv(out, BYTES - i, MPI_BYTE, peer, 5, in, BYTES, MPI_BYTE, peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        SAME(good(in, BYTES - i, i + peer + 40), BYTES - i);
    }
    for (int i = 0; i < 2; i++) OK(MPI_Request_free(&requests[i]));
    free(out);
    free(in);
}

/* Other ranks may write to a window at any time, so its memory stays what it is; and so does memory of no malloc. */
static void some_stay(void)
{
    enum { BYTES = 300000 };
    MPI_Win window, dynamic;
    unsigned char *created = malloc(BYTES), *attached = malloc(BYTES);
    unsigned char *own = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static unsigned char fixed[BYTES];
    unsigned char *buffers[] = {created, attached, own, fixed};
    OK(MPI_Win_create(created, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window));
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic));
    OK(MPI_Win_attach(dynamic, attached, BYTES));
    for (int i = 0; i < ROUNDS; i++)
        for (int j = 0; j < 4; j++) there_and_back(buffers[j], BYTES, i + j);
    for (int j = 0; j < 3; j++) CHECK(!is_remapped(buffers[j] + BYTES / 2));
    if (can_remap()) CHECK(is_remapped(fixed + BYTES / 2));
    OK(MPI_Win_detach(dynamic, attached));
    OK(MPI_Win_free(&dynamic));
    OK(MPI_Win_free(&window));
    for (int i = 0; i < 4 * ROUNDS; i++) there_and_back(attached, BYTES, i);
    if (can_remap()) CHECK(is_remapped(attached + BYTES / 2));
    munmap(own, BYTES);
    free(attached);
    free(created);
}

int main(void)
{
    int size;
    MPI_Init(NULL, NULL);
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    peer = rank ^ 1;
    /* First, while no memory is one that was remapped before. */
    some_stay();
    neighbours_stay();
    several_under_way();
    freed_and_allocated();
    other_forms();
    MPI_Finalize();
    return verdict();
}
