/* heap.c: libperusal-heap.so, preloaded by `mpiexec --share-heap`. It interposes malloc: a large block comes from the
 * job's shared heap, if the MPI library has offered it, and any other block from the next malloc, which is the C
 * library's or another that the program brings along. The address of a block says which of the two must free it.
 *
 * Until the next malloc is known, while the dynamic linker looks for it, a small piece of static memory serves; it is
 * never freed. The interposed functions are called through `next` only. */
#include "heap.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* The next definitions of the interposed functions. */
static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*memalign)(size_t, size_t);
    void (*free)(void *);
    size_t (*malloc_usable_size)(void *);
} next;

enum { UNKNOWN, SEARCHING, KNOWN };
static atomic_int search = UNKNOWN;

/* The memory that serves while they are looked up. */
static _Alignas(16) char early[64 << 10];
static atomic_size_t early_end;

static _Atomic(const struct perusal_heap *) offered;

static int is_early(const void *block) { return (uintptr_t)block - (uintptr_t)early < sizeof early; }

/* Zeroed, and preceded by its size. */
static void *take_early(size_t bytes, size_t align)
{
    if (align < 16) align = 16;
    size_t room = bytes + align + 16, at = bytes > sizeof early ? sizeof early : atomic_fetch_add(&early_end, room);
    if (at > sizeof early || room > sizeof early - at) {
        errno = ENOMEM;
        return NULL;
    }
    uintptr_t block = ((uintptr_t)early + at + 16 + align - 1) & ~(uintptr_t)(align - 1);
    ((size_t *)block)[-1] = bytes;
    return (void *)block;
}

/* Whether `next` may be called; if not, a thread looks the functions up:
 * this one, within dlsym, or another one at the program's start. */
static int known(void)
{
    if (__builtin_expect(atomic_load_explicit(&search, memory_order_acquire) == KNOWN, 1)) return 1;
    int unknown = UNKNOWN;
    if (!atomic_compare_exchange_strong(&search, &unknown, SEARCHING)) return unknown == KNOWN;
    *(void **)&next.malloc = dlsym(RTLD_NEXT, "malloc");
    *(void **)&next.calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&next.realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&next.memalign = dlsym(RTLD_NEXT, "memalign");
    *(void **)&next.free = dlsym(RTLD_NEXT, "free");
    *(void **)&next.malloc_usable_size = dlsym(RTLD_NEXT, "malloc_usable_size");
    atomic_store_explicit(&search, KNOWN, memory_order_release);
    return 1;
}

__attribute__((constructor)) static void begin(void) { known(); }

EXPORT int perusal_heap_serve(const struct perusal_heap *heap)
{
    if (heap->version != PERUSAL_HEAP_VERSION || !known() || !next.malloc_usable_size) return 0;
    atomic_store_explicit(&offered, heap, memory_order_release);
    return 1;
}

static const struct perusal_heap *heap_for(size_t bytes)
{
    const struct perusal_heap *heap = atomic_load_explicit(&offered, memory_order_acquire);
    return heap && bytes >= heap->from ? heap : NULL;
}

static const struct perusal_heap *heap_of(const void *block)
{
    const struct perusal_heap *heap = atomic_load_explicit(&offered, memory_order_acquire);
    return heap && (uintptr_t)block - (uintptr_t)heap->base < heap->len ? heap : NULL;
}

/* A shared block; NULL, and errno as it was, if there is none. */
static void *take(size_t bytes, size_t align, int zeroed)
{
    const struct perusal_heap *heap = heap_for(bytes);
    if (!heap) return NULL;
    int before = errno;
    void *block = heap->take(bytes, align, zeroed);
    errno = before;
    return block;
}

static void invalid(const char *what)
{
    static const char end[] = ": no block of the shared heap begins at this address, or it has been freed already\n";
    if (write(2, what, strlen(what)) >= 0 && write(2, end, sizeof end - 1) >= 0) abort();
    abort();
}

EXPORT void *malloc(size_t bytes)
{
    void *block = take(bytes, 16, 0);
    if (block) return block;
    return known() ? next.malloc(bytes) : take_early(bytes, 16);
}

EXPORT void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    void *block = take(bytes, 16, 1);
    if (block) return block;
    return known() ? next.calloc(count, size) : take_early(bytes, 16);
}

EXPORT void free(void *block)
{
    const struct perusal_heap *heap = heap_of(block);
    if (heap) {
        int before = errno;
        if (!heap->give(block)) invalid("free()");
        errno = before;
    } else if (block && !is_early(block) && known()) {
        next.free(block);
    }
}

EXPORT size_t malloc_usable_size(void *block)
{
    const struct perusal_heap *heap = heap_of(block);
    if (heap) return heap->bytes(block);
    if (is_early(block)) return ((size_t *)block)[-1];
    return block && known() ? next.malloc_usable_size(block) : 0;
}

/* Returns a new block with as much of the old one's content as fits. */
static void *move(void *block, size_t had, size_t bytes)
{
    void *other = malloc(bytes);
    if (!other) return NULL;
    memcpy(other, block, had < bytes ? had : bytes);
    free(block);
    return other;
}

EXPORT void *realloc(void *block, size_t bytes)
{
    if (!block) return malloc(bytes);
    const struct perusal_heap *heap = heap_of(block);
    if (heap) {
        if (bytes == 0) {
            free(block);
            return NULL;
        }
        int before = errno;
        size_t had = heap->bytes(block);
        if (!had) invalid("realloc()");
        int resized = bytes >= heap->from && heap->resize(block, bytes);
        errno = before;
        return resized ? block : move(block, had, bytes);
    }
    if (is_early(block)) return move(block, ((size_t *)block)[-1], bytes);
    if (!known()) {
        errno = ENOMEM;
        return NULL;
    }
    if (heap_for(bytes)) {
        /* A block that becomes large moves to the shared heap; one that was large already was made before the heap,
         * or when it was exhausted. */
        size_t had = next.malloc_usable_size(block);
        void *other = had < heap_for(bytes)->from ? take(bytes, 16, 0) : NULL;
        if (other) {
            memcpy(other, block, had < bytes ? had : bytes);
            next.free(block);
            return other;
        }
    }
    return next.realloc(block, bytes);
}

EXPORT void *reallocarray(void *block, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(block, bytes);
}

EXPORT void *memalign(size_t align, size_t bytes)
{
    /* As the C library does: the next power of two. */
    size_t power = 16;
    while (power < align && power <= SIZE_MAX / 4) power *= 2;
    void *block = take(bytes, power, 0);
    if (block) return block;
    return known() && next.memalign ? next.memalign(align, bytes) : take_early(bytes, power);
}

EXPORT void *aligned_alloc(size_t align, size_t bytes)
{
    if (align == 0 || align & (align - 1)) {
        errno = EINVAL;
        return NULL;
    }
    return memalign(align, bytes);
}

EXPORT int posix_memalign(void **block, size_t align, size_t bytes)
{
    if (align < sizeof(void *) || align & (align - 1)) return EINVAL;
    int before = errno;
    void *found = memalign(align, bytes);
    errno = before;
    if (!found) return ENOMEM;
    *block = found;
    return 0;
}

EXPORT void *valloc(size_t bytes) { return memalign((size_t)sysconf(_SC_PAGESIZE), bytes); }

EXPORT void *pvalloc(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + page - 1) & ~(page - 1);
    if (whole < bytes) {
        errno = ENOMEM;
        return NULL;
    }
    return memalign(page, whole);
}

/* C23, where the C library has them: the sizes only say what is known. */
EXPORT void free_sized(void *block, size_t bytes)
{
    (void)bytes;
    free(block);
}

EXPORT void free_aligned_sized(void *block, size_t align, size_t bytes)
{
    (void)align;
    (void)bytes;
    free(block);
}
