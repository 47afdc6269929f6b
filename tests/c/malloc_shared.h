/* Whether memory is the job's. */
#ifndef MALLOC_SHARED_H
#define MALLOC_SHARED_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static inline int is_shared(const void *block)
{
    char line[512];
    int shared = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx", &from, &to) == 2 && from <= (uintptr_t)block && (uintptr_t)block < to)
            shared = strstr(line, "memfd:perusal-job") != NULL;
    }
    if (maps) fclose(maps);
    return shared;
}

#endif
