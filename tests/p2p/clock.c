/* Interposes the clock of the day, which jumps by days from call to call, back and forth: what waits must not look at
 * it. tests/p2p/fault_runs.rs loads this before the C library. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long jump(void)
{
    static atomic_long calls;
    long call = atomic_fetch_add(&calls, 1);
    return (call % 2 ? -86400L : 86400L) * (call % 1000);
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    int result = (int)syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += jump();
    return result;
}

int gettimeofday(struct timeval *time, void *zone)
{
    (void)zone;
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *to)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
    if (to) *to = now.tv_sec;
    return now.tv_sec;
}
