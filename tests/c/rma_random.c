/* Random one-sided operations of all ranks at once against a sequential oracle: every kind of memory, epoch, operation,
 * type and layout, also through two windows over the same memory. All ranks draw the same plan from the seed (RMA_SEED,
 * RMA_ROUNDS), and each applies it to a model of everybody's memory. Some elements are one rank's in a round: what it
 * fetches, and what is there at the end, is known. Others are everybody's, by operations that commute: their sums must
 * be right, tickets are drawn once, and no value is torn.
 * RANKS: 1 2 3
 */
#include "check.h"
#include <stddef.h>

#ifndef THREADS
#define THREADS 1
#endif
#ifndef ROUNDS
#define ROUNDS 120
#endif

/* Slots of a member's memory: those that are one rank's, those that are everybody's, one with a ticket counter. */
enum { TYPES = 12, OWNED = TYPES, COMMON = TYPES, TICKET = OWNED + COMMON, SLOTS, SMALL = 272, LARGE = 20400, OPS = 160, RANKS_AT_MOST = 64 };
enum kind { ALLOCATED, SHARED, APART, ALLOC_MEM, PRIVATE, DYNAMIC, KINDS };
enum epoch { FENCE, PSCW, LOCK, LOCK_ALL, EPOCHS, HELD };
enum what { PUT, GET, ACC, GACC, FOP, CAS, STORE, WHATS };
enum layout { PLAIN, STRIDED, REVERSED, LAYOUTS };

static const MPI_Datatype types[TYPES] = {MPI_LONG, MPI_INT, MPI_UNSIGNED_CHAR, MPI_C_DOUBLE_COMPLEX, MPI_DOUBLE, MPI_SHORT,
    MPI_FLOAT, MPI_LONG_DOUBLE, MPI_DOUBLE_INT, MPI_2INT, MPI_SHORT_INT, MPI_LONG_INT};
struct double_int { double value; int index; };
struct two_int { int value, index; };
struct short_int { short value; int index; };
struct long_int { long value; int index; };
static const int size_of[TYPES] = {8, 4, 1, 16, 8, 2, 4, 16, 16, 8, 8, 16};

struct op {
    int origin, target, window, slot, first, count;
    enum what what;
    MPI_Op op;
    enum layout from, to;
    unsigned long long seed;
    int as_request, right; /* `right`: a compare-and-swap compares with what is there */
    unsigned char *data, *result, *expected;
};

struct area {
    enum kind kind;
    MPI_Win win[2];
    int unit[2], bytes;
    unsigned char *own, *piece[2];
    unsigned char **mapped; /* each member's memory as this process has it, or NULL */
    MPI_Aint *address;      /* of the two pieces of each member (dynamic) */
};

struct worker {
    int rank, size, origin, origins, thread;
    unsigned long long shared, own;
    MPI_Comm comm;
    struct area *areas;
    unsigned char *model[KINDS];
    struct op plan[OPS];
    int ops, tickets;
    long first_ticket;
    int drawn[RANKS_AT_MOST * OPS]; /* how often each ticket of each counter was fetched */
    char dirty[RANKS_AT_MOST][SLOTS];
    MPI_Request requests[OPS];
    int open;
};

static unsigned long long draw_word(unsigned long long *random)
{
    unsigned long long z = *random += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

static int draw(unsigned long long *random, int below) { return (int)((draw_word(random) >> 16) % (unsigned)below); }

static int type_of(int slot) { return slot == TICKET ? 0 : slot % TYPES; }
static int bytes_of(int slot) { return slot % 5 == 4 ? LARGE : SMALL; }
static int elements_of(int slot) { return bytes_of(slot) / size_of[type_of(slot)]; }
static int is_pair(int type) { return type >= 8; }

static int offset_of(int slot)
{
    int at = 0;
    for (int i = 0; i < slot; i++) at += bytes_of(i);
    return at;
}

/* A dynamic window's second piece begins with this slot. */
enum { CUT = SLOTS / 2, BYTES = SLOTS / 5 * LARGE + (SLOTS - SLOTS / 5) * SMALL };

/* Writes a value that every operation takes and whose sums are exact.
 * The halves of a complex number cancel each other out. */
static void set(int type, unsigned char *at, int value)
{
    switch (type) {
    case 0: *(long *)at = value; break;
    case 1: *(int *)at = value; break;
    case 2: *at = (unsigned char)value; break;
    case 3: ((double *)at)[0] = value, ((double *)at)[1] = -value; break;
    case 4: *(double *)at = value; break;
    case 5: *(short *)at = (short)value; break;
    case 6: *(float *)at = (float)value; break;
    case 7: *(long double *)at = value; break;
    case 8: ((struct double_int *)at)->value = value % 50, ((struct double_int *)at)->index = value; break;
    case 9: ((struct two_int *)at)->value = value % 50, ((struct two_int *)at)->index = value; break;
    case 10: ((struct short_int *)at)->value = (short)(value % 50), ((struct short_int *)at)->index = value; break;
    default: ((struct long_int *)at)->value = value % 50, ((struct long_int *)at)->index = value;
    }
}

/* Whether two values are equal, whatever is in their gaps. */
static int same(int type, const unsigned char *a, const unsigned char *b)
{
#define PAIR(of) (((const of *)a)->value == ((const of *)b)->value && ((const of *)a)->index == ((const of *)b)->index)
    switch (type) {
    case 7: return *(const long double *)a == *(const long double *)b;
    case 8: return PAIR(struct double_int);
    case 9: return PAIR(struct two_int);
    case 10: return PAIR(struct short_int);
    case 11: return PAIR(struct long_int);
    default: return !memcmp(a, b, (size_t)size_of[type]);
    }
}

static int place(enum layout layout, int i, int count)
{
    return layout == STRIDED ? i / 2 * 3 + i % 2 : layout == REVERSED ? count - 1 - i : i;
}

/* How many of which type a layout is. */
static int describe(enum layout layout, int type, int count, MPI_Datatype *made)
{
    MPI_Datatype two;
    *made = types[type];
    if (layout == PLAIN) return count;
    if (layout == STRIDED) {
        MPI_Type_contiguous(2, types[type], &two);
        MPI_Type_create_resized(two, 0, 3 * size_of[type], made);
        MPI_Type_free(&two);
    } else {
        int *at = malloc((size_t)count * sizeof *at);
        for (int i = 0; i < count; i++) at[i] = count - 1 - i;
        MPI_Type_create_indexed_block(count, 1, at, types[type], made);
        free(at);
    }
    MPI_Type_commit(made);
    return layout == STRIDED ? count / 2 : 1;
}

static MPI_Op draw_op(unsigned long long *random, int type, int commute)
{
    static const MPI_Op all[] = {MPI_SUM, MPI_MAX, MPI_MIN, MPI_BXOR, MPI_BOR, MPI_BAND};
    static const MPI_Op pair[] = {MPI_MAXLOC, MPI_MINLOC};
    if (!commute && draw(random, 4) == 0) return MPI_REPLACE;
    if (is_pair(type)) return pair[draw(random, 2)];
    if (type == 3) return MPI_SUM;
    return all[draw(random, type == 4 || type == 6 || type == 7 ? 3 : 6)];
}

static unsigned char *element(struct worker *w, int area, const struct op *o, int i)
{
    int at = offset_of(o->slot) + (o->first + place(o->to, i, o->count)) * size_of[type_of(o->slot)];
    return w->model[area] + (size_t)o->target * BYTES + at;
}

/* Applies an operation to the model, and notes what its origin sends and what it must get. */
static void apply(struct worker *w, int area, struct op *o)
{
    int type = type_of(o->slot), size = size_of[type];
    o->data = malloc((size_t)(2 * o->count + 3) * (size_t)size);
    o->result = malloc((size_t)o->count * (size_t)size);
    o->expected = malloc((size_t)o->count * (size_t)size);
    memset(o->data, 0, (size_t)(2 * o->count + 3) * (size_t)size);
    memset(o->result, 0xEE, (size_t)o->count * (size_t)size);
    for (int i = 0; i < o->count; i++) {
        unsigned char *there = element(w, area, o, i), *data = o->data + place(o->from, i, o->count) * size;
        set(type, data, o->slot == TICKET ? 1 : draw(&o->seed, 100));
        memcpy(o->expected + i * size, there, (size_t)size);
        if (o->what == GET || (o->what == GACC && o->op == MPI_NO_OP) || (o->what == CAS && !o->right)) continue;
        if (o->slot != TICKET && (o->what == PUT || o->what == STORE || o->what == CAS || o->op == MPI_REPLACE)) memcpy(there, data, (size_t)size);
        else OK(MPI_Reduce_local(data, there, 1, types[type], o->op));
    }
}

/* Draws the operations of a round. `single`: those alone that one instruction performs. */
static void draw_plan(struct worker *w, int area, enum epoch epoch, int single)
{
    unsigned long long *random = &w->shared;
    int passive = epoch == LOCK || epoch == LOCK_ALL || epoch == HELD;
    int owner[RANKS_AT_MOST][OWNED], used[RANKS_AT_MOST][OWNED] = {{0}};
    MPI_Op common[COMMON];
    for (int t = 0; t < w->size; t++)
        for (int s = 0; s < OWNED; s++) owner[t][s] = draw(random, w->origins);
    for (int s = 0; s < COMMON; s++) common[s] = draw_op(random, type_of(OWNED + s), 1);
    w->ops = w->tickets = 0;
    memset(w->drawn, 0, sizeof w->drawn);
    for (int n = 0; n < OPS; n++) {
        struct op o = {0}, *kept = &w->plan[w->ops];
        o.slot = draw(random, 3) == 0 ? TICKET : draw(random, OWNED + COMMON);
        int type = type_of(o.slot), owned = o.slot < OWNED, accumulates, room = elements_of(o.slot);
        o.target = draw(random, w->size);
        o.origin = owned ? owner[o.target][o.slot] : draw(random, w->origins);
        o.window = draw(random, 2);
        o.what = owned ? draw(random, WHATS) : o.slot == TICKET && passive ? ACC + draw(random, 4) : ACC + draw(random, 3);
        o.op = o.slot == TICKET ? MPI_SUM : owned ? draw_op(random, type, 0) : common[o.slot - OWNED];
        o.count = draw(random, 2) ? 1 : 1 + draw(random, room > 64 && draw(random, 3) ? 64 : room);
        o.from = draw(random, LAYOUTS), o.to = draw(random, LAYOUTS);
        o.seed = draw_word(random), o.as_request = draw(random, 2), o.right = draw(random, 2);
        if (o.slot != TICKET && o.what == GACC && draw(random, 3) == 0) o.op = MPI_NO_OP;
        if (o.what == CAS || o.what == FOP || o.slot == TICKET || single) o.count = 1;
        if (o.count == 1) o.from = o.to = PLAIN;
        if (o.to == STRIDED || o.from == STRIDED) o.count += o.count % 2;
        int span = place(o.to, o.count - 1, o.count) + 1;
        if (o.to == REVERSED) span = o.count;
        if (span > room) o.count = 1, o.from = o.to = PLAIN, span = 1;
        o.first = o.slot == TICKET ? 0 : draw(random, room - span + 1);
        accumulates = o.what == ACC || o.what == GACC || o.what == FOP || o.what == CAS;
        /* What the standard does not define, or this program cannot do, is left out. */
        if (o.what == CAS && (type > 5 || type == 3 || type == 4)) continue;
        if (o.what == FOP && is_pair(type) && single) continue;
        if (single && (is_pair(type) || size_of[type] > 8)) continue;
        if (o.what == STORE && (!passive || w->areas[area].mapped == NULL)) continue;
        if (owned && !passive) {
            int before = used[o.target][o.slot];
            if (before == 2 || (before == 1 && !accumulates)) continue;
            used[o.target][o.slot] = accumulates ? 1 : 2;
        }
        if (o.slot == TICKET) w->tickets++, o.right = 1;
        *kept = o;
        apply(w, area, kept);
        w->ops++;
    }
}

static MPI_Aint disp_of(const struct area *a, const struct op *o)
{
    int at = offset_of(o->slot) + o->first * size_of[type_of(o->slot)];
    if (a->kind != DYNAMIC) return at / a->unit[o->window];
    return o->slot < CUT ? a->address[2 * o->target] + at : a->address[2 * o->target + 1] + at - offset_of(CUT);
}

/* What came is what must have come. */
static void check_result(struct worker *w, const struct op *o)
{
    int type = type_of(o->slot), size = size_of[type], wrong = 0;
    if (o->what == PUT || o->what == ACC || o->what == STORE) return;
    if (o->slot < OWNED) {
        for (int i = 0; i < o->count; i++) wrong += !same(type, o->result + i * size, o->expected + i * size);
    } else if (o->slot == TICKET) {
        long ticket = *(long *)o->result - w->first_ticket;
        CHECK(ticket >= 0 && ticket < w->tickets);
        if (ticket >= 0 && ticket < w->tickets) w->drawn[o->target * OPS + ticket]++;
    } else if (type == 3) {
        for (int i = 0; i < o->count; i++) wrong += ((double *)o->result)[2 * i] != -((double *)o->result)[2 * i + 1];
    }
    if (wrong) fprintf(stderr, "operation %d, slot %d, %d of %d elements\n", o->what, o->slot, wrong, o->count);
    SAME(wrong, 0);
}

static void perform(struct worker *w, struct area *a, struct op *o, int passive)
{
    int type = type_of(o->slot), n = o->count;
    MPI_Datatype from, to, base = types[type];
    MPI_Aint disp = disp_of(a, o);
    MPI_Win win = a->win[o->window];
    unsigned char compare[16] = {0};
    int as_request = passive && o->as_request, there = describe(o->to, type, n, &to), here = describe(o->from, type, n, &from);
    MPI_Request *request = &w->requests[w->open];
    switch (o->what) {
    case PUT:
        if (as_request) OK(MPI_Rput(o->data, here, from, o->target, disp, there, to, win, request));
        else OK(MPI_Put(o->data, here, from, o->target, disp, there, to, win));
        break;
    case GET:
        if (as_request) OK(MPI_Rget(o->result, n, base, o->target, disp, there, to, win, request));
        else OK(MPI_Get(o->result, n, base, o->target, disp, there, to, win));
        break;
    case ACC:
        if (as_request) OK(MPI_Raccumulate(o->data, here, from, o->target, disp, there, to, o->op, win, request));
        else OK(MPI_Accumulate(o->data, here, from, o->target, disp, there, to, o->op, win));
        break;
    case GACC:
        if (as_request) OK(MPI_Rget_accumulate(o->data, here, from, o->result, n, base, o->target, disp, there, to, o->op, win, request));
        else OK(MPI_Get_accumulate(o->data, here, from, o->result, n, base, o->target, disp, there, to, o->op, win));
        break;
    case FOP:
        as_request = 0;
        OK(MPI_Fetch_and_op(o->data, o->result, base, o->target, disp, o->op, win));
        break;
    case CAS:
        as_request = 0;
        if (o->slot == TICKET) { /* a ticket by compare-and-swap: again, until nobody else was faster */
            long old = w->first_ticket, seen, next;
            for (;; old = seen) {
                next = old + 1;
                OK(MPI_Compare_and_swap(&next, &old, &seen, base, o->target, disp, win));
                OK(MPI_Win_flush(o->target, win));
                if (seen == old) break;
            }
            *(long *)o->result = old;
            break;
        }
        memcpy(compare, o->expected, (size_t)size_of[type]);
        if (!o->right) compare[0] ^= 1;
        OK(MPI_Compare_and_swap(o->data, compare, o->result, base, o->target, disp, win));
        break;
    default:
        as_request = 0;
        for (int i = 0; i < n; i++) {
            size_t size = (size_t)size_of[type], at = (size_t)(o->first + place(o->to, i, n)) * size;
            memcpy(a->mapped[o->target] + offset_of(o->slot) + at, o->data + (size_t)place(o->from, i, n) * size, size);
        }
        OK(MPI_Win_sync(win));
    }
    w->open += as_request;
    if (from != base) MPI_Type_free(&from);
    if (to != base) MPI_Type_free(&to);
}

/* All operations that this origin has begun are complete at their targets. */
static void flush(struct worker *w, struct area *a, int target)
{
    OK(MPI_Waitall(w->open, w->requests, MPI_STATUSES_IGNORE));
    w->open = 0;
    for (int i = 0; i < 2; i++)
        if (draw(&w->own, 2)) OK(MPI_Win_flush_all(a->win[i]));
        else
            for (int t = 0; t < w->size; t++)
                if (t == target || w->dirty[t][TICKET]) OK(MPI_Win_flush(t, a->win[i]));
    memset(w->dirty, 0, sizeof w->dirty);
}

/* Performs what is this origin's in an epoch at all targets. */
static void perform_all(struct worker *w, struct area *a, int passive)
{
    for (int n = 0; n < w->ops; n++) {
        struct op *o = &w->plan[n];
        if (o->origin != w->origin) continue;
        if (passive && (w->dirty[o->target][o->slot] || draw(&w->own, 5) == 0)) flush(w, a, o->target);
        perform(w, a, o, passive);
        /* Of the last slot: there is something to flush at this target. */
        w->dirty[o->target][o->slot] = w->dirty[o->target][TICKET] = 1;
    }
    if (passive) flush(w, a, 0);
}

static void lock_each(struct worker *w, struct area *a)
{
    for (int n = 0; n < w->ops; n++) {
        struct op *o = &w->plan[n];
        MPI_Win win = a->win[o->window];
        if (o->origin != w->origin) continue;
        OK(MPI_Win_lock(draw(&w->own, 2) ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, o->target, 0, win));
        perform(w, a, o, 1);
        OK(MPI_Waitall(w->open, w->requests, MPI_STATUSES_IGNORE));
        w->open = 0;
        OK(MPI_Win_unlock(o->target, win));
    }
}

static void post_and_start(struct worker *w, struct area *a)
{
    int *targets = calloc((size_t)w->size, sizeof(int)), *origins = calloc((size_t)w->size, sizeof(int)), to = 0, from = 0;
    char *is_target = calloc((size_t)w->size, 1), *is_origin = calloc((size_t)w->size, 1);
    MPI_Group world, starts, posts;
    for (int n = 0; n < w->ops; n++) {
        if (w->plan[n].origin == w->rank) is_target[w->plan[n].target] = 1;
        if (w->plan[n].target == w->rank) is_origin[w->plan[n].origin] = 1;
    }
    for (int r = 0; r < w->size; r++) {
        if (is_target[r]) targets[to++] = r;
        if (is_origin[r]) origins[from++] = r;
    }
    OK(MPI_Comm_group(w->comm, &world));
    OK(MPI_Group_incl(world, to, targets, &starts));
    OK(MPI_Group_incl(world, from, origins, &posts));
    for (int i = 0; i < 2; i++) OK(MPI_Win_post(posts, 0, a->win[i]));
    for (int i = 0; i < 2; i++) OK(MPI_Win_start(starts, 0, a->win[i]));
    perform_all(w, a, 0);
    for (int i = 0; i < 2; i++) OK(MPI_Win_complete(a->win[i]));
    for (int i = 0; i < 2; i++) {
        int over = 0;
        if (draw(&w->own, 2)) OK(MPI_Win_wait(a->win[i]));
        else
            while (!over) OK(MPI_Win_test(a->win[i], &over));
    }
    MPI_Group_free(&world), MPI_Group_free(&starts), MPI_Group_free(&posts);
    free(targets), free(origins), free(is_target), free(is_origin);
}

static void play(struct worker *w, struct area *a, enum epoch epoch)
{
    w->open = 0;
    memset(w->dirty, 0, sizeof w->dirty);
    switch (epoch) {
    case FENCE:
        for (int i = 0; i < 2; i++) OK(MPI_Win_fence(draw(&w->own, 2) ? MPI_MODE_NOPRECEDE : 0, a->win[i]));
        perform_all(w, a, 0);
        for (int i = 0; i < 2; i++) OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, a->win[i]));
        break;
    case PSCW: post_and_start(w, a); break;
    case LOCK: lock_each(w, a); break;
    case LOCK_ALL:
        for (int i = 0; i < 2; i++) OK(MPI_Win_lock_all(0, a->win[i]));
        perform_all(w, a, 1);
        for (int i = 0; i < 2; i++) OK(MPI_Win_unlock_all(a->win[i]));
        break;
    default: perform_all(w, a, 1);
    }
    for (int n = 0; n < w->ops; n++)
        if (w->plan[n].origin == w->origin) check_result(w, &w->plan[n]);
}

/* The memory of this rank is what the model says. */
static void check_memory(struct worker *w, struct area *a)
{
    const unsigned char *model = w->model[a->kind] + (size_t)w->rank * BYTES;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w->rank, 0, a->win[0]));
    for (int s = 0; s < SLOTS; s++) {
        int type = type_of(s), size = size_of[type], at = offset_of(s), wrong = 0, first = -1;
        const unsigned char *own = s < CUT ? a->piece[0] + at : a->piece[1] + at - offset_of(CUT);
        for (int i = 0; i < elements_of(s); i++)
            if (!same(type, own + i * size, model + at + i * size)) {
                if (first < 0) first = i;
                wrong++;
            }
        if (wrong) fprintf(stderr, "memory of kind %d, slot %d: %d elements, the first is %d\n", a->kind, s, wrong, first);
        SAME(wrong, 0);
    }
    OK(MPI_Win_unlock(w->rank, a->win[0]));
}

/* Each ticket that was fetched was fetched once. */
static void check_tickets(struct worker *w, int workers)
{
    int all[RANKS_AT_MOST * OPS];
    int tickets = w->size * OPS;
    for (int i = 1; i < workers; i++)
        for (int t = 0; t < tickets; t++) w->drawn[t] += w[i].drawn[t];
    OK(MPI_Allreduce(w->drawn, all, tickets, MPI_INT, MPI_SUM, w->comm));
    for (int t = 0; t < tickets; t++) CHECK(all[t] <= 1);
}

static void forget(struct worker *w)
{
    for (int n = 0; n < w->ops; n++) free(w->plan[n].data), free(w->plan[n].result), free(w->plan[n].expected);
}

/* Every counter begins a round at the same number. */
static void even_tickets(struct worker *w, int area)
{
    long most = 0;
    for (int t = 0; t < w->size; t++) {
        long at = *(long *)(w->model[area] + (size_t)t * BYTES + offset_of(TICKET));
        if (at > most) most = at;
    }
    for (int t = 0; t < w->size; t++) *(long *)(w->model[area] + (size_t)t * BYTES + offset_of(TICKET)) = most;
    w->first_ticket = most;
}

static void set_tickets(struct worker *w, struct area *a)
{
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w->rank, 0, a->win[0]));
    *(long *)(a->piece[1] + offset_of(TICKET) - offset_of(CUT)) = w->first_ticket;
    OK(MPI_Win_unlock(w->rank, a->win[0]));
}

static void make_area(struct worker *w, struct area *a, enum kind kind)
{
    static unsigned char fixed[2][BYTES] __attribute__((aligned(16)));
    static int taken;
    MPI_Info info;
    a->kind = kind;
    a->unit[0] = 1, a->unit[1] = 1;
    MPI_Info_create(&info);
    switch (kind) {
    case ALLOCATED: OK(MPI_Win_allocate(BYTES, 1, info, w->comm, &a->own, &a->win[0])); break;
    case APART: MPI_Info_set(info, "alloc_shared_noncontig", "true"); /* fall through */
    case SHARED: OK(MPI_Win_allocate_shared(BYTES, 1, info, w->comm, &a->own, &a->win[0])); break;
    case ALLOC_MEM: OK(MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &a->own)); break;
    default: a->own = w->thread == 0 && w->rank % 2 && taken < 2 ? fixed[taken++] : malloc(BYTES);
    }
    for (int i = 0; i < 2; i++) {
        if (kind == DYNAMIC) OK(MPI_Win_create_dynamic(info, w->comm, &a->win[i]));
        else if (i == 1 || kind == ALLOC_MEM || kind == PRIVATE)
            OK(MPI_Win_create(a->own, BYTES, 1, info, w->comm, &a->win[i]));
    }
    memset(a->own, 0, BYTES);
    a->piece[0] = a->own, a->piece[1] = a->own + offset_of(CUT);
    if (kind == DYNAMIC) {
        MPI_Aint own[2];
        a->address = malloc(2 * (size_t)w->size * sizeof *a->address);
        OK(MPI_Alloc_mem(BYTES - offset_of(CUT), MPI_INFO_NULL, &a->piece[1]));
        memset(a->piece[1], 0, (size_t)(BYTES - offset_of(CUT)));
        for (int i = 0; i < 2; i++) {
            OK(MPI_Win_attach(a->win[i], a->piece[0], offset_of(CUT)));
            OK(MPI_Win_attach(a->win[i], a->piece[1], BYTES - offset_of(CUT)));
            OK(MPI_Get_address(a->piece[i], &own[i]));
        }
        OK(MPI_Allgather(own, 2, MPI_AINT, a->address, 2, MPI_AINT, w->comm));
    }
    if (kind == SHARED || kind == APART) {
        a->mapped = malloc((size_t)w->size * sizeof *a->mapped);
        for (int r = 0; r < w->size; r++) {
            MPI_Aint bytes;
            int unit;
            OK(MPI_Win_shared_query(a->win[0], r, &bytes, &unit, &a->mapped[r]));
            SAME(bytes, BYTES);
        }
    }
    MPI_Info_free(&info);
    OK(MPI_Barrier(w->comm));
}

static void free_area(struct area *a)
{
    if (a->kind == DYNAMIC) {
        for (int i = 0; i < 4; i++) OK(MPI_Win_detach(a->win[i / 2], a->piece[i % 2]));
    }
    OK(MPI_Win_free(&a->win[1]));
    OK(MPI_Win_free(&a->win[0]));
    if (a->kind == DYNAMIC) OK(MPI_Free_mem(a->piece[1]));
    if (a->kind == ALLOC_MEM) OK(MPI_Free_mem(a->own));
    free(a->address), free(a->mapped);
}

static unsigned long long number(const char *name, unsigned long long otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 0) : otherwise;
}

static void make(struct worker *w, int thread, struct area *areas)
{
    memset(w, 0, sizeof *w);
    MPI_Comm_rank(MPI_COMM_WORLD, &w->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &w->size);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &w->comm));
    w->thread = thread, w->areas = areas;
    w->origin = w->rank, w->origins = w->size;
    w->shared = number("RMA_SEED", 1) * 1000 + (unsigned)thread;
    w->own = w->shared * 1000 + (unsigned)w->rank;
    for (int k = 0; k < KINDS; k++) w->model[k] = calloc((size_t)w->size, BYTES);
}

static void end(struct worker *w)
{
    for (int k = 0; k < KINDS; k++) free(w->model[k]);
    OK(MPI_Comm_free(&w->comm));
}

static void *work(void *argument)
{
    struct worker *w = argument;
    int rounds = (int)number("RMA_ROUNDS", ROUNDS);
    for (int round = 0; round < rounds && failures == 0; round++) {
        int single = round < rounds / 3;
        int kind = draw(&w->shared, single ? ALLOC_MEM : KINDS), epoch = draw(&w->shared, EPOCHS);
        struct area *a = &w->areas[kind];
        even_tickets(w, kind);
        set_tickets(w, a);
        draw_plan(w, kind, epoch, single);
        OK(MPI_Barrier(w->comm));
        play(w, a, epoch);
        OK(MPI_Barrier(w->comm));
        check_memory(w, a);
        check_tickets(w, 1);
        forget(w);
        if (failures) fprintf(stderr, "seed %llu, round %d, memory of kind %d, epoch %d\n", number("RMA_SEED", 1), round, kind, epoch);
        /* All stop together. */
        int all;
        OK(MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, w->comm));
        if (all) break;
    }
    return NULL;
}

#ifndef OWN_MAIN
int main(int argc, char **argv)
{
    static struct area areas[KINDS];
    static struct worker worker;
    MPI_Init(&argc, &argv);
    make(&worker, 0, areas);
    for (int k = 0; k < KINDS; k++) make_area(&worker, &areas[k], k);
    work(&worker);
    for (int k = 0; k < KINDS; k++) free_area(&areas[k]);
    end(&worker);
    MPI_Finalize();
    return verdict();
}
#endif
