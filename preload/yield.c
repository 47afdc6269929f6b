/* yield.c: libperusal-yield.so, preloaded where MPICH runs over perusal's provider of libfabric. MPICH yields after
 * each poll of a wait, which takes longer than a short message does. Where the provider has said that nobody is known
 * to need the CPU, the yield that follows its poll is left out; every other yield of the program is the kernel's. */
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* 1: the next yield is for nothing. The provider finds it by its name. */
EXPORT atomic_uint perusal_skip_yield;

EXPORT int sched_yield(void)
{
    /* A hint: threads that poll and yield at once take each other's, and one of them then yields, or does not. */
    if (atomic_load_explicit(&perusal_skip_yield, memory_order_relaxed) != 0) {
        atomic_store_explicit(&perusal_skip_yield, 0, memory_order_relaxed);
        return 0;
    }
    return (int)syscall(SYS_sched_yield);
}
