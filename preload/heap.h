/* heap.h: the table that the MPI library hands to the preloaded library. src/heap/malloc.rs has the same as `Table`. */
#ifndef PERUSAL_HEAP_H
#define PERUSAL_HEAP_H

#include <stddef.h>
#include <stdint.h>

enum { PERUSAL_HEAP_VERSION = 1 };

struct perusal_heap {
    uint32_t version;
    /* Where blocks lie. */
    char *base;
    size_t len;
    /* Bytes from which a block comes from the shared heap. */
    size_t from;
    /* A block of `bytes` bytes, aligned to a power of two; all zero if `zeroed`. NULL: there is none. */
    void *(*take)(size_t bytes, size_t align, int zeroed);
    /* 0: there is no such block. */
    int (*give)(void *block);
    /* Bytes that a block has room for; 0: there is no such block. */
    size_t (*bytes)(void *block);
    /* Resizes a block in its place; 0: that is impossible. */
    int (*resize)(void *block, size_t bytes);
};

/* Takes the table, which is there to the end of the process.
 * Non-zero if it is of the version that this library knows. */
int perusal_heap_serve(const struct perusal_heap *heap);

#endif
