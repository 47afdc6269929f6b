/* output.c: lines are collected in memory and written in large pieces: to stderr, or to the file that MEL_OUTPUT names
 * ("%r" in it stands for the rank). Until the rank is known everything stays in memory. */
#include "mel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 64 << 10 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *held;
static size_t held_bytes, held_room;
static int file = -1;

static void complain(const char *what, const char *about) {
    dprintf(STDERR_FILENO, "MEL: cannot %s %s: %s\n", what, about, strerror(errno));
}

/* Writes what is held; the lock is held. */
static void drain(void) {
    for (size_t done = 0; done < held_bytes;) {
        ssize_t wrote = write(file, held + done, held_bytes - done);
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote <= 0) {
            complain("write", "the log");
            break;
        }
        done += (size_t)wrote;
    }
    held_bytes = 0;
}

void mel_write(const char *text, size_t bytes) {
    pthread_mutex_lock(&lock);
    if (file >= 0 && held_bytes + bytes > PIECE) {
        drain();
    }
    if (held_bytes + bytes > held_room) {
        size_t room = 2 * held_room + bytes + PIECE;
        char *larger = realloc(held, room);
        if (!larger) {
            complain("keep", "a line");
            pthread_mutex_unlock(&lock);
            return;
        }
        held = larger;
        held_room = room;
    }
    memcpy(held + held_bytes, text, bytes);
    held_bytes += bytes;
    pthread_mutex_unlock(&lock);
}

void mel_say(const char *format, ...) {
    char *text;
    va_list arguments;
    va_start(arguments, format);
    int bytes = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (bytes >= 0) {
        mel_write(text, (size_t)bytes);
        free(text);
    }
}

/* The file's name with the rank put in for "%r"; to be freed. */
static char *file_name(const char *pattern) {
    const char *mark = strstr(pattern, "%r");
    char *name = NULL;
    int bytes = mark ? asprintf(&name, "%.*s%d%s", (int)(mark - pattern), pattern, mel_rank(), mark + 2)
                     : asprintf(&name, "%s", pattern);
    return bytes < 0 ? NULL : name;
}

void mel_output_ready(void) {
    const char *pattern = getenv("MEL_OUTPUT");
    int opened = STDERR_FILENO;
    if (pattern && *pattern) {
        char *name = file_name(pattern);
        /* Ranks that share a file append to it, a piece at a time. */
        int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND | (strstr(pattern, "%r") ? O_TRUNC : 0);
        opened = name ? open(name, flags, 0666) : -1;
        if (opened < 0) {
            complain("open", name ? name : pattern);
            opened = STDERR_FILENO;
        }
        free(name);
    }
    pthread_mutex_lock(&lock);
    file = opened;
    pthread_mutex_unlock(&lock);
}

void mel_flush(void) {
    pthread_mutex_lock(&lock);
    if (file < 0) {
        file = STDERR_FILENO;
    }
    drain();
    pthread_mutex_unlock(&lock);
}
