/* What the calls of hostile.c are made on. */
/* Objects that last, and handles that are no longer any. */
static struct {
    MPI_Comm comm, cart, graph, dist;
    MPI_Datatype type, uncommitted;
    MPI_Op op;
    MPI_Group group;
    MPI_Info info;
    MPI_File file;
    MPI_Win win, locked, dynamic;
    MPI_Errhandler errhandler;
    MPI_Session session;
    MPI_Request persistent, partitioned;
    int comm_keyval, type_keyval, win_keyval, freed_keyval;
    MPI_T_cvar_handle cvar;
    MPI_T_pvar_session pvar_session;
    MPI_T_pvar_handle pvar;
    MPI_T_event_registration event;
    MPI_T_enum enumeration;
    peruse_event_h peruse, peruse_win, peruse_file;
} good;
static struct {
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Op op;
    MPI_Group group;
    MPI_Info info;
    MPI_File file;
    MPI_Win win;
    MPI_Errhandler errhandler;
    MPI_Session session;
    MPI_Request request;
} freed;
static char window_memory[1 << 12];

static void function_of_user(void *a, void *b, int *n, MPI_Datatype *t) { (void)a; (void)b; (void)n; (void)t; }
static void handler_of_user(MPI_Comm *comm, int *code, ...) { (void)comm; (void)code; }
/* Stands for every callback: gives MPI_SUCCESS and touches nothing. */
static int callback(void) { return MPI_SUCCESS; }

static int peruse_callback(peruse_event_h event, MPI_Aint id, peruse_comm_spec_t *spec, void *param)
{
    (void)event; (void)id; (void)spec; (void)param;
    return MPI_SUCCESS;
}
static int peruse_win_callback(peruse_event_h event, MPI_Aint id, peruse_win_spec_t *spec, void *param)
{
    (void)event; (void)id; (void)spec; (void)param;
    return MPI_SUCCESS;
}
static int peruse_file_callback(peruse_event_h event, MPI_Aint id, peruse_file_spec_t *spec, void *param)
{
    (void)event; (void)id; (void)spec; (void)param;
    return MPI_SUCCESS;
}
static int query(void *extra, MPI_Status *status)
{
    (void)extra;
    MPI_Status_set_elements(status, MPI_INT, 0);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}
static int no_free(void *extra) { (void)extra; return MPI_SUCCESS; }
static int no_cancel(void *extra, int complete) { (void)extra; (void)complete; return MPI_SUCCESS; }

static MPI_Win new_win(void)
{
    MPI_Win win;
    MUST(MPI_Win_create(window_memory, sizeof window_memory, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win));
    MUST(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    return win;
}

static MPI_File new_file(void)
{
    MPI_File file;
    MUST(MPI_File_open(MPI_COMM_SELF, "data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    return file;
}

static void prepare(void)
{
    int one = 1, zero = 0, provided;
    MUST(MPI_Init_thread(NULL, NULL, MPI_THREAD_SINGLE, &provided));
    MUST(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    MUST(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MUST(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    MUST(MPI_Comm_dup(MPI_COMM_SELF, &freed.comm));
    MUST(MPI_Comm_dup(MPI_COMM_SELF, &good.comm));
    MUST(MPI_Cart_create(MPI_COMM_SELF, 1, &one, &one, 0, &good.cart));
    MUST(MPI_Graph_create(MPI_COMM_SELF, 1, &one, &zero, 0, &good.graph));
    MUST(MPI_Dist_graph_create_adjacent(MPI_COMM_SELF, 1, &zero, MPI_UNWEIGHTED, 1, &zero, MPI_UNWEIGHTED,
                                        MPI_INFO_NULL, 0, &good.dist));
    MUST(MPI_Type_contiguous(2, MPI_INT, &freed.type));
    MUST(MPI_Type_contiguous(2, MPI_INT, &good.type));
    MUST(MPI_Type_commit(&good.type));
    MUST(MPI_Type_contiguous(2, MPI_INT, &good.uncommitted));
    MUST(MPI_Op_create(function_of_user, 1, &freed.op));
    MUST(MPI_Op_create(function_of_user, 1, &good.op));
    MUST(MPI_Comm_group(MPI_COMM_SELF, &freed.group));
    MUST(MPI_Comm_group(MPI_COMM_SELF, &good.group));
    MUST(MPI_Info_create(&freed.info));
    MUST(MPI_Info_create(&good.info));
    MUST(MPI_Info_set(good.info, "key", "value"));
    freed.file = new_file();
    good.file = new_file();
    freed.win = new_win();
    good.win = new_win();
    good.locked = new_win();
    MUST(MPI_Win_lock_all(0, good.locked));
    MUST(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_SELF, &good.dynamic));
    MUST(MPI_Win_set_errhandler(good.dynamic, MPI_ERRORS_RETURN));
    MUST(MPI_Comm_create_errhandler(handler_of_user, &freed.errhandler));
    MUST(MPI_Comm_create_errhandler(handler_of_user, &good.errhandler));
    MUST(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &freed.session));
    MUST(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &good.session));
    MUST(MPI_Recv_init(slots, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, &freed.request));
    MUST(MPI_Recv_init(slots, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, &good.persistent));
    MUST(MPI_Psend_init(slots, 4, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, MPI_INFO_NULL, &good.partitioned));
    MUST(MPI_Start(&good.partitioned));
    MUST(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &good.freed_keyval, NULL));
    MUST(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &good.comm_keyval, NULL));
    MUST(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &good.type_keyval, NULL));
    MUST(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &good.win_keyval, NULL));
    int count, keyval = good.freed_keyval;
    MUST(MPI_T_cvar_handle_alloc(0, NULL, &good.cvar, &count));
    MUST(MPI_T_pvar_session_create(&good.pvar_session));
    MUST(MPI_T_pvar_handle_alloc(good.pvar_session, 0, &good.comm, &good.pvar, &count));
    MUST(PERUSE_Init());
    MUST(PERUSE_Event_comm_register(PERUSE_COMM_REQ_ACTIVATE, good.comm, peruse_callback, NULL, &good.peruse));
    MUST(PERUSE_Event_win_register(PERUSE_WIN_REQ_ACTIVATE, good.win, peruse_win_callback, NULL, &good.peruse_win));
    MUST(PERUSE_Event_file_register(PERUSE_FILE_REQ_ACTIVATE, good.file, peruse_file_callback, NULL, &good.peruse_file));
    MUST(MPI_T_event_handle_alloc(0, &good.comm, MPI_INFO_NULL, &good.event));

    MPI_Comm comm = freed.comm;
    MPI_Datatype type = freed.type;
    MPI_Op op = freed.op;
    MPI_Group group = freed.group;
    MPI_Info info = freed.info;
    MPI_File file = freed.file;
    MPI_Win win = freed.win;
    MPI_Errhandler errhandler = freed.errhandler;
    MPI_Session session = freed.session;
    MPI_Request request = freed.request;
    MUST(MPI_Comm_free(&comm));
    MUST(MPI_Type_free(&type));
    MUST(MPI_Op_free(&op));
    MUST(MPI_Group_free(&group));
    MUST(MPI_Info_free(&info));
    MUST(MPI_File_close(&file));
    MUST(MPI_Win_free(&win));
    MUST(MPI_Errhandler_free(&errhandler));
    MUST(MPI_Session_finalize(&session));
    MUST(MPI_Request_free(&request));
    MUST(MPI_Comm_free_keyval(&keyval));
}
