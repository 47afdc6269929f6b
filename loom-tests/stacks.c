/* Keeps the stacks of a model's threads for the next of its runs. loom asks the kernel for each of them anew, a million
 * times over, and most of a model's time went there. Preloaded by .ci/loom;
 * without it the models find the same and take longer.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* loom has five threads at most. */
enum { MOST = 8 };

/* All threads of a model run on the one thread of its test. A guard page stays one. */
static __thread struct stack {
    void *at;
    size_t length;
    int used;
} stacks[MOST];

void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset)
{
    struct stack *free = NULL;
    if (at == NULL && flags == (MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK))
        for (struct stack *stack = stacks; stack < stacks + MOST; stack++) {
            if (stack->at == NULL) free = stack;
            if (stack->at == NULL || stack->used || stack->length != length) continue;
            stack->used = 1;
            return stack->at;
        }
    void *made = (void *)syscall(SYS_mmap, at, length, protection, flags, fd, offset);
    if (free != NULL && made != MAP_FAILED) *free = (struct stack){made, length, 1};
    return made;
}

int munmap(void *at, size_t length)
{
    for (struct stack *stack = stacks; stack < stacks + MOST; stack++)
        if (stack->used && stack->at == at && stack->length == length) return stack->used = 0;
    return syscall(SYS_munmap, at, length);
}
