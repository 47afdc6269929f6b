/* probe.c: see probe.h. */
#define _GNU_SOURCE
#include "probe.h"
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct probe_page *probe_open(const char *path)
{
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return NULL;
    void *at = mmap(NULL, sizeof(struct probe_page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return at == MAP_FAILED ? NULL : at;
}

unsigned probe_wait(_Atomic unsigned *word, unsigned seen)
{
    unsigned now;
    while ((now = atomic_load(word)) == seen) syscall(SYS_futex, word, FUTEX_WAIT, seen, NULL, NULL, 0);
    return now;
}

void probe_tell(_Atomic unsigned *word)
{
    atomic_fetch_add(word, 1);
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

double probe(struct probe_page *page, unsigned ranks)
{
    unsigned seen = atomic_load(&page->answered);
    if (atomic_fetch_add(&page->arrived, 1) + 1 == ranks) {
        atomic_store(&page->arrived, 0);
        probe_tell(&page->asked);
    }
    probe_wait(&page->answered, seen);
    return page->latest;
}
