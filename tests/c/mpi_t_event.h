/* What the tests of MPI_T events share. */
#ifndef MPI_T_EVENT_H
#define MPI_T_EVENT_H

#include "check.h"
#include <stdint.h>

/* The index of a type; a failure if there is none. */
static inline int type_of(const char *name)
{
    int index = -1;
    int code = MPI_T_event_get_index(name, &index);
    if (code != MPI_SUCCESS) {
        fprintf(stderr, "no event type %s: code %d\n", name, code);
        failures++;
    }
    return index;
}

/* How many types there are. */
static inline int types(void)
{
    int num = -1;
    OK(MPI_T_event_get_num(&num));
    return num;
}

/* What a type is bound to. */
static inline int bind_of(int index)
{
    int bind = -1;
    OK(MPI_T_event_get_info(index, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, &bind));
    return bind;
}

/* The place of an element of that name; a failure if there is none. */
static inline int element_of(int index, const char *name)
{
    MPI_T_enum names;
    int num = 0;
    OK(MPI_T_event_get_info(index, NULL, NULL, NULL, NULL, NULL, NULL, &names, NULL, NULL, NULL, NULL));
    if (names != MPI_T_ENUM_NULL) OK(MPI_T_enum_get_info(names, &num, NULL, NULL));
    for (int i = 0; i < num; i++) {
        char item[128];
        int len = sizeof item, value = -1;
        OK(MPI_T_enum_get_item(names, i, &value, item, &len));
        if (strcmp(item, name) == 0) return value;
    }
    fprintf(stderr, "no element %s of type %d\n", name, index);
    failures++;
    return -1;
}

/* An info object that asks for a buffer of so many entries. */
static inline MPI_Info buffer_of(int entries)
{
    MPI_Info info;
    char text[16];
    snprintf(text, sizeof text, "%d", entries);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "perusal_event_buffer", text));
    return info;
}

/* A handle with a buffer of so many entries (0: none); `object` leads to a communicator or window,
 * and may be NULL for types of no object. */
static inline MPI_T_event_registration handle_of(int index, void *object, int entries)
{
    MPI_T_event_registration handle = NULL;
    MPI_Info info = buffer_of(entries);
    OK(MPI_T_event_handle_alloc(index, object, info, &handle));
    OK(MPI_Info_free(&info));
    return handle;
}

/* The same with a function for every level that we raise events at. */
static inline MPI_T_event_registration listen_to(int index, void *object, int entries,
                                                 MPI_T_event_cb_function *function, void *data)
{
    MPI_T_event_registration handle = handle_of(index, object, entries);
    OK(MPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, MPI_INFO_NULL, data, function));
    return handle;
}

static inline void initialise_tools(void)
{
    int provided;
    OK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
}

#endif
