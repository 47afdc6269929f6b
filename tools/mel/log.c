/* log.c: one line for each event, made of what MPI_T says of its type and of nothing else:
 *
 *     [ 0.002151416] 'pml_ob1_message_arrived' context=0 source=0 tag=201
 *
 * Seconds since the logger began, by the event's own time stamp;
 * where several ranks share the log, "rank:" stands before them. */
#include "mel.h"

#include <stdio.h>

enum { LINE = 4096 };

/* Room for the value of any element. */
typedef union {
    max_align_t align;
    char bytes[sizeof(max_align_t)];
} value;

static size_t begin_line(char *line, size_t room, double when) {
    int bytes = mel_size() > 1 ? snprintf(line, room, "[%d: %.9f]", mel_rank(), when) : snprintf(line, room, "[%12.9f]", when);
    return (size_t)bytes;
}

void mel_log_event(MPI_T_event_instance event, MPI_T_event_registration handle, MPI_T_cb_safety safety, void *user) {
    (void)handle, (void)safety;
    const mel_type *type = user;
    char line[LINE];
    size_t at = begin_line(line, sizeof line, mel_event_time(event) - mel_zero());
    at += (size_t)snprintf(line + at, sizeof line - at, " '%s'", type->name);
    for (int i = 0; i < type->elements && at + 2 * MEL_NAME < sizeof line; i++) {
        value value = {0};
        size_t size = mel_element_size(type->datatypes[i]);
        at += (size_t)snprintf(line + at, sizeof line - at, " %s=", type->names[i]);
        if (size == 0 || PMPI_T_event_read(event, i, &value) != MPI_SUCCESS) {
            line[at++] = '?';
            continue;
        }
        at += (size_t)mel_element_text(line + at, sizeof line - at, type->datatypes[i], &value);
    }
    line[at++] = '\n';
    mel_write(line, at);
}

void mel_empty_event(MPI_T_event_instance event, MPI_T_event_registration handle, MPI_T_cb_safety safety, void *user) {
    (void)event, (void)handle, (void)safety, (void)user;
}

void mel_log_dropped(MPI_Count count, MPI_T_event_registration handle, int source, MPI_T_cb_safety safety, void *user) {
    (void)handle, (void)safety;
    const mel_type *type = user;
    char line[LINE];
    size_t at = begin_line(line, sizeof line, mel_now() - mel_zero());
    at += (size_t)snprintf(line + at, sizeof line - at, " '%s' dropped=%lld source=%d\n", type->name, (long long)count, source);
    mel_write(line, at);
}
