/* Data of random nested datatypes, with negative bounds, empty blocks, and elements that overlap where they are sent:
 * packed, sent, in collectives, one-sided, in partitions and in files, against a naive model. All ranks draw the same
 * types from the seed (the first argument, or 1; the second one is the number of rounds), so that each knows what must
 * come and that nothing else is touched.
 * RANKS: 1 2 3 5
 */
#include "datatype_model.h"
#include "file.h"

enum { WINDOW = 1 << 20, REGION = 1 << 20, RANKS_AT_MOST = 16 };

static int rounds = 250;
static unsigned long long round_seed;

/* Memory that holds `count` elements: displacement 0 is at `base`. */
struct memory {
    unsigned char *bytes, *base;
    long length, low;
};

static void span_of(const struct map *map, int count, long *low, long *high)
{
    const long far = (count - 1) * extent(map);
    *low = *high = 0;
    if (map->n == 0 || count == 0) return;
    *low = data_low(map) + (far < 0 ? far : 0);
    *high = data_high(map) + (far > 0 ? far : 0);
}

static struct memory memory_of(const struct map *map, int count, int filling)
{
    long low, high;
    span_of(map, count, &low, &high);
    struct memory m = {.length = high - low + 16, .low = low};
    m.bytes = malloc((size_t)m.length);
    memset(m.bytes, filling, (size_t)m.length);
    m.base = m.bytes - low;
    return m;
}

/* What rank `who` sends in this round. */
static struct memory data_of(const struct map *map, int count, int who)
{
    struct memory m = memory_of(map, count, 0);
    unsigned long long z = round_seed + (unsigned)who * 977;
    for (long i = 0; i < m.length; i++) {
        z = z * 6364136223846793005u + 1442695040888963407u;
        m.bytes[i] = (unsigned char)(z >> 56);
    }
    return m;
}

static void copy_packed(const struct map *map, int count, unsigned char *base, unsigned char *packed, int out)
{
    for (int c = 0; c < count; c++)
        for (int i = 0; i < map->n; i++) {
            unsigned char *there = base + c * extent(map) + map->entries[i].at;
            const size_t size = (size_t)size_of[map->entries[i].basic];
            memcpy(out ? packed : there, out ? there : packed, size);
            packed += size;
        }
}

/* What rank `who` sends, one element behind the other. */
static unsigned char *packed_of(const struct map *map, int count, int who)
{
    struct memory m = data_of(map, count, who);
    unsigned char *packed = malloc((size_t)(bytes(map) * count + 1));
    copy_packed(map, count, m.base, packed, 1);
    free(m.bytes);
    return packed;
}

/* Whether `m` holds the packed bytes as `count` elements, and has nothing else changed. Frees the bytes. */
static void check_memory(const char *what, const struct map *map, int count, const struct memory *m, unsigned char *packed)
{
    struct memory expected = memory_of(map, count, 0xA5);
    copy_packed(map, count, expected.base, packed, 0);
    if (memcmp(expected.bytes, m->bytes, (size_t)m->length) != 0) {
        long i = 0;
        while (expected.bytes[i] == m->bytes[i]) i++;
        fprintf(stderr, "rank %d: %s of %d elements: byte %ld of %ld is %d, expected %d\n", rank, what, count, i + m->low, m->length, m->bytes[i],
            expected.bytes[i]);
        failures++;
    }
    free(expected.bytes), free(packed);
}

static int overlaps(const struct map *map, int count)
{
    struct memory seen = memory_of(map, count, 0);
    int found = 0;
    for (int c = 0; c < count && !found; c++)
        for (int i = 0; i < map->n && !found; i++)
            for (int b = 0; b < size_of[map->entries[i].basic]; b++) found |= seen.base[c * extent(map) + map->entries[i].at + b]++;
    free(seen.bytes);
    return found;
}

/* Another type with the same elements, none of which overlap: runs of them in any order, with gaps. */
static struct made scattered(const struct map *map)
{
    struct made new = {0};
    int n = 0, *lengths = malloc((size_t)(map->n + 1) * sizeof *lengths), *order = malloc((size_t)(map->n + 1) * sizeof *order);
    MPI_Aint *at = malloc((size_t)(map->n + 1) * sizeof *at);
    MPI_Datatype *types = malloc((size_t)(map->n + 1) * sizeof *types), unresized;
    int *first = malloc((size_t)(map->n + 1) * sizeof *first);
    for (int i = 0; i < map->n;) {
        int length = 1, most = 1 + draw(draw(4) ? 3 : 200);
        while (length < most && i + length < map->n && map->entries[i + length].basic == map->entries[i].basic) length++;
        first[n] = i, lengths[n] = length, types[n] = basics[map->entries[i].basic], order[n] = n, n++;
        i += length;
    }
    if (draw(3))
        for (int i = n - 1; i > 0; i--) {
            int j = draw(i + 1), other = order[i];
            order[i] = order[j], order[j] = other;
        }
    long low = between(-50, 50), next = low;
    for (int i = 0; i < n; i++) {
        at[order[i]] = next;
        next += (long)lengths[order[i]] * size_of[map->entries[first[order[i]]].basic] + (draw(2) ? draw(9) : 0);
    }
    for (int i = 0; i < n; i++) {
        struct map one = {.n = 1, .entries = &(struct entry){0, map->entries[first[i]].basic}};
        add(&new.map, &one, at[i], lengths[i]);
    }
    OK(MPI_Type_create_struct(n, lengths, at, types, &unresized));
    long span = next - low + draw(5);
    OK(MPI_Type_create_resized(unresized, low, span, &new.type));
    OK(MPI_Type_free(&unresized));
    mark(&new.map, low, low + span);
    free(lengths), free(order), free(at), free(types), free(first);
    return new;
}

/* What a round is about: one type to send, one to receive, so many elements of both. */
static struct made from, to;
static int count;

static void messages(void)
{
    const int next = (rank + 1) % size, before = (rank + size - 1) % size, mode = draw(4);
    struct memory out = data_of(&from.map, count, rank), in = memory_of(&to.map, count, 0xA5);
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int counted;
    OK(MPI_Irecv(in.base, count, to.type, before, 3, MPI_COMM_WORLD, &requests[0]));
    if (mode == 0) OK(MPI_Isend(out.base, count, from.type, next, 3, MPI_COMM_WORLD, &requests[1]));
    else if (mode == 1) OK(MPI_Issend(out.base, count, from.type, next, 3, MPI_COMM_WORLD, &requests[1]));
    else if (mode == 2) OK(MPI_Isend_c(out.base, count, from.type, next, 3, MPI_COMM_WORLD, &requests[1]));
    else {
        OK(MPI_Send_init(out.base, count, from.type, next, 3, MPI_COMM_WORLD, &requests[1]));
        OK(MPI_Start(&requests[1]));
    }
    OK(MPI_Waitall(2, requests, statuses));
    if (mode == 3) OK(MPI_Request_free(&requests[1]));
    OK(MPI_Get_count(&statuses[0], to.type, &counted));
    SAME(counted, bytes(&to.map) ? count : 0);
    OK(MPI_Get_elements(&statuses[0], to.type, &counted));
    SAME(counted, to.map.n * count);
    check_memory("message", &to.map, count, &in, packed_of(&from.map, count, before));
    free(out.bytes), free(in.bytes);
}

/* A part of what there is room for. */
static void part_of_a_message(void)
{
    const int elements = draw(to.map.n * count + 1);
    struct memory in = memory_of(&to.map, count, 0xA5);
    unsigned char *packed = packed_of(&from.map, count, rank), *expected = malloc((size_t)(bytes(&to.map) * count + 1));
    long sent = 0;
    for (int i = 0; i < elements; i++) sent += size_of[to.map.entries[i % to.map.n].basic];
    MPI_Request request;
    MPI_Status status;
    int counted;
    OK(MPI_Irecv(in.base, count, to.type, 0, 4, MPI_COMM_SELF, &request));
    OK(MPI_Send(packed, (int)sent, MPI_PACKED, 0, 4, MPI_COMM_SELF));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Get_elements(&status, to.type, &counted));
    SAME(counted, elements);
    OK(MPI_Get_count(&status, to.type, &counted));
    SAME(counted, to.map.n == 0 ? 0 : elements % to.map.n ? MPI_UNDEFINED : elements / to.map.n);
    /* The rest is as it was. */
    memset(expected, 0xA5, (size_t)(bytes(&to.map) * count + 1));
    memcpy(expected, packed, (size_t)sent);
    check_memory("part of a message", &to.map, count, &in, expected);
    free(packed), free(in.bytes);
}

static void swap_in_place(void)
{
    if (size > 2 || overlaps(&from.map, count)) return;
    struct memory m = data_of(&from.map, count, rank), expected = data_of(&from.map, count, rank);
    unsigned char *packed = packed_of(&from.map, count, size - 1 - rank);
    OK(MPI_Sendrecv_replace(m.base, count, from.type, size - 1 - rank, 5, size - 1 - rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    copy_packed(&from.map, count, expected.base, packed, 0);
    SAME(memcmp(m.bytes, expected.bytes, (size_t)m.length), 0);
    free(m.bytes), free(expected.bytes), free(packed);
}

static void swapped(unsigned char *packed)
{
    for (int c = 0; c < count; c++)
        for (int i = 0; i < from.map.n; i++) {
            const int n = size_of[from.map.entries[i].basic];
            for (int b = 0; b < n / 2; b++) {
                unsigned char byte = packed[b];
                packed[b] = packed[n - 1 - b], packed[n - 1 - b] = byte;
            }
            packed += n;
        }
}

static void packing(void)
{
    const long length = bytes(&from.map) * count;
    struct memory out = data_of(&from.map, count, rank), in = memory_of(&to.map, count, 0xA5);
    unsigned char *packed = packed_of(&from.map, count, rank), *area = malloc((size_t)length + 64);
    MPI_Aint external, at = 3;
    int room, position = 7;
    OK(MPI_Pack_size(count, from.type, MPI_COMM_WORLD, &room));
    CHECK(room >= length);
    OK(MPI_Pack(out.base, count, from.type, area, room + 7, &position, MPI_COMM_WORLD));
    SAME(position, 7 + length);
    SAME(memcmp(area + 7, packed, (size_t)length), 0);
    position = 7;
    for (int done = 0, some; done < count; done += some) {
        some = 1 + draw(count - done);
        OK(MPI_Unpack(area, room + 7, &position, in.base + done * extent(&to.map), some, to.type, MPI_COMM_WORLD));
    }
    SAME(position, count ? 7 + length : 7);
    check_memory("unpacking", &to.map, count, &in, packed_of(&from.map, count, rank));

    OK(MPI_Pack_external_size("external32", count, from.type, &external));
    SAME(external, length);
    OK(MPI_Pack_external("external32", out.base, count, from.type, area, external + 3, &at));
    SAME(at, 3 + length);
    swapped(packed);
    SAME(memcmp(area + 3, packed, (size_t)length), 0);
    memset(in.bytes, 0xA5, (size_t)in.length);
    at = 3;
    OK(MPI_Unpack_external("external32", area, external + 3, &at, in.base, count, to.type));
    SAME(at, 3 + length);
    check_memory("unpacking of external32", &to.map, count, &in, packed_of(&from.map, count, rank));
    free(out.bytes), free(in.bytes), free(packed), free(area);
}

static void collectives(void)
{
    const int root = draw(size), own = rank == root;
    struct memory out = data_of(&from.map, count, rank), in = memory_of(&to.map, count, 0xA5), all = memory_of(&to.map, count * size, 0xA5);
    OK(MPI_Bcast(own ? out.base : in.base, count, own ? from.type : to.type, root, MPI_COMM_WORLD));
    if (!own) check_memory("broadcast", &to.map, count, &in, packed_of(&from.map, count, root));

    const long one = bytes(&from.map) * count;
    unsigned char *packed = malloc((size_t)(one * size + 1));
    for (int r = 0; r < size; r++) {
        unsigned char *theirs = packed_of(&from.map, count, r);
        memcpy(packed + one * r, theirs, (size_t)one);
        free(theirs);
    }
    switch (draw(3)) {
    case 0: OK(MPI_Allgather(out.base, count, from.type, all.base, count, to.type, MPI_COMM_WORLD)); break;
    case 1: {
        MPI_Request request;
        OK(MPI_Iallgather(out.base, count, from.type, all.base, count, to.type, MPI_COMM_WORLD, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        break;
    }
    default: OK(MPI_Gather(out.base, count, from.type, all.base, count, to.type, root, MPI_COMM_WORLD));
        if (!own) copy_packed(&to.map, count * size, all.base, packed, 0);
    }
    check_memory("gather", &to.map, count * size, &all, packed);

    /* What the root scatters lies in one array. */
    struct memory whole = data_of(&from.map, count * size, root);
    memset(in.bytes, 0xA5, (size_t)in.length);
    OK(MPI_Scatter(whole.base, count, from.type, in.base, count, to.type, root, MPI_COMM_WORLD));
    packed = malloc((size_t)(one + 1));
    copy_packed(&from.map, count, whole.base + rank * count * extent(&from.map), packed, 1);
    check_memory("scatter", &to.map, count, &in, packed);
    free(out.bytes), free(in.bytes), free(all.bytes), free(whole.bytes);
}

/* To every rank `count` elements or none. */
static void exchange(void)
{
    int send_counts[RANKS_AT_MOST], receive_counts[RANKS_AT_MOST], zeros[RANKS_AT_MOST] = {0}, places[RANKS_AT_MOST];
    MPI_Datatype send_types[RANKS_AT_MOST], receive_types[RANKS_AT_MOST];
    const long one = bytes(&to.map) * count;
    struct memory out = data_of(&from.map, count, rank), in = memory_of(&to.map, count * size, 0xA5);
    unsigned char *expected = malloc((size_t)(one * size + 1));
    memset(expected, 0xA5, (size_t)(one * size + 1));
    for (int source = 0; source < size; source++)
        for (int dest = 0; dest < size; dest++) {
            int some = draw(4) ? count : 0;
            if (source == rank) send_counts[dest] = some;
            if (dest == rank) receive_counts[source] = some;
        }
    for (int r = 0; r < size; r++) {
        send_types[r] = from.type, receive_types[r] = to.type;
        places[r] = (int)(r * count * extent(&to.map));
        unsigned char *theirs = packed_of(&from.map, count, r);
        if (receive_counts[r]) memcpy(expected + one * r, theirs, (size_t)one);
        free(theirs);
    }
    if (draw(2)) OK(MPI_Alltoallw(out.base, send_counts, zeros, send_types, in.base, receive_counts, places, receive_types, MPI_COMM_WORLD));
    else {
        MPI_Request request;
        OK(MPI_Ialltoallw(out.base, send_counts, zeros, send_types, in.base, receive_counts, places, receive_types, MPI_COMM_WORLD, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    check_memory("exchange", &to.map, count * size, &in, expected);
    free(out.bytes), free(in.bytes);
}

/* Into the next rank's window, and out of that of the rank before. */
static void one_sided(MPI_Win win, unsigned char *memory, int basic)
{
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    struct memory out = data_of(&from.map, count, rank), in = memory_of(&to.map, count, 0xA5), there = memory_of(&to.map, count, 0xA5);
    if (there.length > WINDOW || out.length > WINDOW) {
        free(out.bytes), free(in.bytes), free(there.bytes);
        return;
    }
    OK(MPI_Win_fence(0, win));
    memset(memory, 0xA5, (size_t)there.length);
    OK(MPI_Win_fence(0, win));
    if (basic != ANY && draw(2)) OK(MPI_Accumulate(out.base, count, from.type, next, -there.low, count, to.type, MPI_REPLACE, win));
    else OK(MPI_Put(out.base, count, from.type, next, -there.low, count, to.type, win));
    OK(MPI_Win_fence(0, win));
    memcpy(there.bytes, memory, (size_t)there.length);
    check_memory("put", &to.map, count, &there, packed_of(&from.map, count, before));

    OK(MPI_Win_fence(0, win));
    memcpy(memory, out.bytes, (size_t)out.length);
    OK(MPI_Win_fence(0, win));
    if (basic != ANY && draw(2)) OK(MPI_Get_accumulate(NULL, 0, basics[basic], in.base, count, to.type, before, -out.low, count, from.type, MPI_NO_OP, win));
    else OK(MPI_Get(in.base, count, to.type, before, -out.low, count, from.type, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    check_memory("get", &to.map, count, &in, packed_of(&from.map, count, before));
    free(out.bytes), free(in.bytes), free(there.bytes);
}

static void partitions(void)
{
    const int next = (rank + 1) % size, before = (rank + size - 1) % size, parts = 1 + draw(4);
    struct memory out = data_of(&from.map, count * parts, rank), in = memory_of(&to.map, count * parts, 0xA5);
    MPI_Request requests[2];
    OK(MPI_Psend_init(out.base, parts, count, from.type, next, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Precv_init(in.base, 1, count * parts, to.type, before, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    OK(MPI_Startall(2, requests));
    for (int p = parts - 1; p >= 0; p--) OK(MPI_Pready(p, requests[0]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    check_memory("partitions", &to.map, count * parts, &in, packed_of(&from.map, count * parts, before));
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
    free(out.bytes), free(in.bytes);
}

/* Whether the type makes a view: ascending, never below 0, one tile behind the other. */
static int is_view(const struct map *map)
{
    if (map->n == 0 || data_low(map) < 0 || extent(map) < data_high(map) - data_low(map)) return 0;
    for (int i = 1; i < map->n; i++)
        if (map->entries[i].at < map->entries[i - 1].at + size_of[map->entries[i].basic]) return 0;
    return 1;
}

/* Through a view of a region of each rank's own. */
static void files(MPI_File file, MPI_File plain, int basic)
{
    struct made view = {0};
    const int width = size_of[basic], skip = draw(20), all = draw(2);
    const long length = bytes(&from.map) * count, disp = (long)rank * REGION + draw(50);
    for (int tries = 0; tries < 200 && !is_view(&view.map); tries++) {
        if (tries) end_type(&view);
        view = draw_type(1 + draw(3), basic);
    }
    const long tiles = is_view(&view.map) ? (length / width + skip) / view.map.n + 1 : REGION;
    if (!is_view(&view.map) || tiles * extent(&view.map) + 100 > REGION) {
        end_type(&view);
        return;
    }
    OK(MPI_Type_commit(&view.type));
    struct memory out = data_of(&from.map, count, rank), in = memory_of(&to.map, count, 0xA5);
    unsigned char *region = calloc(1, REGION), *expected = calloc(1, REGION), *packed = packed_of(&from.map, count, rank);
    MPI_Status status;
    int counted;
    OK(MPI_File_write_at(plain, (MPI_Offset)rank * REGION, region, REGION, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_set_view(file, disp, basics[basic], view.type, "native", MPI_INFO_NULL));
    OK(all ? MPI_File_write_at_all(file, skip, out.base, count, from.type, &status) : MPI_File_write_at(file, skip, out.base, count, from.type, &status));
    OK(MPI_Get_count(&status, from.type, &counted));
    SAME(counted, length ? count : 0);
    for (long e = 0; e < length / width; e++) {
        long k = e + skip, at = k / view.map.n * extent(&view.map) + view.map.entries[k % view.map.n].at + disp - (long)rank * REGION;
        memcpy(expected + at, packed + e * width, (size_t)width);
    }
    OK(MPI_File_read_at(plain, (MPI_Offset)rank * REGION, region, REGION, MPI_BYTE, MPI_STATUS_IGNORE));
    SAME(memcmp(region, expected, REGION), 0);
    if (length) OK(all ? MPI_File_read_at_all(file, skip, in.base, count, to.type, &status) : MPI_File_read_at(file, skip, in.base, count, to.type, &status));
    else if (all) OK(MPI_File_read_at_all(file, skip, in.base, 0, to.type, &status));
    check_memory("reading", &to.map, length ? count : 0, &in, packed);
    free(out.bytes), free(in.bytes), free(region), free(expected);
    end_type(&view);
}

static void one_round(int round, MPI_Win *windows, unsigned char **memories, MPI_File file, MPI_File plain)
{
    const int basic = draw(2) ? ANY : draw(BASICS);
    round_seed = (unsigned long long)round * 7919 + 1;
    from = draw_type(1 + draw(4), basic);
    check_bounds(&from);
    if (draw(2)) {
        MPI_Datatype again = rebuilt(from.type);
        if (again != from.type) free_type(&from.type);
        from.type = again;
        check_bounds(&from);
    }
    OK(MPI_Type_commit(&from.type));
    count = draw(4) == 0 && from.map.n < 100 ? draw(400) : draw(6);
    to = scattered(&from.map);
    if (draw(3) == 0 && !overlaps(&from.map, count * (size < 4 ? 4 : size))) {
        end_type(&to);
        to = (struct made){0};
        OK(MPI_Type_dup(from.type, &to.type));
        add(&to.map, &from.map, 0, 1);
    }
    check_bounds(&to);
    OK(MPI_Type_commit(&to.type));
    messages();
    part_of_a_message();
    swap_in_place();
    packing();
    collectives();
    exchange();
    int which = draw(2);
    one_sided(windows[which], memories[which], basic);
    partitions();
    /* All ranks have drawn the same so far, and the same view. */
    if (basic != ANY) files(file, plain, basic);
    end_type(&from), end_type(&to);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    unsigned long long seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    if (argc > 2) rounds = atoi(argv[2]);
    name_file("datatype_random");
    unsigned char *memories[2] = {NULL, malloc(WINDOW)};
    MPI_Win windows[2];
    MPI_File file, plain;
    OK(MPI_Win_allocate(WINDOW, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memories[0], &windows[0]));
    OK(MPI_Win_create(memories[1], WINDOW, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &windows[1]));
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR, MPI_INFO_NULL, &plain));
    for (int round = 0, failed = 0; round < rounds && failed == 0; round++) {
        random_state = seed * 1000003 + (unsigned)round;
        one_round(round, windows, memories, file, plain);
        if (failures) fprintf(stderr, "seed %llu, round %d, rank %d of %d\n", seed, round, rank, size);
        OK(MPI_Allreduce(&failures, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    }
    OK(MPI_File_close(&plain));
    OK(MPI_File_close(&file));
    OK(MPI_Win_free(&windows[0]));
    OK(MPI_Win_free(&windows[1]));
    free(memories[1]);
    MPI_Finalize();
    return verdict();
}
