/* Random nested datatypes beside a naive model: the list of basic elements and displacements that the standard's
 * definitions give. */
#ifndef DATATYPE_MODEL_H
#define DATATYPE_MODEL_H

#include "check.h"

enum { BASICS = 6, ENTRIES_AT_MOST = 3000, ANY = -1 };

static const MPI_Datatype basics[BASICS] = {MPI_CHAR, MPI_SHORT, MPI_INT, MPI_DOUBLE, MPI_LONG_LONG, MPI_FLOAT};
static const int size_of[BASICS] = {1, 2, 4, 8, 8, 4};

struct entry {
    long at;
    int basic;
};

struct map {
    int n;
    struct entry *entries;
    int marked;
    long mark_low, mark_high;
};

/* A type, and what it must be. */
struct made {
    MPI_Datatype type;
    struct map map;
};

static unsigned long long random_state;

static int draw(int below)
{
    unsigned long long z = random_state += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return (int)(((z ^ (z >> 31)) >> 16) % (unsigned)below);
}

static int between(int low, int high) { return low + draw(high - low + 1); }

static long data_low(const struct map *map)
{
    long low = map->n ? map->entries[0].at : 0;
    for (int i = 1; i < map->n; i++)
        if (map->entries[i].at < low) low = map->entries[i].at;
    return low;
}

static long data_high(const struct map *map)
{
    long high = map->n ? map->entries[0].at + size_of[map->entries[0].basic] : 0;
    for (int i = 1; i < map->n; i++)
        if (map->entries[i].at + size_of[map->entries[i].basic] > high) high = map->entries[i].at + size_of[map->entries[i].basic];
    return high;
}

static long lb(const struct map *map) { return map->marked ? map->mark_low : data_low(map); }

static long extent(const struct map *map)
{
    if (map->marked) return map->mark_high - map->mark_low;
    long align = 1, span = data_high(map) - data_low(map);
    for (int i = 0; i < map->n; i++)
        if (size_of[map->entries[i].basic] > align) align = size_of[map->entries[i].basic];
    return (span + align - 1) / align * align;
}

static long bytes(const struct map *map)
{
    long sum = 0;
    for (int i = 0; i < map->n; i++) sum += size_of[map->entries[i].basic];
    return sum;
}

/* `count` copies of `old`, the first displaced by `at`. */
static void add(struct map *map, const struct map *old, long at, int count)
{
    const long step = extent(old);
    map->entries = realloc(map->entries, (size_t)(map->n + old->n * count + 1) * sizeof *map->entries);
    for (int c = 0; c < count; c++, at += step) {
        for (int i = 0; i < old->n; i++) map->entries[map->n++] = (struct entry){old->entries[i].at + at, old->entries[i].basic};
        if (!old->marked) continue;
        long low = old->mark_low + at, high = old->mark_high + at;
        map->mark_low = map->marked && map->mark_low < low ? map->mark_low : low;
        map->mark_high = map->marked && map->mark_high > high ? map->mark_high : high;
        map->marked = 1;
    }
}

static void mark(struct map *map, long low, long high)
{
    map->marked = 1, map->mark_low = low, map->mark_high = high;
}

static void free_type(MPI_Datatype *type)
{
    MPI_Count n;
    int combiner;
    OK(MPI_Type_get_envelope_c(*type, &n, &n, &n, &n, &combiner));
    if (combiner != MPI_COMBINER_NAMED) OK(MPI_Type_free(type));
}

static void end_type(struct made *made)
{
    free(made->map.entries);
    free_type(&made->type);
}

/* The elements of an array of which this process owns those that `owned` says, in memory order. */
static void add_elements(struct map *map, const struct map *old, int dims, const int *sizes, int order, char owned[3][16])
{
    int total = 1;
    for (int d = 0; d < dims; d++) total *= sizes[d];
    for (int e = 0; e < total; e++) {
        int rest = e, inside = 1;
        for (int k = 0; k < dims; k++) {
            int d = order == MPI_ORDER_C ? dims - 1 - k : k;
            inside &= owned[d][rest % sizes[d]];
            rest /= sizes[d];
        }
        if (inside) add(map, old, e * extent(old), 1);
    }
    mark(map, 0, total * extent(old));
}

static void draw_subarray(const struct made *old, struct made *new)
{
    int dims = 1 + draw(3), sizes[3], parts[3], starts[3], order = draw(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    char owned[3][16];
    for (int d = 0; d < dims; d++) {
        sizes[d] = 1 + draw(5), parts[d] = 1 + draw(sizes[d]), starts[d] = draw(sizes[d] - parts[d] + 1);
        for (int i = 0; i < sizes[d]; i++) owned[d][i] = i >= starts[d] && i < starts[d] + parts[d];
    }
    OK(MPI_Type_create_subarray(dims, sizes, parts, starts, order, old->type, &new->type));
    add_elements(&new->map, &old->map, dims, sizes, order, owned);
}

static void draw_darray(const struct made *old, struct made *new)
{
    int dims = 1 + draw(3), sizes[3], kinds[3], arguments[3], grid[3], processes = 1, order = draw(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    char owned[3][16];
    for (int d = 0; d < dims; d++) {
        static const int all[] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
        sizes[d] = 1 + draw(7), kinds[d] = all[draw(3)], arguments[d] = MPI_DISTRIBUTE_DFLT_DARG;
        grid[d] = kinds[d] == MPI_DISTRIBUTE_NONE ? 1 : 1 + draw(3);
        processes *= grid[d];
        if (kinds[d] == MPI_DISTRIBUTE_CYCLIC && draw(2)) arguments[d] = 1 + draw(3);
        if (kinds[d] == MPI_DISTRIBUTE_BLOCK && draw(2)) arguments[d] = (sizes[d] + grid[d] - 1) / grid[d] + draw(2);
    }
    int process = draw(processes), rest = process;
    for (int d = dims - 1; d >= 0; d--) {
        int mine = rest % grid[d], block = arguments[d];
        rest /= grid[d];
        if (block == MPI_DISTRIBUTE_DFLT_DARG) block = kinds[d] == MPI_DISTRIBUTE_CYCLIC ? 1 : (sizes[d] + grid[d] - 1) / grid[d];
        for (int i = 0; i < sizes[d]; i++) owned[d][i] = kinds[d] == MPI_DISTRIBUTE_NONE || i / block % grid[d] == mine;
    }
    OK(MPI_Type_create_darray(processes, process, dims, sizes, kinds, arguments, grid, order, old->type, &new->type));
    add_elements(&new->map, &old->map, dims, sizes, order, owned);
}

/* Blocks of one old type at displacements: by the constructors for ints, or by those for large counts. */
static void draw_blocks(const struct made *old, int unit, struct made *new)
{
    int n = draw(5), length = draw(4), in_bytes = draw(2), same = draw(2), large = draw(2);
    int lengths[4], at[4];
    MPI_Aint far[4];
    MPI_Count many[4], farther[4];
    for (int i = 0; i < n; i++) {
        lengths[i] = same ? length : draw(4), at[i] = between(-3, 9);
        far[i] = (MPI_Aint)between(-30, 90) * unit;
        many[i] = lengths[i], farther[i] = in_bytes ? far[i] : at[i];
        add(&new->map, &old->map, in_bytes ? far[i] : at[i] * extent(&old->map), lengths[i]);
    }
    MPI_Datatype *type = &new->type;
    if (same && large && in_bytes) OK(MPI_Type_create_hindexed_block_c(n, length, farther, old->type, type));
    else if (same && large) OK(MPI_Type_create_indexed_block_c(n, length, farther, old->type, type));
    else if (same && in_bytes) OK(MPI_Type_create_hindexed_block(n, length, far, old->type, type));
    else if (same) OK(MPI_Type_create_indexed_block(n, length, at, old->type, type));
    else if (large && in_bytes) OK(MPI_Type_create_hindexed_c(n, many, farther, old->type, type));
    else if (large) OK(MPI_Type_indexed_c(n, many, farther, old->type, type));
    else if (in_bytes) OK(MPI_Type_create_hindexed(n, lengths, far, old->type, type));
    else OK(MPI_Type_indexed(n, lengths, at, old->type, type));
}

/* A random type of elements of one basic type, or of any, at displacements that are multiples of `unit`. */
static struct made draw_type(int depth, int basic)
{
    struct made new = {0};
    if (depth == 0) {
        int which = basic == ANY ? draw(BASICS) : basic;
        struct map one = {.n = 1, .entries = &(struct entry){0, which}};
        new.type = basics[which];
        add(&new.map, &one, 0, 1);
        return new;
    }
    struct made old = draw_type(depth - 1, basic);
    const int unit = basic == ANY ? 1 : size_of[basic], count = draw(5), length = draw(4);
    const long step = extent(&old.map);
    switch (draw(9)) {
    case 0:
        OK(draw(2) ? MPI_Type_contiguous(count, old.type, &new.type) : MPI_Type_contiguous_c(count, old.type, &new.type));
        add(&new.map, &old.map, 0, count);
        break;
    case 1: {
        int stride = between(-5, 7);
        OK(draw(2) ? MPI_Type_vector(count, length, stride, old.type, &new.type) : MPI_Type_vector_c(count, length, stride, old.type, &new.type));
        for (int i = 0; i < count; i++) add(&new.map, &old.map, i * stride * step, length);
        break;
    }
    case 2: {
        MPI_Aint stride = (MPI_Aint)between(-60, 120) * unit;
        OK(draw(2) ? MPI_Type_create_hvector(count, length, stride, old.type, &new.type)
                   : MPI_Type_create_hvector_c(count, length, stride, old.type, &new.type));
        for (int i = 0; i < count; i++) add(&new.map, &old.map, i * stride, length);
        break;
    }
    case 3: {
        struct made other = draw_type(depth - 1, basic), third = draw_type(0, basic);
        int lengths[] = {count, length, draw(3)};
        MPI_Aint at[] = {(MPI_Aint)between(-40, 90) * unit, (MPI_Aint)between(-40, 90) * unit, (MPI_Aint)between(-40, 90) * unit};
        MPI_Datatype types[] = {old.type, other.type, third.type};
        const struct made *parts[] = {&old, &other, &third};
        OK(MPI_Type_create_struct(3, lengths, at, types, &new.type));
        for (int i = 0; i < 3; i++) add(&new.map, &parts[i]->map, at[i], lengths[i]);
        end_type(&other), end_type(&third);
        break;
    }
    case 4: draw_subarray(&old, &new); break;
    case 5: draw_darray(&old, &new); break;
    case 6: {
        MPI_Aint low = (MPI_Aint)between(-20, 20) * unit, span = (MPI_Aint)between(-10, 150) * unit;
        OK(MPI_Type_create_resized(old.type, low, span, &new.type));
        add(&new.map, &old.map, 0, 1);
        mark(&new.map, low, low + span);
        break;
    }
    case 7:
        OK(MPI_Type_dup(old.type, &new.type));
        add(&new.map, &old.map, 0, 1);
        break;
    default: draw_blocks(&old, unit, &new);
    }
    if (new.map.n > ENTRIES_AT_MOST || data_high(&new.map) - data_low(&new.map) > 60000) {
        end_type(&new);
        return old;
    }
    end_type(&old);
    return new;
}

/* The same type, by what MPI_Type_get_contents tells. */
static MPI_Datatype rebuilt(MPI_Datatype type)
{
    int combiner;
    MPI_Count n_ints, n_addresses, n_counts, n_types;
    OK(MPI_Type_get_envelope_c(type, &n_ints, &n_addresses, &n_counts, &n_types, &combiner));
    if (combiner == MPI_COMBINER_NAMED) return type;
    int *ints = malloc((size_t)(n_ints + n_counts + 1) * sizeof *ints), *i = ints + 1;
    MPI_Aint *at = malloc((size_t)(n_addresses + n_counts + 1) * sizeof *at);
    MPI_Count *counts = malloc((size_t)(n_counts + 1) * sizeof *counts), *c = counts + 1;
    MPI_Datatype *types = malloc((size_t)(n_types + 1) * sizeof *types), new;
    if (n_counts) OK(MPI_Type_get_contents_c(type, n_ints, n_addresses, n_counts, n_types, ints, at, counts, types));
    else OK(MPI_Type_get_contents(type, (int)n_ints, (int)n_addresses, (int)n_types, ints, at, types));
    MPI_Datatype *olds = malloc((size_t)(n_types + 1) * sizeof *olds), old;
    for (MPI_Count t = 0; t < n_types; t++) olds[t] = rebuilt(types[t]);
    old = olds[0];
    const int n = n_ints ? ints[0] : 0;
    switch (combiner) {
    case MPI_COMBINER_DUP: OK(MPI_Type_dup(old, &new)); break;
    case MPI_COMBINER_CONTIGUOUS: OK(n_counts ? MPI_Type_contiguous_c(counts[0], old, &new) : MPI_Type_contiguous(n, old, &new)); break;
    case MPI_COMBINER_VECTOR: OK(n_counts ? MPI_Type_vector_c(c[-1], c[0], c[1], old, &new) : MPI_Type_vector(n, i[0], i[1], old, &new)); break;
    case MPI_COMBINER_HVECTOR:
        OK(n_counts ? MPI_Type_create_hvector_c(c[-1], c[0], c[1], old, &new) : MPI_Type_create_hvector(n, i[0], at[0], old, &new));
        break;
    case MPI_COMBINER_INDEXED: OK(n_counts ? MPI_Type_indexed_c(c[-1], c, c + c[-1], old, &new) : MPI_Type_indexed(n, i, i + n, old, &new)); break;
    case MPI_COMBINER_HINDEXED:
        OK(n_counts ? MPI_Type_create_hindexed_c(c[-1], c, c + c[-1], old, &new) : MPI_Type_create_hindexed(n, i, at, old, &new));
        break;
    case MPI_COMBINER_INDEXED_BLOCK:
        OK(n_counts ? MPI_Type_create_indexed_block_c(c[-1], c[0], c + 1, old, &new) : MPI_Type_create_indexed_block(n, i[0], i + 1, old, &new));
        break;
    case MPI_COMBINER_HINDEXED_BLOCK:
        OK(n_counts ? MPI_Type_create_hindexed_block_c(c[-1], c[0], c + 1, old, &new) : MPI_Type_create_hindexed_block(n, i[0], at, old, &new));
        break;
    case MPI_COMBINER_STRUCT: OK(MPI_Type_create_struct(n, i, at, olds, &new)); break;
    case MPI_COMBINER_SUBARRAY: OK(MPI_Type_create_subarray(n, i, i + n, i + 2 * n, i[3 * n], old, &new)); break;
    case MPI_COMBINER_DARRAY: OK(MPI_Type_create_darray(n, i[0], i[1], i + 2, i + 2 + i[1], i + 2 + 2 * i[1], i + 2 + 3 * i[1], i[2 + 4 * i[1]], old, &new)); break;
    case MPI_COMBINER_RESIZED: OK(MPI_Type_create_resized(old, at[0], at[1], &new)); break;
    default: MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (MPI_Count t = 0; t < n_types; t++) {
        if (olds[t] != types[t]) free_type(&olds[t]);
        free_type(&types[t]);
    }
    free(ints), free(at), free(counts), free(types), free(olds);
    return new;
}

/* Sizes and bounds are what the model says. */
static void check_bounds(const struct made *made)
{
    MPI_Count size;
    MPI_Aint low, span;
    OK(MPI_Type_size_c(made->type, &size));
    SAME(size, bytes(&made->map));
    OK(MPI_Type_get_extent(made->type, &low, &span));
    SAME(low, lb(&made->map));
    SAME(span, extent(&made->map));
    OK(MPI_Type_get_true_extent(made->type, &low, &span));
    SAME(low, data_low(&made->map));
    SAME(span, data_high(&made->map) - data_low(&made->map));
}

#endif
