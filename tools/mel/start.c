/* start.c: from the environment to registered handles, and back. */
#include "mel.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* A chosen event type, and its callback. */
typedef struct {
    const mel_type *type;
    MPI_T_event_cb_function *callback;
    MPI_T_event_dropped_cb_function *dropped;
    void *user;
} wish;

/* What handles are bound to: a communicator, a window or a file, the others being null; all null: no object. */
typedef struct {
    MPI_Comm comm;
    MPI_Win win;
    MPI_File file;
} object;

#define NO_OBJECT ((object){MPI_COMM_NULL, MPI_WIN_NULL, MPI_FILE_NULL})
#define COMM(comm) ((object){comm, MPI_WIN_NULL, MPI_FILE_NULL})
#define WIN(win) ((object){MPI_COMM_NULL, win, MPI_FILE_NULL})
#define FILE_OBJECT(file) ((object){MPI_COMM_NULL, MPI_WIN_NULL, file})

typedef struct {
    MPI_T_event_registration handle;
    object object;
} bound;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static wish *wishes;
static size_t wish_count;
static bound *handles;
static size_t handle_count, handle_room;
static bool begun, ready, over;
static int rank, size = 1;
static double zero;

int mel_rank(void) {
    return rank;
}

int mel_size(void) {
    return size;
}

double mel_zero(void) {
    return zero;
}

static void keep(MPI_T_event_registration handle, object object) {
    if (handle_count == handle_room) {
        size_t room = 2 * handle_room + 64;
        bound *larger = realloc(handles, room * sizeof *handles);
        if (!larger) {
            PMPI_T_event_handle_free(handle, NULL, NULL);
            return;
        }
        handles = larger;
        handle_room = room;
    }
    handles[handle_count++] = (bound){handle, object};
}

/* Registers handles for the chosen types, bound to an object or to none; the lock is held. */
/* Where the handle lies that MPI_T is to be given; NULL for no object. */
static void *place(object *object) {
    if (object->comm != MPI_COMM_NULL) return &object->comm;
    if (object->win != MPI_WIN_NULL) return &object->win;
    return object->file != MPI_FILE_NULL ? (void *)&object->file : NULL;
}

static void listen(const wish *wish, object object) {
    MPI_T_event_registration handle;
    int failed = PMPI_T_event_handle_alloc(wish->type->index, place(&object), MPI_INFO_NULL, &handle);
    if (failed != MPI_SUCCESS) {
        mel_say("MEL: cannot listen to '%s' (MPI_T error %d)\n", wish->type->name, failed);
        return;
    }
    PMPI_T_event_set_dropped_handler(handle, wish->dropped);
    /* The callbacks lock a mutex and may write to a file, so any thread may run them, but no signal handler. */
    failed = PMPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL, wish->user, wish->callback);
    if (failed != MPI_SUCCESS) {
        mel_say("MEL: cannot register for '%s' (MPI_T error %d)\n", wish->type->name, failed);
        PMPI_T_event_handle_free(handle, NULL, NULL);
        return;
    }
    keep(handle, object);
}

static void add(const mel_type *type, MPI_T_event_cb_function *callback, MPI_T_event_dropped_cb_function *dropped, void *user) {
    wish *larger = realloc(wishes, (wish_count + 1) * sizeof *wishes);
    if (larger) {
        wishes = larger;
        wishes[wish_count++] = (wish){type, callback, dropped, user};
    }
}

static void add_statistic(const mel_type *type, MPI_T_event_cb_function *callback, void *user) {
    add(type, callback, mel_queues_dropped, user);
}

/* MEL_CALLBACKS=empty: callbacks that do nothing, to measure what delivery alone costs. */
static bool empty_wanted(void) {
    const char *callbacks = getenv("MEL_CALLBACKS");
    return callbacks && strcmp(callbacks, "empty") == 0;
}

/* Whether a type repeats the events of another one for all communicators together: a pattern that matches both shall
 * give each event once. */
static bool is_sum(const mel_type *type) {
    char other[MEL_NAME];
    size_t length = strlen(type->name), suffix = sizeof "_all" - 1;
    if (length <= suffix || strcmp(type->name + length - suffix, "_all") != 0) {
        return false;
    }
    memcpy(other, type->name, length - suffix);
    other[length - suffix] = '\0';
    return mel_type_named(other) != NULL;
}

/* Chooses every type whose name is in MEL_EVENTS, or matches a shell pattern in it. */
static void add_named(const char *name) {
    int count, found = 0;
    const mel_type *types = mel_types(&count);
    for (int i = 0; i < count; i++) {
        if (strcmp(name, types[i].name) == 0 || (fnmatch(name, types[i].name, 0) == 0 && !is_sum(&types[i]))) {
            add(&types[i], empty_wanted() ? mel_empty_event : mel_log_event, mel_log_dropped, (void *)&types[i]);
            found = 1;
        }
    }
    if (!found) {
        mel_say("MEL: no event type is called '%s'; leave MEL_EVENTS empty for a list of all\n", name);
    }
}

static bool list_wanted(void) {
    const char *names = getenv("MEL_EVENTS");
    return (!names || !names[strspn(names, ",:; \t\n")]) && !mel_queues_wanted();
}

static void read_environment(void) {
    const char *names = getenv("MEL_EVENTS");
    char *copy = names ? strdup(names) : NULL, *rest = copy, *name;
    while (copy && (name = strsep(&rest, ",:; \t\n"))) {
        if (*name) {
            add_named(name);
        }
    }
    free(copy);
    if (mel_queues_wanted()) {
        mel_queues_each(add_statistic);
    }
}

static void listen_to_all(int bind, object object) {
    for (size_t i = 0; i < wish_count; i++) {
        if (wishes[i].type->bind == bind) {
            listen(&wishes[i], object);
        }
    }
}

void mel_begin(void) {
    int provided;
    pthread_mutex_lock(&lock);
    if (!begun && PMPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS) {
        begun = true;
        zero = mel_now();
        read_environment();
        listen_to_all(MPI_T_BIND_NO_OBJECT, NO_OBJECT);
    }
    pthread_mutex_unlock(&lock);
}

void mel_ready(void) {
    MPI_Comm parent = MPI_COMM_NULL;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    mel_output_ready();
    pthread_mutex_lock(&lock);
    ready = begun;
    if (ready) {
        listen_to_all(MPI_T_BIND_MPI_COMM, COMM(MPI_COMM_WORLD));
        listen_to_all(MPI_T_BIND_MPI_COMM, COMM(MPI_COMM_SELF));
        /* A process that was spawned has made no intercommunicator to those that spawned it. */
        if (PMPI_Comm_get_parent(&parent) == MPI_SUCCESS && parent != MPI_COMM_NULL) {
            listen_to_all(MPI_T_BIND_MPI_COMM, COMM(parent));
        }
    }
    pthread_mutex_unlock(&lock);
}

void mel_comm_made(MPI_Comm comm) {
    if (comm == MPI_COMM_NULL) {
        return;
    }
    pthread_mutex_lock(&lock);
    if (begun && !over) {
        listen_to_all(MPI_T_BIND_MPI_COMM, COMM(comm));
    }
    pthread_mutex_unlock(&lock);
}

void mel_file_opened(MPI_File file) {
    pthread_mutex_lock(&lock);
    if (begun && !over) {
        listen_to_all(MPI_T_BIND_MPI_FILE, FILE_OBJECT(file));
    }
    pthread_mutex_unlock(&lock);
}

void mel_win_made(MPI_Win win) {
    pthread_mutex_lock(&lock);
    if (begun && !over) {
        listen_to_all(MPI_T_BIND_MPI_WIN, WIN(win));
    }
    pthread_mutex_unlock(&lock);
}

/* Frees the handles of an object, or all; the lock is held. */
static void free_handles(object object) {
    bool everything = place(&object) == NULL;
    size_t kept = 0;
    for (size_t i = 0; i < handle_count; i++) {
        if (everything || (handles[i].object.comm == object.comm && handles[i].object.win == object.win && handles[i].object.file == object.file)) {
            PMPI_T_event_handle_free(handles[i].handle, NULL, NULL);
        } else {
            handles[kept++] = handles[i];
        }
    }
    handle_count = kept;
}

void mel_comm_gone(MPI_Comm comm) {
    if (comm == MPI_COMM_NULL) {
        return;
    }
    pthread_mutex_lock(&lock);
    free_handles(COMM(comm));
    pthread_mutex_unlock(&lock);
}

void mel_file_gone(MPI_File file) {
    if (file == MPI_FILE_NULL) {
        return;
    }
    pthread_mutex_lock(&lock);
    free_handles(FILE_OBJECT(file));
    pthread_mutex_unlock(&lock);
}

void mel_win_gone(MPI_Win win) {
    if (win == MPI_WIN_NULL) {
        return;
    }
    pthread_mutex_lock(&lock);
    free_handles(WIN(win));
    pthread_mutex_unlock(&lock);
}

void mel_end(bool job) {
    pthread_mutex_lock(&lock);
    bool first = begun && !over;
    over = true;
    if (first) {
        free_handles(NO_OBJECT);
    }
    pthread_mutex_unlock(&lock);
    if (!first) {
        return;
    }
    if (mel_queues_wanted()) {
        mel_queues_report();
        if (job && ready) {
            mel_totals_report();
        }
    }
    if (list_wanted() && rank == 0) {
        mel_list();
    }
    mel_flush();
    PMPI_T_finalize();
}
