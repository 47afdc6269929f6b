/* peruse.h: the MPI PERUSE 2.0 interface of perusal.
 *
 * What a tool may rely on, event by event, stands in docs/peruse.md; how to write one in docs/writing-a-peruse-tool.md.
 * Where the specification uses two spellings for one thing, both are here. */
#ifndef PERUSE_H
#define PERUSE_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PERUSE_VERSION 2
#define PERUSE_SUBVERSION 0

/* ---- types (section 5.1) ---- */

/* An event handle. Never 0 while it is valid; a released one is refused for good. */
typedef long peruse_event_h;
typedef peruse_event_h peruse_event_handle;

/* The request, or the message, that an event belongs to. Valid until the callback returns. */
typedef struct peruse_comm_spec_t {
    MPI_Comm comm;         /* the communicator of the operation */
    void *buf;             /* the user's buffer; NULL for a message that no receive has met */
    int count;             /* elements of datatype; a larger number reads INT_MAX */
    MPI_Datatype datatype; /* MPI_BYTE where buf is NULL */
    int peer;              /* rank of the other side in comm; MPI_ANY_SOURCE at most until the match */
    int tag;               /* MPI_ANY_TAG at most until the match */
    int operation;         /* PERUSE_SEND, PERUSE_RECV, ... */
} peruse_comm_spec_t;

/* A callback, written `peruse_comm_callback_f *` or `peruse_comm_callback_t *`. It returns MPI_SUCCESS; anything else
 * ends the job. It may call local enquiries (docs/peruse.md lists them) and every function below; any other MPI call is
 * an error. */
typedef int(peruse_comm_callback_f)(peruse_event_h event_h, MPI_Aint unique_id, peruse_comm_spec_t *spec, void *param);
typedef peruse_comm_callback_f peruse_comm_callback_t;

/* The one-sided operation, or the call that synchronises a window, that an event belongs to (appendix E, section 12.3).
 * Valid until the callback returns. */
typedef struct peruse_win_spec_t {
    MPI_Win win;             /* the window */
    void *o_buf;             /* the origin's buffer; NULL for a synchronisation */
    int o_count;             /* elements there; a larger number reads INT_MAX */
    MPI_Datatype o_datatype; /* MPI_DATATYPE_NULL for a synchronisation */
    void *t_buf;             /* the address of the target's elements, in the target's process */
    int t_count;
    MPI_Datatype t_datatype;
    MPI_Op acc_op;           /* of an accumulate; else MPI_OP_NULL */
    int peer;                /* rank of the target in the window's group; -1: all of them, or none */
    int operation;           /* PERUSE_PUT, PERUSE_GET, PERUSE_ACC, PERUSE_WIN_FENCE, ... */
} peruse_win_spec_t;

/* A callback for the events of a window, with the duties of a peruse_comm_callback_f. */
typedef int(peruse_win_callback_f)(peruse_event_h event_h, MPI_Aint unique_id, peruse_win_spec_t *spec, void *param);
typedef peruse_win_callback_f peruse_win_callback_t;

/* The access to a file that an event belongs to (appendix E, section 12.2.4). Valid until the callback returns. */
typedef struct peruse_file_spec_t {
    MPI_File file;         /* the file */
    void *buf;             /* the user's buffer */
    int count;             /* elements there; a larger number reads INT_MAX */
    MPI_Datatype datatype; /* their type */
    MPI_Offset offset;     /* bytes from the beginning of the file; -1: not known yet */
    int operation;         /* PERUSE_IO_READ, PERUSE_IO_WRITE */
} peruse_file_spec_t;

/* A callback for the events of a file, with the duties of a peruse_comm_callback_f. */
typedef int(peruse_file_callback_f)(peruse_event_h event_h, MPI_Aint unique_id, peruse_file_spec_t *spec, void *param);
typedef peruse_file_callback_f peruse_file_callback_t;

/* ---- constants (appendix D) ---- */

enum {
    PERUSE_SUCCESS = 0,
    PERUSE_ERR_INIT = 1,         /* PERUSE_Init has not been called, or MPI is finalised */
    PERUSE_ERR_GENERIC = 2,      /* unspecified */
    PERUSE_ERR_MALLOC = 3,       /* out of memory or of handles */
    PERUSE_ERR_EVENT = 4,        /* no such event */
    PERUSE_ERR_EVENT_HANDLE = 5, /* no such handle, or active where it must be inactive */
    PERUSE_ERR_PARAMETER = 6,    /* a null pointer */
    PERUSE_ERR_MPI_INIT = 7,     /* MPI is not initialised, or finalised */
    PERUSE_ERR_COMM = 8,         /* no such communicator */
    PERUSE_ERR_MPI_OBJECT = 9,   /* the communicator, window or file of the handle is freed */
    PERUSE_ERR_LOCK = 10,        /* the caller does not hold the lock */
    PERUSE_ERR_UNLOCK = 11,      /* returned by nothing: PERUSE_Unlock says PERUSE_ERR_LOCK (section 5.2.17) */
    PERUSE_ERR_LOCK_NOT_GRANTABLE = 12, /* the caller would wait for itself */
    PERUSE_LOCK_NOT_GRANTABLE = PERUSE_ERR_LOCK_NOT_GRANTABLE,
    PERUSE_ERR_WIN = 13, /* no such window (section 12.3.1) */
    PERUSE_ERR_FILE = 14 /* no such file (section 12.2.1) */
};

/* Event descriptors. */
enum {
    PERUSE_EVENT_INVALID = 0,

    /* requests (section 4.3); one unique id from ACTIVATE to NOTIFY */
    PERUSE_COMM_REQ_ACTIVATE = 1,
    PERUSE_COMM_REQ_MATCH_UNEX = 2,
    PERUSE_COMM_REQ_INSERT_IN_POSTED_Q = 3,
    PERUSE_COMM_REQ_REMOVE_FROM_POSTED_Q = 4,
    PERUSE_COMM_REQ_XFER_BEGIN = 5,
    PERUSE_COMM_REQ_XFER_END = 6,
    PERUSE_COMM_REQ_COMPLETE = 7,
    PERUSE_COMM_REQ_NOTIFY = 8,

    /* messages (section 4.3); one unique id from ARRIVED to REMOVE_FROM_UNEX_Q or MATCH_POSTED_REQ */
    PERUSE_COMM_MSG_ARRIVED = 9,
    PERUSE_COMM_MSG_INSERT_IN_UNEX_Q = 10,
    PERUSE_COMM_MSG_REMOVE_FROM_UNEX_Q = 11,
    PERUSE_COMM_MSG_MATCH_POSTED_REQ = 12,

    /* searches (section 4.4); one unique id from BEGIN to END */
    PERUSE_COMM_SEARCH_POSTED_Q_BEGIN = 13,
    PERUSE_COMM_SEARCH_POSTED_Q_END = 14,
    PERUSE_COMM_SEARCH_UNEX_QUEUE_BEGIN = 15,
    PERUSE_COMM_SEARCH_UNEX_Q_BEGIN = PERUSE_COMM_SEARCH_UNEX_QUEUE_BEGIN,
    PERUSE_COMM_SEARCH_UNEX_Q_END = 16,
    PERUSE_COMM_SEARCH_UNEX_QUEUE_END = PERUSE_COMM_SEARCH_UNEX_Q_END,

    /* perusal's own: each piece of a large message after the first; the request's unique id */
    PERUSE_FIRST_CUSTOM_EVENT = 17,
    PERUSE_COMM_REQ_XFER_CONTINUE = PERUSE_FIRST_CUSTOM_EVENT,

    /* one-sided operations (section 12.6); one unique id from ACTIVATE to COMPLETE */
    PERUSE_WIN_REQ_ACTIVATE = 32,
    PERUSE_WIN_REQ_XFER_BEGIN = 33,
    PERUSE_WIN_REQ_XFER_END = 34,
    PERUSE_WIN_REQ_COMPLETE = 35,

    /* calls that synchronise a window (section 12.6); one unique id from BEGIN to END */
    PERUSE_WIN_SYNC_BEGIN = 36,
    PERUSE_WIN_SYNC_END = 37,

    /* accesses to files (section 12.2); one unique id from ACTIVATE to COMPLETE */
    PERUSE_FILE_REQ_ACTIVATE = 53,
    PERUSE_FILE_REQ_XFER_BEGIN = 54,
    PERUSE_FILE_REQ_XFER_END = 55,
    PERUSE_FILE_REQ_COMPLETE = 56,
    PERUSE_FILE_DISK_ACCESS = 57,
    PERUSE_FILE_N_DISK_ACCESSES_PER_IOREQ = PERUSE_FILE_DISK_ACCESS,
    PERUSE_FILE_SHARED_POINTER_BEGIN = 58,
    PERUSE_FILE_SHARED_POINTER_END = 59
};

/* Scope of the queue events. perusal's is PERUSE_PER_COMM. */
enum { PERUSE_PER_COMM = 0, PERUSE_PER_TAG = 1, PERUSE_PER_SOURCE = 2, PERUSE_GLOBAL = 3, PERUSE_PER_PEER = 4 };

/* The operation of a peruse_comm_spec_t, peruse_win_spec_t or peruse_file_spec_t. */
enum {
    PERUSE_SEND = 0,
    PERUSE_RECV = 1,
    PERUSE_PUT = 2,
    PERUSE_GET = 3,
    PERUSE_ACC = 4,
    PERUSE_IO_READ = 5,
    PERUSE_IO_WRITE = 6,
    PERUSE_WIN_FENCE = 7,
    PERUSE_WIN_START = 8,
    PERUSE_WIN_COMPLETE = 9,
    PERUSE_WIN_POST = 10,
    PERUSE_WIN_WAIT = 11,
    PERUSE_WIN_LOCK = 12,
    PERUSE_WIN_UNLOCK = 13,
    /* perusal's own */
    PERUSE_WIN_TEST = 14,
    PERUSE_WIN_LOCK_ALL = 15,
    PERUSE_WIN_UNLOCK_ALL = 16,
    PERUSE_WIN_FLUSH = 17,
    PERUSE_WIN_SYNC = 18
};

/* Modes of PERUSE_Event_propagate. */
enum { PERUSE_FALSE = 0, PERUSE_TRUE = 1 };

#define PERUSE_EVENT_HANDLE_NULL ((peruse_event_h)0)

/* ---- environment (5.2.1 to 5.2.6). What the queries point to is perusal's, and stays until MPI_Finalize. ---- */

int PERUSE_Init(void);
int PERUSE_Query_supported_events(int *num_supported, char ***event_names, int **events);
int PERUSE_Query_event(const char *event_name, int *event);
int PERUSE_Query_event_name(int event, char **event_name);
int PERUSE_Query_environment(int *env_size, char ***env);
int PERUSE_Query_queue_event_scope(int *scope);

/* ---- handles (5.2.7 to 5.2.15) ---- */

int PERUSE_Event_comm_register(int event, MPI_Comm comm, peruse_comm_callback_f *callback_fn, void *param,
                               peruse_event_h *event_h);
int PERUSE_Event_activate(peruse_event_h event_h);
int PERUSE_Event_deactivate(peruse_event_h event_h);
int PERUSE_Event_release(peruse_event_h *event_h);
int PERUSE_Event_get(peruse_event_h event_h, int *event);
int PERUSE_Event_object_get(peruse_event_h event_h, void **mpi_object);
int PERUSE_Event_comm_callback_set(peruse_event_h event_h, peruse_comm_callback_f *callback_fn, void *param);
int PERUSE_Event_comm_callback_get(peruse_event_h event_h, peruse_comm_callback_f **callback_fn, void **param);
int PERUSE_Event_propagate(peruse_event_h event_h, int mode);

/* ---- windows (appendix E, 12.3) ---- */

int PERUSE_Event_win_register(int event, MPI_Win win, peruse_win_callback_f *callback_fn, void *param,
                              peruse_event_h *event_h);
int PERUSE_Event_win_callback_set(peruse_event_h event_h, peruse_win_callback_f *callback_fn, void *param);
int PERUSE_Event_win_callback_get(peruse_event_h event_h, peruse_win_callback_f **callback_fn, void **param);

/* ---- files (appendix E, 12.2) ---- */

int PERUSE_Event_file_register(int event, MPI_File file, peruse_file_callback_f *callback_fn, void *param,
                               peruse_event_h *event_h);
int PERUSE_Event_file_callback_set(peruse_event_h event_h, peruse_file_callback_f *callback_fn, void *param);
int PERUSE_Event_file_callback_get(peruse_event_h event_h, peruse_file_callback_f **callback_fn, void **param);

/* ---- mutual exclusion (5.2.16, 5.2.17) ---- */

int PERUSE_Lock(void);
int PERUSE_Unlock(void);

#ifdef __cplusplus
}
#endif

#endif /* PERUSE_H */
