/* types.c: what MPI_T says of each event type. */
#include "mel.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mel_type *types;
static int type_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The name of each item of an enumeration, in order:
 * for an event type these are its elements (MPI 5.0 section 15.3.8). */
static void read_names(mel_type *type, MPI_T_enum names) {
    int items = 0;
    if (names != MPI_T_ENUM_NULL && PMPI_T_enum_get_info(names, &items, NULL, NULL) != MPI_SUCCESS) {
        items = 0;
    }
    for (int i = 0; i < type->elements; i++) {
        char name[MEL_NAME];
        int value, length = sizeof name;
        if (i >= items || PMPI_T_enum_get_item(names, i, &value, name, &length) != MPI_SUCCESS) {
            snprintf(name, sizeof name, "element %d", i);
        }
        type->names[i] = strdup(name);
    }
}

static bool read_type(mel_type *type, int index) {
    MPI_Aint displacements[MEL_ELEMENTS];
    MPI_T_enum names = MPI_T_ENUM_NULL;
    int name_length = MEL_NAME, length = 0, room = MEL_ELEMENTS;
    *type = (mel_type){.index = index};
    /* First the length of the description alone: a length of 0 asks for it. */
    if (PMPI_T_event_get_info(index, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, &length, NULL) != MPI_SUCCESS) {
        return false;
    }
    type->description = calloc(1, (size_t)length + 1);
    length += 1;
    if (!type->description
        || PMPI_T_event_get_info(index, type->name, &name_length, &type->verbosity, type->datatypes, displacements, &room,
                                 &names, NULL, type->description, &length, &type->bind) != MPI_SUCCESS) {
        return false;
    }
    type->elements = room < MEL_ELEMENTS ? room : MEL_ELEMENTS;
    read_names(type, names);
    return true;
}

static void read_types(void) {
    int count = 0;
    if (PMPI_T_event_get_num(&count) != MPI_SUCCESS || count <= 0) {
        return;
    }
    types = calloc((size_t)count, sizeof *types);
    for (int i = 0; types && i < count; i++) {
        type_count += read_type(&types[type_count], i);
    }
}

const mel_type *mel_types(int *count) {
    pthread_once(&once, read_types);
    *count = type_count;
    return types;
}

const mel_type *mel_type_named(const char *name) {
    int count;
    const mel_type *all = mel_types(&count);
    for (int i = 0; i < count; i++) {
        if (strcmp(all[i].name, name) == 0) {
            return &all[i];
        }
    }
    return NULL;
}

int mel_element(const mel_type *type, const char *name) {
    for (int i = 0; type && i < type->elements; i++) {
        if (type->names[i] && strcmp(type->names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

/* The datatypes that an element can have, and how to show one. */
typedef struct {
    MPI_Datatype datatype;
    size_t size;
    const char *name;
    enum { SIGNED, UNSIGNED, REAL, TEXT } kind;
} known;

static const known all_known[] = {
    {MPI_INT, sizeof(int), "MPI_INT", SIGNED},
    {MPI_UNSIGNED, sizeof(unsigned), "MPI_UNSIGNED", UNSIGNED},
    {MPI_LONG, sizeof(long), "MPI_LONG", SIGNED},
    {MPI_UNSIGNED_LONG, sizeof(unsigned long), "MPI_UNSIGNED_LONG", UNSIGNED},
    {MPI_LONG_LONG, sizeof(long long), "MPI_LONG_LONG", SIGNED},
    {MPI_UNSIGNED_LONG_LONG, sizeof(unsigned long long), "MPI_UNSIGNED_LONG_LONG", UNSIGNED},
    {MPI_COUNT, sizeof(MPI_Count), "MPI_COUNT", SIGNED},
    {MPI_AINT, sizeof(MPI_Aint), "MPI_AINT", SIGNED},
    {MPI_INT32_T, 4, "MPI_INT32_T", SIGNED},
    {MPI_INT64_T, 8, "MPI_INT64_T", SIGNED},
    {MPI_UINT32_T, 4, "MPI_UINT32_T", UNSIGNED},
    {MPI_UINT64_T, 8, "MPI_UINT64_T", UNSIGNED},
    {MPI_BYTE, 1, "MPI_BYTE", UNSIGNED},
    {MPI_CHAR, 1, "MPI_CHAR", TEXT},
    {MPI_DOUBLE, sizeof(double), "MPI_DOUBLE", REAL},
};

static const known *known_of(MPI_Datatype datatype) {
    for (size_t i = 0; i < sizeof all_known / sizeof *all_known; i++) {
        if (all_known[i].datatype == datatype) {
            return &all_known[i];
        }
    }
    return NULL;
}

size_t mel_element_size(MPI_Datatype datatype) {
    const known *is = known_of(datatype);
    return is ? is->size : 0;
}

const char *mel_datatype_name(MPI_Datatype datatype) {
    const known *is = known_of(datatype);
    return is ? is->name : "?";
}

static int64_t widen(const known *is, const void *value) {
    if (is->size == 1) {
        return *(const unsigned char *)value;
    }
    if (is->size == 4) {
        uint32_t word;
        memcpy(&word, value, sizeof word);
        return is->kind == SIGNED ? (int64_t)(int32_t)word : (int64_t)word;
    }
    int64_t wide;
    memcpy(&wide, value, sizeof wide);
    return wide;
}

int mel_element_text(char *text, size_t room, MPI_Datatype datatype, const void *value) {
    const known *is = known_of(datatype);
    if (!is) {
        return snprintf(text, room, "?");
    }
    if (is->kind == REAL) {
        double real;
        memcpy(&real, value, sizeof real);
        return snprintf(text, room, "%g", real);
    }
    if (is->kind == TEXT) {
        return snprintf(text, room, "%c", *(const char *)value);
    }
    int64_t wide = widen(is, value);
    return is->kind == SIGNED ? snprintf(text, room, "%" PRId64, wide) : snprintf(text, room, "%" PRIu64, (uint64_t)wide);
}

int64_t mel_element_integer(MPI_T_event_instance event, const mel_type *type, int element) {
    const known *is = known_of(type->datatypes[element]);
    int64_t room = 0;
    if (!is || PMPI_T_event_read(event, element, &room) != MPI_SUCCESS) {
        return 0;
    }
    return widen(is, &room);
}

/* Ticks a second of each source, asked once: there are few sources, and none goes away. */
enum { SOURCES = 256 };
static _Atomic double tick[SOURCES];

static double seconds_a_tick(int source) {
    if (source >= 0 && source < SOURCES && tick[source] != 0) {
        return tick[source];
    }
    MPI_Count a_second = 0;
    if (PMPI_T_source_get_info(source, NULL, NULL, NULL, NULL, NULL, &a_second, NULL, NULL) != MPI_SUCCESS || a_second <= 0) {
        return 0;
    }
    if (source >= 0 && source < SOURCES) {
        tick[source] = 1.0 / (double)a_second;
    }
    return 1.0 / (double)a_second;
}

double mel_event_time(MPI_T_event_instance event) {
    MPI_Count when = 0;
    int source = 0;
    if (PMPI_T_event_get_timestamp(event, &when) != MPI_SUCCESS || PMPI_T_event_get_source(event, &source) != MPI_SUCCESS) {
        return 0;
    }
    return (double)when * seconds_a_tick(source);
}

double mel_now(void) {
    MPI_Count when = 0;
    if (PMPI_T_source_get_timestamp(0, &when) != MPI_SUCCESS) {
        return 0;
    }
    return (double)when * seconds_a_tick(0);
}
