/* list.c: prints all event types for a reader. */
#include "mel.h"

static const char *bind_name(int bind) {
    switch (bind) {
    case MPI_T_BIND_NO_OBJECT:
        return "no object";
    case MPI_T_BIND_MPI_COMM:
        return "communicator";
    case MPI_T_BIND_MPI_WIN:
        return "window";
    case MPI_T_BIND_MPI_FILE:
        return "file";
    case MPI_T_BIND_MPI_REQUEST:
        return "request";
    default:
        return "another object";
    }
}

void mel_list(void) {
    int count;
    const mel_type *types = mel_types(&count);
    mel_say("[MEL] %d event types; name some in MEL_EVENTS, separated by comma, colon, semicolon or space\n", count);
    for (int i = 0; i < count; i++) {
        const mel_type *type = &types[i];
        mel_say("[MEL] %3d '%s' (%s, verbosity %d): %s\n", type->index, type->name, bind_name(type->bind), type->verbosity,
                type->description);
        for (int e = 0; e < type->elements; e++) {
            mel_say("[MEL]       %s: %s\n", type->names[e], mel_datatype_name(type->datatypes[e]));
        }
    }
}
