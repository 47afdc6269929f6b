/* prober.c: prober PAGE CPU CPU bounces a line between two processors whenever it is asked (probe.h).
 * Ends with the process that started it. */
#define _GNU_SOURCE
#include "probe.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

/* Round trips in a chunk, and the first so many ways to look: a millisecond or a few in all. */
enum { ROUNDS = 1000, PROBED = LOOKS_WITH_PAUSE + 1 };

static struct probe_page *page;

static void settle(const char *cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(atoi(cpu), &one);
    /* 0: the thread that calls. */
    if (sched_setaffinity(0, sizeof one, &one) != 0) {
        perror("prober: sched_setaffinity");
        exit(1);
    }
}

static void *second(void *cpu)
{
    settle(cpu);
    double took[PROBED];
    for (unsigned seen = 0;;) {
        seen = probe_wait(&page->begun, seen);
        line_one_way(&page->line, 0, 1, ROUNDS, PROBED, took);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    page = argc == 4 ? probe_open(argv[1]) : NULL;
    if (page == NULL) {
        fprintf(stderr, "usage: prober PAGE CPU CPU\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pthread_t thread;
    if (pthread_create(&thread, NULL, second, argv[3]) != 0) {
        fprintf(stderr, "prober: no thread\n");
        return 1;
    }
    settle(argv[2]);
    double took[PROBED];
    for (unsigned seen = 0;;) {
        seen = probe_wait(&page->asked, seen);
        memset(&page->line, 0, sizeof page->line);
        probe_tell(&page->begun);
        line_one_way(&page->line, 1, 1, ROUNDS, PROBED, took);
        /* The mean is steadier than the better one: what matters here is which mode it is. */
        page->latest = (took[0] + took[1]) / 2 * 1e6;
        probe_tell(&page->answered);
    }
}
