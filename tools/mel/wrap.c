/* wrap.c: wrappers of MPI functions: each calls the next definition of its function, which is that of another tool or
 * the library's, and keeps the logger's handles up to date. */
#include "mel.h"

#include <dlfcn.h>

static void *next(const char *name, void *own) {
    void *found = dlsym(RTLD_NEXT, name);
    return found ? found : own;
}

/* The definition of MPI_name behind this one: a tool that is preloaded, too, would not be called by PMPI_name. */
#define NEXT(name) ((__typeof__(&PMPI_##name))next("MPI_" #name, (void *)PMPI_##name))

int MPI_Init(int *argc, char ***argv) {
    mel_begin();
    int failed = NEXT(Init)(argc, argv);
    if (failed == MPI_SUCCESS) {
        mel_ready();
    }
    return failed;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    mel_begin();
    int failed = NEXT(Init_thread)(argc, argv, required, provided);
    if (failed == MPI_SUCCESS) {
        mel_ready();
    }
    return failed;
}

int MPI_Finalize(void) {
    mel_end(true);
    return NEXT(Finalize)();
}

int MPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session) {
    mel_begin();
    return NEXT(Session_init)(info, errhandler, session);
}

/* A program that uses sessions alone has no end that could be wrapped, and one that fails may not reach its own. */
__attribute__((destructor)) static void leave(void) {
    mel_end(false);
}

int MPI_Comm_free(MPI_Comm *comm) {
    mel_comm_gone(*comm);
    return NEXT(Comm_free)(comm);
}

int MPI_Comm_disconnect(MPI_Comm *comm) {
    mel_comm_gone(*comm);
    return NEXT(Comm_disconnect)(comm);
}

/* MAKES(name, parameters, arguments, new): a function that makes a communicator. The one that MPI_Comm_idup makes can
 * have handles at once, though it cannot be used yet. */
#define MAKES(name, parameters, arguments, new)   \
    int MPI_##name parameters {                   \
        int failed = NEXT(name) arguments;        \
        if (failed == MPI_SUCCESS) {              \
            mel_comm_made(*new);                  \
        }                                         \
        return failed;                            \
    }

MAKES(Comm_dup, (MPI_Comm comm, MPI_Comm *made), (comm, made), made)
MAKES(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *made), (comm, info, made), made)
MAKES(Comm_idup, (MPI_Comm comm, MPI_Comm *made, MPI_Request *request), (comm, made, request), made)
MAKES(Comm_idup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *made, MPI_Request *request),
      (comm, info, made, request), made)
MAKES(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *made), (comm, group, made), made)
MAKES(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made), (comm, group, tag, made), made)
MAKES(Comm_create_from_group,
      (MPI_Group group, const char *tag, MPI_Info info, MPI_Errhandler errhandler, MPI_Comm *made),
      (group, tag, info, errhandler, made), made)
MAKES(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *made), (comm, color, key, made), made)
MAKES(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made), (comm, type, key, info, made), made)
MAKES(Comm_accept, (const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made),
      (port, info, root, comm, made), made)
MAKES(Comm_connect, (const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made),
      (port, info, root, comm, made), made)
MAKES(Comm_join, (int fd, MPI_Comm *made), (fd, made), made)
MAKES(Comm_spawn,
      (const char *command, char *argv[], int most, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made, int errors[]),
      (command, argv, most, info, root, comm, made, errors), made)
MAKES(Comm_spawn_multiple,
      (int count, char *commands[], char **argvs[], const int most[], const MPI_Info infos[], int root, MPI_Comm comm,
       MPI_Comm *made, int errors[]),
      (count, commands, argvs, most, infos, root, comm, made, errors), made)
MAKES(Cart_create, (MPI_Comm comm, int count, const int dims[], const int periods[], int reorder, MPI_Comm *made),
      (comm, count, dims, periods, reorder, made), made)
MAKES(Cart_sub, (MPI_Comm comm, const int remain[], MPI_Comm *made), (comm, remain, made), made)
MAKES(Graph_create, (MPI_Comm comm, int count, const int index[], const int edges[], int reorder, MPI_Comm *made),
      (comm, count, index, edges, reorder, made), made)
MAKES(Dist_graph_create,
      (MPI_Comm comm, int count, const int sources[], const int degrees[], const int destinations[], const int weights[],
       MPI_Info info, int reorder, MPI_Comm *made),
      (comm, count, sources, degrees, destinations, weights, info, reorder, made), made)
MAKES(Dist_graph_create_adjacent,
      (MPI_Comm comm, int in, const int sources[], const int sourceweights[], int out, const int destinations[],
       const int destweights[], MPI_Info info, int reorder, MPI_Comm *made),
      (comm, in, sources, sourceweights, out, destinations, destweights, info, reorder, made), made)
MAKES(Intercomm_create, (MPI_Comm comm, int leader, MPI_Comm peer, int remote, int tag, MPI_Comm *made),
      (comm, leader, peer, remote, tag, made), made)
MAKES(Intercomm_create_from_groups,
      (MPI_Group local, int leader, MPI_Group remote, int remote_leader, const char *tag, MPI_Info info,
       MPI_Errhandler errhandler, MPI_Comm *made),
      (local, leader, remote, remote_leader, tag, info, errhandler, made), made)
MAKES(Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm *made), (comm, high, made), made)

int MPI_Win_free(MPI_Win *win) {
    mel_win_gone(*win);
    return NEXT(Win_free)(win);
}

int MPI_File_open(MPI_Comm comm, const char *name, int mode, MPI_Info info, MPI_File *file) {
    int failed = NEXT(File_open)(comm, name, mode, info, file);
    if (failed == MPI_SUCCESS) {
        mel_file_opened(*file);
    }
    return failed;
}

int MPI_File_close(MPI_File *file) {
    mel_file_gone(*file);
    return NEXT(File_close)(file);
}

/* The same for windows. */
#define MAKES_WIN(name, parameters, arguments)    \
    int MPI_##name parameters {                   \
        int failed = NEXT(name) arguments;        \
        if (failed == MPI_SUCCESS) {              \
            mel_win_made(*win);                   \
        }                                         \
        return failed;                            \
    }

MAKES_WIN(Win_create, (void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *win),
          (base, size, unit, info, comm, win))
MAKES_WIN(Win_create_c, (void *base, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, MPI_Win *win),
          (base, size, unit, info, comm, win))
MAKES_WIN(Win_allocate, (MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win),
          (size, unit, info, comm, base, win))
MAKES_WIN(Win_allocate_c, (MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win),
          (size, unit, info, comm, base, win))
MAKES_WIN(Win_allocate_shared, (MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win),
          (size, unit, info, comm, base, win))
MAKES_WIN(Win_allocate_shared_c, (MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win),
          (size, unit, info, comm, base, win))
MAKES_WIN(Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win *win), (info, comm, win))
