/* Whether the library has remapped a buffer: its pages are memory of the job then. */
#ifndef REMAPPED_H
#define REMAPPED_H

#include "check.h"
#include <stdint.h>
#include <sys/utsname.h>

enum { PAGE = 4096 };

/* Whether memory of the job is mapped at an address. */
static inline int is_remapped(const void *at)
{
    char line[512];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (!found && fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx", &start, &end) != 2) continue;
        found = start <= (uintptr_t)at && (uintptr_t)at < end && strstr(line, "memfd:perusal-job") != NULL;
    }
    fclose(maps);
    return found;
}

/* Whether this kernel answers what the library has to ask: Linux 6.11 does. */
static inline int can_remap(void)
{
    struct utsname name;
    int major = 0, minor = 0;
    uname(&name);
    sscanf(name.release, "%d.%d", &major, &minor);
    return major > 6 || (major == 6 && minor >= 11);
}

#endif
