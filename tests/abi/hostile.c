/* Calls every function with right, odd and wrong arguments: one wrong argument at a time, all of them; then many at
 * once, by chance; before MPI_Init, after it, and after MPI_Finalize. Arguments: a seed, and how many calls by chance.
 *
 * A value is right, or wrong in a way that has its classes of errors, or anything may come of it. If a value is wrong,
 * the call must give the class of one that is. What cannot be found out is not tried: an address that leads nowhere, an
 * array shorter than its length says.
 *
 * Every part runs in a child process, which notes what it is about to call. If a signal or a time limit ends it, the
 * next one goes on behind that call.
 */
#include <mpi-ext.h>
#include <mpi.h>
#include <peruse.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child makes AT_ONCE calls by chance: so many that no handle comes back that was freed. */
enum { AT_ONCE = 5000, MOST_ARGUMENTS = 16, MOST_VALUES = 24, SLOT = 1 << 17, SECONDS = 20, MOST_SHOWN = 400 };

#define KINDS(X)                                                                                                        \
    X(COMM) X(DATATYPE) X(ANY_DATATYPE) X(OP) X(GROUP) X(REQUEST) X(INFO) X(FILE) X(WIN) X(ERRHANDLER) X(SESSION)        \
    X(MESSAGE) X(COMM_AT) X(DATATYPE_AT) X(OP_AT) X(GROUP_AT) X(REQUEST_AT) X(INFO_AT) X(FILE_AT) X(WIN_AT)              \
    X(ERRHANDLER_AT) X(SESSION_AT) X(MESSAGE_AT) X(KEYVAL_AT) X(REQUESTS) X(INFOS) X(DATATYPES) X(COMM_KEYVAL)           \
    X(TYPE_KEYVAL) X(WIN_KEYVAL) X(STATUS) X(STATUS_IN) X(ANYTHING) X(MEMORY) X(WINDOW_MEMORY) X(BUFFER)                 \
    X(BUFFER_IN_PLACE) X(OUT) X(OUT_OR_NULL) X(OUT_COMM) X(OUT_DATATYPE) X(OUT_OP) X(OUT_GROUP) X(OUT_REQUEST)           \
    X(OUT_INFO) X(OUT_FILE) X(OUT_WIN) X(OUT_ERRHANDLER) X(OUT_SESSION) X(OUT_MESSAGE) X(WORDS) X(DATAREP) X(FILENAME)   \
    X(KEY) X(STRING) X(CALLBACK) X(T_ENUM) X(T_CVAR_HANDLE) X(T_PVAR_HANDLE) X(T_PVAR_SESSION)                           \
    X(T_EVENT_REGISTRATION) X(T_EVENT_INSTANCE) X(T_CVAR_HANDLE_AT) X(T_PVAR_HANDLE_AT) X(T_PVAR_SESSION_AT) X(P_EVENT) X(P_EVENT_AT) X(P_NUMBER) X(NOTHING)             \
    X(POSITION) X(WEIGHTS) X(INTS) X(LARGE_INTS) X(ROOT) X(PEER) X(TAG) X(RANK) X(COUNT) X(LENGTH) X(INTEGER)            \
    X(LARGE_INTEGER)

#define ENUMERATOR(name) K_##name,
enum kind { KINDS(ENUMERATOR) };

struct parameter { enum kind kind; const char *name; };

struct function {
    const char *name;
    int (*call)(const intptr_t *);
    int (*profiling)(const intptr_t *); /* by the name that begins with P */
    int arguments;
    int waits;   /* for somebody else, if nothing is wrong */
    int anytime; /* legal before MPI_Init and after MPI_Finalize */
    struct parameter parameters[MOST_ARGUMENTS];
};

#include "calls.h"

enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* Sets of error classes. Those of MPI_T are one. */
typedef unsigned __int128 classes;
#define BIT(class) ((classes)1 << (class))
#define OF_TOOL BIT(120)
#define EVERY (~(classes)0)
#define RIGHT ((classes)0)

struct value {
    intptr_t value;
    const char *text;
    classes wrong;
};

/* What the parent reads when a child has ended. */
struct note {
    int phase, function;
    long calls, wrong, right_calls;
    char text[2048];
    unsigned char succeeded[FUNCTIONS];
};
static struct note *note;

static char *slots; /* one for each argument, each with an inaccessible page behind it */
static char *long_text;
static int phase;

enum { BEFORE, RUNNING, BY_CHANCE, AFTER, PHASES };

static uint64_t state;
static unsigned by_chance(unsigned below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

static void fail(const char *what)
{
    fprintf(stderr, "hostile: cannot prepare: %s\n", what);
    _exit(9);
}
#define MUST(call) do { if ((call) != MPI_SUCCESS) fail(#call); } while (0)
#include "hostile_objects.h"
#include "hostile_values.h"

/* Gives back what the call has made. */
static void give_back(const struct function *f, const intptr_t *arguments, int code)
{
    for (int n = 0; n < f->arguments; n++) {
        intptr_t *at = (intptr_t *)arguments[n];
        enum kind kind = f->parameters[n].kind;
        if (kind == K_REQUEST_AT || kind == K_REQUESTS) {
            /* What was made for the call, and what is still there of it. */
            MPI_Request request = *(MPI_Request *)slot(n);
            if (request != good.persistent && request != MPI_REQUEST_NULL) {
                if (has(f, "Start")) MPI_Wait(&request, MPI_STATUS_IGNORE);
                if (request != MPI_REQUEST_NULL && MPI_Request_free(&request) != MPI_SUCCESS) continue;
            }
        }
        if (kind == K_REQUEST && has(f, "Grequest_complete")) continue;
        if (code != MPI_SUCCESS || kind < K_OUT_COMM || kind > K_OUT_MESSAGE || at == NULL || *at < 1024) continue;
        switch (kind) {
        case K_OUT_COMM: MPI_Comm_free((MPI_Comm *)at); break;
        case K_OUT_DATATYPE: MPI_Type_free((MPI_Datatype *)at); break;
        case K_OUT_OP: MPI_Op_free((MPI_Op *)at); break;
        case K_OUT_GROUP: MPI_Group_free((MPI_Group *)at); break;
        case K_OUT_INFO: MPI_Info_free((MPI_Info *)at); break;
        case K_OUT_FILE: MPI_File_close((MPI_File *)at); break;
        case K_OUT_WIN: MPI_Win_free((MPI_Win *)at); break;
        case K_OUT_ERRHANDLER: MPI_Errhandler_free((MPI_Errhandler *)at); break;
        case K_OUT_SESSION: MPI_Session_finalize((MPI_Session *)at); break;
        case K_OUT_REQUEST:
            if (has(f, "_init")) MPI_Request_free((MPI_Request *)at);
            else {
                if (has(f, "Grequest_start")) MPI_Grequest_complete(*(MPI_Request *)at);
                MPI_Wait((MPI_Request *)at, MPI_STATUS_IGNORE);
            }
            break;
        default: break;
        }
    }
    if (code == MPI_SUCCESS && has(f, "PERUSE_Lock")) PERUSE_Unlock();
    /* A split collective operation that has begun. */
    const char *begin = strstr(f->name, "_begin");
    if (begin && code == MPI_SUCCESS) {
        MPI_File_close(&good.file);
        good.file = new_file();
    }
}

/* PERUSE's codes as the classes of MPI that say the same; what has none is the tool's. */
static classes class_of(const struct function *f, int code)
{
    if (strncmp(f->name, "PERUSE_", 7) == 0) {
        switch (code) {
        case PERUSE_SUCCESS: return BIT(MPI_SUCCESS);
        case PERUSE_ERR_PARAMETER: return BIT(MPI_ERR_ARG);
        case PERUSE_ERR_COMM: return BIT(MPI_ERR_COMM);
        case PERUSE_ERR_WIN: return BIT(MPI_ERR_WIN);
        case PERUSE_ERR_FILE: return BIT(MPI_ERR_FILE);
        default: return OF_TOOL;
        }
    }
    if (code >= MPI_T_ERR_CANNOT_INIT && code < MPI_T_ERR_CANNOT_INIT + 200) return OF_TOOL;
    return code >= 0 && code < 120 ? BIT(code) : 0;
}

/* Whether this value makes others mean nothing: no elements, or MPI_IN_PLACE. */
static int makes_others_idle(const struct parameter *p, const struct value *v)
{
    switch (p->kind) {
    case K_COUNT:
    case K_LENGTH:
    case K_LARGE_INTEGER: return v->value == 0;
    case K_INTEGER: return v->value == 0 && (strstr(p->name, "size") || strstr(p->name, "max") || strstr(p->name, "len"));
    case K_POSITION: return v->value != 0 && *(int *)v->value == 0;
    case K_BUFFER_IN_PLACE: return v->value == (intptr_t)MPI_IN_PLACE;
    case K_MESSAGE_AT: return v->value != 0 && *(MPI_Message *)v->value == MPI_MESSAGE_NO_PROC;
    default: return 0;
    }
}

/* What may mean nothing because of another argument. */
static int may_be_idle(enum kind kind)
{
    switch (kind) {
    case K_BUFFER:
    case K_BUFFER_IN_PLACE:
    case K_REQUESTS:
    case K_DATATYPES:
    case K_DATATYPE:
    case K_ANY_DATATYPE:
    case K_INTS:
    case K_LARGE_INTS:
    case K_COUNT:
    case K_OP:
    case K_OUT: return 1;
    default: return 0;
    }
}

/* `chosen` says which value of each argument; below 0: the first, which is right if any is. */
static void call(const struct function *f, const int *chosen)
{
    intptr_t arguments[MOST_ARGUMENTS] = {0};
    struct value values[MOST_VALUES];
    classes wrong = 0;
    int some = 0, idle = 0, some_idle = 0, every = 0, at = 0;
    for (int n = 0; n < f->arguments; n++) {
        int count = values_of(f, n, values, 0, 0);
        const struct value *v = &values[chosen[n] < 0 ? 0 : chosen[n] % count];
        idle |= makes_others_idle(&f->parameters[n], v);
        if (v->wrong == EVERY) every = 1;
        else if (v->wrong != RIGHT && may_be_idle(f->parameters[n].kind)) some_idle = 1;
        else if (v->wrong != RIGHT) some = 1;
    }
    some |= some_idle && !idle;
    at += snprintf(note->text + at, sizeof note->text - at, "%s(", f->name);
    for (int n = 0; n < f->arguments; n++) {
        int count = values_of(f, n, values, some, 1);
        const struct value *v = &values[chosen[n] < 0 ? 0 : chosen[n] % count];
        arguments[n] = v->value;
        if (v->wrong != EVERY) wrong |= v->wrong;
        if (at < (int)sizeof note->text - 100)
            at += snprintf(note->text + at, sizeof note->text - at, "%s%s=%s", n ? ", " : "", f->parameters[n].name, v->text);
    }
    snprintf(note->text + at, sizeof note->text - at, ")");
    int open = phase == RUNNING || phase == BY_CHANCE;
    if (open && f->waits && (!some || has(f, "Init"))) return;
    if (!open && (has(f, "MPI_Init") || has(f, "MPI_Session_init") || has(f, "MPI_T_init"))) return;
    note->calls++;
    alarm(SECONDS);
    int code = (phase == BY_CHANCE && by_chance(2) ? f->profiling : f->call)(arguments);
    alarm(0);
    classes got = class_of(f, code);
    int function = (int)(f - functions);
    if (open && code == MPI_SUCCESS) note->succeeded[function] = 1;
    int as_expected;
    if (has(f, "_toint")) {
        as_expected = 1; /* gives a number, not a code */
    } else if (!open) {
        int tool = strncmp(f->name, "MPI_T_", 6) == 0 || strncmp(f->name, "PERUSE_", 7) == 0;
        as_expected = f->anytime || (code != MPI_SUCCESS && (got & (wrong | BIT(MPI_ERR_OTHER) | (tool ? OF_TOOL : 0)) || every));
    } else if (!some) {
        as_expected = 1;
        note->right_calls++;
    } else if (has(f, "_port")) {
        as_expected = code != MPI_SUCCESS; /* without a launcher there are none */
    } else {
        as_expected = code != MPI_SUCCESS && (got & wrong || every);
    }
    if (!as_expected && note->wrong++ < MOST_SHOWN) {
        printf("%s gives %d%s\n", note->text, code,
               phase == BEFORE ? " before MPI_Init" : phase == AFTER ? " after MPI_Finalize" : "");
        fflush(stdout);
    }
    if (open) give_back(f, arguments, code);
}

/* One argument after the other, each of its values; then none. */
static void each_alone(const struct function *f)
{
    int chosen[MOST_ARGUMENTS];
    struct value values[MOST_VALUES];
    memset(chosen, -1, sizeof chosen);
    call(f, chosen);
    for (int n = 0; n < f->arguments; n++) {
        int count = values_of(f, n, values, 1, 0);
        for (int v = 0; v < count; v++) {
            chosen[n] = v;
            call(f, chosen);
        }
        chosen[n] = -1;
    }
}

static void some_together(const struct function *f)
{
    int chosen[MOST_ARGUMENTS];
    for (int n = 0; n < MOST_ARGUMENTS; n++) chosen[n] = by_chance(2) ? (int)by_chance(1 << 20) : -1;
    call(f, chosen);
}

static void ended(int signal)
{
    static const char text[] = "hostile: a signal ends the call\n";
    if (write(2, text, sizeof text - 1) < 0) _exit(8);
    _exit(signal == SIGALRM ? 7 : 8);
}

static void child(int from, long calls)
{
    signal(SIGALRM, ended);
    if (phase != BEFORE) prepare();
    if (phase == AFTER) {
        MUST(MPI_Session_finalize(&good.session));
        MUST(MPI_T_finalize());
        if (MPI_Win_unlock_all(good.locked) != MPI_SUCCESS || MPI_Finalize() != MPI_SUCCESS) fail("MPI_Finalize");
    }
    if (phase == BY_CHANCE) {
        for (int n = 0; n < AT_ONCE && n < calls; n++) {
            note->function = (int)by_chance(FUNCTIONS);
            some_together(&functions[note->function]);
        }
    } else {
        for (note->function = from; note->function < FUNCTIONS; note->function++) each_alone(&functions[note->function]);
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    uint64_t seed = strtoull(argv[1], NULL, 0);
    long calls = strtol(argv[2], NULL, 0);
    note = mmap(NULL, sizeof *note, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    size_t size = (size_t)MOST_ARGUMENTS * (SLOT + 4096);
    slots = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (note == MAP_FAILED || slots == MAP_FAILED) return 2;
    for (int n = 0; n < MOST_ARGUMENTS; n++) mprotect(slot(n) + SLOT, 4096, PROT_NONE);
    long_text = malloc(100001);
    memset(long_text, 'x', 100000);
    long_text[100000] = 0;
    int failed = 0;
    for (phase = 0; phase < PHASES; phase++) {
        int from = 0;
        long left = phase == BY_CHANCE ? calls : 0;
        while (from < FUNCTIONS) {
            long before = note->calls;
            state = seed + (uint64_t)left;
            note->phase = phase;
            note->text[0] = 0;
            fflush(NULL);
            pid_t pid = fork();
            if (pid == 0) child(from, left);
            int status;
            while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
            if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
                left -= AT_ONCE;
                if (left > 0) continue;
                break;
            }
            failed++;
            if (WIFSIGNALED(status)) printf("%s: ends with signal %d in phase %d\n", note->text, WTERMSIG(status), phase);
            else if (WEXITSTATUS(status) == 7) printf("%s: does not return in phase %d\n", note->text, phase);
            else printf("%s: ends with status %d in phase %d\n", note->text, WEXITSTATUS(status), phase);
            if (WIFEXITED(status) && WEXITSTATUS(status) == 9) break;
            from = note->function + 1;
            if (phase == BY_CHANCE) {
                from = 0;
                left -= note->calls - before + 1;
                if (left <= 0) break;
            }
            if (failed > MOST_SHOWN) return 1;
        }
    }
    int succeeded = 0;
    for (int n = 0; n < FUNCTIONS; n++) {
        succeeded += note->succeeded[n];
        if (!note->succeeded[n] && getenv("HOSTILE_REACH")) printf("never succeeds: %s\n", functions[n].name);
    }
    printf("%d functions, %d of them succeeded with the right arguments; %ld calls, %ld of them without anything wrong; %ld answers are wrong, %d calls did not return\n",
           FUNCTIONS, succeeded, note->calls, note->right_calls, note->wrong, failed);
    return note->wrong || failed ? 1 : 0;
}
