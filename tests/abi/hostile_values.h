/* The values that hostile.c gives arguments, by their kind; the first of a kind is right, if any is. */
/* Whether the function's name contains this. */
static int has(const struct function *f, const char *part) { return strstr(f->name, part) != NULL; }

static char *slot(int argument) { return slots + (size_t)argument * (SLOT + 4096); }

static struct value *into;
static void add(intptr_t value, const char *text, classes wrong)
{
    into->value = value;
    into->text = text;
    into->wrong = wrong;
    into++;
}
#define ADD(value, wrong) add((intptr_t)(value), #value, wrong)

/* The values that no handle of this kind has. */
static void add_no_handles(intptr_t own_null, const char *null_text, classes wrong, classes null_wrong, intptr_t was)
{
    add(own_null, null_text, null_wrong);
    add(0, "(handle)0", wrong);
    add(1, "(handle)1", wrong);
    add(own_null == (intptr_t)MPI_COMM_NULL ? (intptr_t)MPI_INT : (intptr_t)MPI_COMM_SELF, "a predefined handle of another kind", wrong);
    add(own_null == (intptr_t)MPI_INFO_NULL ? (intptr_t)good.group : (intptr_t)good.info, "a handle of another kind", wrong);
    add(1023, "(handle)1023", wrong);
    add(-1, "(handle)-1", wrong);
    add((intptr_t)0x7fffdeadbeefLL, "a handle of nothing", wrong);
    add((intptr_t)slots, "an address as a handle", wrong);
    if (was) add(was, "a freed handle", wrong);
}

/* By address: a slot that holds the value. */
static void by_address(struct value *from, int argument, classes null_wrong)
{
    int n = 0;
    for (struct value *v = from; v < into; v++, n++) {
        intptr_t *at = (intptr_t *)(slot(argument) + 64 * n);
        for (int i = 0; i < 8; i++) at[i] = v->value;
        v->value = (intptr_t)at;
    }
    add(0, "NULL", null_wrong);
}

static MPI_Request new_request(const struct function *f)
{
    MPI_Request request;
    if (has(f, "Start") || has(f, "Request_free")) {
        MUST(MPI_Recv_init(slots, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, &request));
    } else {
        MUST(MPI_Irecv(slots, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, &request));
    }
    return request;
}

/* A tool's handle for a call that frees it. */
static intptr_t new_tool_handle(enum kind kind)
{
    int count;
    MPI_T_cvar_handle cvar;
    MPI_T_pvar_handle pvar;
    MPI_T_pvar_session session;
    peruse_event_h event;
    switch (kind) {
    case K_T_CVAR_HANDLE_AT: MUST(MPI_T_cvar_handle_alloc(0, NULL, &cvar, &count)); return (intptr_t)cvar;
    case K_T_PVAR_HANDLE_AT:
        MUST(MPI_T_pvar_handle_alloc(good.pvar_session, 0, &good.comm, &pvar, &count));
        return (intptr_t)pvar;
    case K_T_PVAR_SESSION_AT: MUST(MPI_T_pvar_session_create(&session)); return (intptr_t)session;
    default:
        MUST(PERUSE_Event_comm_register(PERUSE_COMM_REQ_ACTIVATE, good.comm, peruse_callback, NULL, &event));
        return event;
    }
}

/* The values of an argument. What is right and is made for this call alone is made only if `fresh`. */
static int values_of(const struct function *f, int argument, struct value *values, int any_wrong, int fresh)
{
    enum kind kind = f->parameters[argument].kind;
    int open = phase == RUNNING || phase == BY_CHANCE;
    char *here = slot(argument);
    struct value *start = into = values;
    fresh = fresh && open;
    switch (kind) {
    case K_COMM:
        if (!open || has(f, "_set_errhandler") || has(f, "_attach_buffer")) ADD(MPI_COMM_SELF, RIGHT);
        else if (has(f, "Cart") && !has(f, "Cart_create") && !has(f, "Cart_map")) ADD(good.cart, RIGHT);
        else if (has(f, "eighbor_")) ADD(good.cart, RIGHT);
        else if (has(f, "Dist_graph_neighbors")) ADD(good.dist, RIGHT);
        else if (has(f, "Graph") && !has(f, "create") && !has(f, "map")) ADD(good.graph, RIGHT);
        else ADD(good.comm, RIGHT);
        add_no_handles((intptr_t)MPI_COMM_NULL, "MPI_COMM_NULL", BIT(MPI_ERR_COMM),
                       has(f, "_toint") || has(f, "get_name") ? EVERY : BIT(MPI_ERR_COMM), (intptr_t)freed.comm);
        break;
    case K_COMM_AT: {
        MPI_Comm comm = good.comm;
        if (fresh) MUST(MPI_Comm_dup(MPI_COMM_SELF, &comm));
        add((intptr_t)comm, "a communicator", RIGHT);
        add((intptr_t)MPI_COMM_WORLD, "MPI_COMM_WORLD", BIT(MPI_ERR_COMM));
        add_no_handles((intptr_t)MPI_COMM_NULL, "MPI_COMM_NULL", BIT(MPI_ERR_COMM), BIT(MPI_ERR_COMM), (intptr_t)freed.comm);
        by_address(start, argument, BIT(MPI_ERR_ARG) | BIT(MPI_ERR_COMM));
        break;
    }
    case K_DATATYPE:
    case K_ANY_DATATYPE:
        ADD(MPI_INT, RIGHT);
        if (open) ADD(good.uncommitted, kind == K_DATATYPE ? BIT(MPI_ERR_TYPE) : EVERY);
        add_no_handles((intptr_t)MPI_DATATYPE_NULL, "MPI_DATATYPE_NULL", BIT(MPI_ERR_TYPE), has(f, "get_name") || has(f, "mrecv") || has(f, "Mrecv") ? EVERY : BIT(MPI_ERR_TYPE),
                       (intptr_t)freed.type);
        break;
    case K_DATATYPE_AT: {
        MPI_Datatype type = good.type;
        if (fresh) MUST(MPI_Type_contiguous(2, MPI_INT, &type));
        add((intptr_t)type, "a datatype", RIGHT);
        add((intptr_t)MPI_INT, "MPI_INT", has(f, "_free") ? BIT(MPI_ERR_TYPE) : EVERY);
        add_no_handles((intptr_t)MPI_DATATYPE_NULL, "MPI_DATATYPE_NULL", BIT(MPI_ERR_TYPE), BIT(MPI_ERR_TYPE), (intptr_t)freed.type);
        by_address(start, argument, BIT(MPI_ERR_ARG) | BIT(MPI_ERR_TYPE));
        break;
    }
    case K_OP:
        ADD(MPI_SUM, RIGHT);
        if (has(f, "ccumulate") || has(f, "Fetch_and_op")) ADD(good.op, BIT(MPI_ERR_OP));
        else ADD(MPI_REPLACE, has(f, "commutative") || has(f, "_toint") ? EVERY : BIT(MPI_ERR_OP));
        add_no_handles((intptr_t)MPI_OP_NULL, "MPI_OP_NULL", BIT(MPI_ERR_OP), BIT(MPI_ERR_OP), (intptr_t)freed.op);
        break;
    case K_OP_AT: {
        MPI_Op op = good.op;
        if (fresh) MUST(MPI_Op_create(function_of_user, 1, &op));
        add((intptr_t)op, "an operation", RIGHT);
        add((intptr_t)MPI_SUM, "MPI_SUM", BIT(MPI_ERR_OP));
        add_no_handles((intptr_t)MPI_OP_NULL, "MPI_OP_NULL", BIT(MPI_ERR_OP), BIT(MPI_ERR_OP), (intptr_t)freed.op);
        by_address(start, argument, BIT(MPI_ERR_ARG) | BIT(MPI_ERR_OP));
        break;
    }
    case K_GROUP:
        if (!open || has(f, "Win_")) ADD(MPI_GROUP_EMPTY, RIGHT);
        else ADD(good.group, RIGHT);
        add_no_handles((intptr_t)MPI_GROUP_NULL, "MPI_GROUP_NULL", BIT(MPI_ERR_GROUP), BIT(MPI_ERR_GROUP), (intptr_t)freed.group);
        break;
    case K_GROUP_AT: {
        MPI_Group group = good.group;
        if (fresh) MUST(MPI_Comm_group(MPI_COMM_SELF, &group));
        add((intptr_t)group, "a group", RIGHT);
        add_no_handles((intptr_t)MPI_GROUP_NULL, "MPI_GROUP_NULL", BIT(MPI_ERR_GROUP), BIT(MPI_ERR_GROUP), (intptr_t)freed.group);
        by_address(start, argument, BIT(MPI_ERR_ARG) | BIT(MPI_ERR_GROUP));
        break;
    }
    case K_REQUEST: {
        MPI_Request request = MPI_REQUEST_NULL;
        if (open && (has(f, "Pready") || has(f, "Parrived"))) request = good.partitioned;
        else if (fresh && has(f, "Grequest_complete")) MUST(MPI_Grequest_start(query, no_free, no_cancel, NULL, &request));
        else if (open) request = good.persistent;
        add((intptr_t)request, "a request", has(f, "Parrived") ? EVERY : RIGHT);
        int null_right = has(f, "get_status") || has(f, "Parrived");
        add_no_handles((intptr_t)MPI_REQUEST_NULL, "MPI_REQUEST_NULL", BIT(MPI_ERR_REQUEST),
                       null_right ? EVERY : BIT(MPI_ERR_REQUEST), (intptr_t)freed.request);
        break;
    }
    case K_REQUEST_AT:
    case K_REQUESTS: {
        MPI_Request request = fresh ? new_request(f) : good.persistent;
        classes in_status = kind == K_REQUESTS ? BIT(MPI_ERR_IN_STATUS) : 0;
        add((intptr_t)request, "a request", kind == K_REQUESTS ? EVERY : RIGHT);
        int null_wrong = has(f, "Start") || has(f, "Cancel") || has(f, "_free");
        add_no_handles((intptr_t)MPI_REQUEST_NULL, "MPI_REQUEST_NULL", BIT(MPI_ERR_REQUEST) | in_status,
                       null_wrong ? BIT(MPI_ERR_REQUEST) : RIGHT, (intptr_t)freed.request);
        by_address(start, argument, BIT(MPI_ERR_ARG) | BIT(MPI_ERR_REQUEST));
        break;
    }
    case K_INFO:
        ADD(MPI_INFO_NULL, has(f, "MPI_Info_") && !has(f, "int") ? BIT(MPI_ERR_INFO) : EVERY);
        if (open) add((intptr_t)good.info, "an info object", RIGHT);
        add_no_handles((intptr_t)MPI_INFO_NULL, "MPI_INFO_NULL", BIT(MPI_ERR_INFO),
                       has(f, "MPI_Info_") && !has(f, "int") ? BIT(MPI_ERR_INFO) : EVERY, (intptr_t)freed.info);
        break;
    case K_INFO_AT: {
        MPI_Info info = good.info;
        if (fresh) MUST(MPI_Info_create(&info));
        add((intptr_t)info, "an info object", open ? RIGHT : EVERY);
        add((intptr_t)MPI_INFO_ENV, "MPI_INFO_ENV", BIT(MPI_ERR_INFO));
        add_no_handles((intptr_t)MPI_INFO_NULL, "MPI_INFO_NULL", BIT(MPI_ERR_INFO), BIT(MPI_ERR_INFO), (intptr_t)freed.info);
        by_address(start, argument, BIT(MPI_ERR_ARG) | BIT(MPI_ERR_INFO));
        break;
    }
    case K_INFOS:
        add((intptr_t)MPI_INFO_NULL, "MPI_INFO_NULL", EVERY);
        by_address(start, argument, EVERY);
        break;
    case K_DATATYPES:
        add((intptr_t)MPI_INT, "MPI_INT", RIGHT);
        add_no_handles((intptr_t)MPI_DATATYPE_NULL, "MPI_DATATYPE_NULL", BIT(MPI_ERR_TYPE), BIT(MPI_ERR_TYPE), (intptr_t)freed.type);
        by_address(start, argument, BIT(MPI_ERR_ARG) | BIT(MPI_ERR_TYPE) | BIT(MPI_ERR_BUFFER));
        break;
    case K_FILE:
        add((intptr_t)good.file, "a file", open ? RIGHT : EVERY);
        add_no_handles((intptr_t)MPI_FILE_NULL, "MPI_FILE_NULL", BIT(MPI_ERR_FILE),
                       has(f, "errhandler") || has(f, "toint") ? EVERY : BIT(MPI_ERR_FILE), (intptr_t)freed.file);
        break;
    case K_FILE_AT: {
        MPI_File file = fresh ? new_file() : good.file;
        add((intptr_t)file, "a file", RIGHT);
        add_no_handles((intptr_t)MPI_FILE_NULL, "MPI_FILE_NULL", BIT(MPI_ERR_FILE), BIT(MPI_ERR_FILE), (intptr_t)freed.file);
        by_address(start, argument, BIT(MPI_ERR_ARG) | BIT(MPI_ERR_FILE));
        break;
    }
    case K_WIN: {
        int accesses = has(f, "Put") || has(f, "Get") || has(f, "Rput") || has(f, "Rget") || has(f, "ccumulate") ||
                       has(f, "Fetch") || has(f, "swap") || has(f, "flush") || has(f, "Win_sync");
        int attaches = has(f, "attach") || has(f, "detach");
        add((intptr_t)(accesses ? good.locked : attaches ? good.dynamic : good.win), "a window", open ? RIGHT : EVERY);
        add_no_handles((intptr_t)MPI_WIN_NULL, "MPI_WIN_NULL", BIT(MPI_ERR_WIN), has(f, "get_name") ? EVERY : BIT(MPI_ERR_WIN),
                       (intptr_t)freed.win);
        break;
    }
    case K_WIN_AT: {
        MPI_Win win = fresh ? new_win() : good.win;
        add((intptr_t)win, "a window", RIGHT);
        add_no_handles((intptr_t)MPI_WIN_NULL, "MPI_WIN_NULL", BIT(MPI_ERR_WIN), BIT(MPI_ERR_WIN), (intptr_t)freed.win);
        by_address(start, argument, BIT(MPI_ERR_ARG) | BIT(MPI_ERR_WIN));
        break;
    }
    case K_ERRHANDLER:
        ADD(MPI_ERRORS_RETURN, RIGHT);
        add_no_handles((intptr_t)MPI_ERRHANDLER_NULL, "MPI_ERRHANDLER_NULL", BIT(MPI_ERR_ERRHANDLER) | BIT(MPI_ERR_ARG),
                       BIT(MPI_ERR_ERRHANDLER) | BIT(MPI_ERR_ARG), (intptr_t)freed.errhandler);
        break;
    case K_ERRHANDLER_AT: {
        MPI_Errhandler errhandler = good.errhandler;
        if (fresh) MUST(MPI_Comm_create_errhandler(handler_of_user, &errhandler));
        add((intptr_t)errhandler, "an error handler", open ? RIGHT : EVERY);
        add_no_handles((intptr_t)MPI_ERRHANDLER_NULL, "MPI_ERRHANDLER_NULL", BIT(MPI_ERR_ERRHANDLER) | BIT(MPI_ERR_ARG),
                       BIT(MPI_ERR_ERRHANDLER) | BIT(MPI_ERR_ARG), (intptr_t)freed.errhandler);
        by_address(start, argument, BIT(MPI_ERR_ARG) | BIT(MPI_ERR_ERRHANDLER));
        break;
    }
    case K_SESSION:
        add((intptr_t)good.session, "a session", open ? RIGHT : EVERY);
        add_no_handles((intptr_t)MPI_SESSION_NULL, "MPI_SESSION_NULL", BIT(MPI_ERR_SESSION), BIT(MPI_ERR_SESSION), (intptr_t)freed.session);
        break;
    case K_SESSION_AT: {
        MPI_Session session = good.session;
        if (fresh) MUST(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
        add((intptr_t)session, "a session", RIGHT);
        add_no_handles((intptr_t)MPI_SESSION_NULL, "MPI_SESSION_NULL", BIT(MPI_ERR_SESSION), BIT(MPI_ERR_SESSION), (intptr_t)freed.session);
        by_address(start, argument, BIT(MPI_ERR_ARG) | BIT(MPI_ERR_SESSION));
        break;
    }
    case K_MESSAGE:
        ADD(MPI_MESSAGE_NO_PROC, EVERY);
        break;
    case K_MESSAGE_AT:
        add((intptr_t)MPI_MESSAGE_NO_PROC, "MPI_MESSAGE_NO_PROC", RIGHT);
        add_no_handles((intptr_t)MPI_MESSAGE_NULL, "MPI_MESSAGE_NULL", BIT(MPI_ERR_REQUEST) | BIT(MPI_ERR_ARG),
                       BIT(MPI_ERR_REQUEST) | BIT(MPI_ERR_ARG), 0);
        by_address(start, argument, BIT(MPI_ERR_ARG) | BIT(MPI_ERR_REQUEST));
        break;
    case K_COMM_KEYVAL:
    case K_TYPE_KEYVAL:
    case K_WIN_KEYVAL: {
        int right = kind == K_COMM_KEYVAL ? good.comm_keyval : kind == K_TYPE_KEYVAL ? good.type_keyval : good.win_keyval;
        int other = kind == K_COMM_KEYVAL ? good.type_keyval : good.comm_keyval;
        add(right, "a keyval", RIGHT);
        if (open) add(other, "a keyval of another kind", BIT(MPI_ERR_KEYVAL));
        if (open) add(good.freed_keyval, "a freed keyval", BIT(MPI_ERR_KEYVAL));
        ADD(MPI_KEYVAL_INVALID, BIT(MPI_ERR_KEYVAL));
        ADD(-1, BIT(MPI_ERR_KEYVAL));
        ADD(INT_MIN, BIT(MPI_ERR_KEYVAL));
        ADD(INT_MAX, BIT(MPI_ERR_KEYVAL));
        if (!has(f, "_get_attr") && !has(f, "Attr_get")) ADD(MPI_TAG_UB, BIT(MPI_ERR_KEYVAL));
        break;
    }
    case K_KEYVAL_AT: {
        int *at = (int *)here;
        int keyval = 0;
        if (fresh && has(f, "Type")) MUST(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &keyval, NULL));
        else if (fresh && has(f, "Win")) MUST(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &keyval, NULL));
        else if (fresh) MUST(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL));
        int wrong[] = {MPI_KEYVAL_INVALID, -1, INT_MIN, INT_MAX, MPI_TAG_UB, good.freed_keyval};
        at[0] = keyval;
        add((intptr_t)at, "a keyval", open ? RIGHT : EVERY);
        for (int i = 0; i < 6; i++) {
            at[i + 1] = wrong[i];
            add((intptr_t)&at[i + 1], "no keyval", BIT(MPI_ERR_KEYVAL));
        }
        add(0, "NULL", BIT(MPI_ERR_ARG) | BIT(MPI_ERR_KEYVAL));
        break;
    }
    case K_STATUS:
        add((intptr_t)here, "a status", RIGHT);
        ADD(MPI_STATUS_IGNORE, EVERY);
        break;
    case K_STATUS_IN:
        memset(here, 0, sizeof(MPI_Status));
        add((intptr_t)here, "a status", EVERY);
        ADD(MPI_STATUS_IGNORE, BIT(MPI_ERR_ARG));
        memset(here + 1024, 0xff, sizeof(MPI_Status));
        add((intptr_t)here + 1024, "a status of ones", EVERY);
        break;
    case K_ANYTHING:
        add((intptr_t)here, "memory", RIGHT);
        ADD(NULL, EVERY);
        ADD(-1, EVERY);
        break;
    case K_MEMORY: {
        void *memory = NULL;
        if (fresh) MUST(MPI_Alloc_mem(100, MPI_INFO_NULL, &memory));
        add((intptr_t)memory, "memory of MPI_Alloc_mem", open ? RIGHT : EVERY);
        ADD(NULL, EVERY);
        break;
    }
    case K_WINDOW_MEMORY:
        add((intptr_t)here, "memory", RIGHT);
        ADD(NULL, EVERY);
        break;
    case K_BUFFER:
    case K_BUFFER_IN_PLACE:
        add((intptr_t)here, "a buffer", RIGHT);
        ADD(NULL, has(f, "MPI_File_") || has(f, "Put") || has(f, "Get") || has(f, "Rget") || has(f, "Rput") || has(f, "ccumulate")
                      ? BIT(MPI_ERR_BUFFER) | BIT(MPI_ERR_ARG) : BIT(MPI_ERR_BUFFER) | BIT(MPI_ERR_ARG));
        ADD(MPI_IN_PLACE, kind == K_BUFFER ? BIT(MPI_ERR_BUFFER) | BIT(MPI_ERR_ARG) : EVERY);
        if (has(f, "_end")) into[-1].wrong = into[-2].wrong = EVERY;
        break;
    case K_OUT:
    case K_OUT_COMM: case K_OUT_DATATYPE: case K_OUT_OP: case K_OUT_GROUP: case K_OUT_REQUEST: case K_OUT_INFO: case K_OUT_FILE:
    case K_OUT_WIN: case K_OUT_ERRHANDLER: case K_OUT_SESSION: case K_OUT_MESSAGE:
        memset(here, 0, 64);
        add((intptr_t)here, "room", RIGHT);
        /* Without an attribute, or room for a name, there is nothing to put there. */
        if (strcmp(f->parameters[argument].name, "attribute_val") == 0 || strcmp(f->parameters[argument].name, "pset_name") == 0) {
            ADD(NULL, EVERY);
            break;
        }
        ADD(NULL, BIT(MPI_ERR_ARG) | BIT(MPI_ERR_BUFFER) | BIT(MPI_ERR_REQUEST) | BIT(MPI_ERR_KEYVAL) | BIT(MPI_ERR_DIMS));
        break;
    case K_OUT_OR_NULL:
        memset(here, 0, 64);
        *(int *)here = 8;
        add((intptr_t)here, "room", RIGHT);
        ADD(NULL, EVERY);
        break;
    case K_NOTHING:
        ADD(NULL, EVERY);
        break;
    case K_POSITION:
        *(int64_t *)here = 0;
        add((intptr_t)here, "a number", RIGHT);
        *(int64_t *)(here + 64) = -1;
        add((intptr_t)here + 64, "-1", EVERY);
        *(int64_t *)(here + 128) = INT64_MIN;
        add((intptr_t)here + 128, "the least number", EVERY);
        ADD(NULL, BIT(MPI_ERR_ARG) | BIT(MPI_ERR_BUFFER));
        break;
    case K_WORDS:
        memset(here, 0, 64);
        ((char **)here)[0] = here + 32;
        ((char **)here)[2] = NULL;
        if (has(f, "Init")) *(char ***)here = NULL;
        add((intptr_t)here, "words", EVERY);
        ADD(NULL, EVERY);
        break;
    case K_DATAREP:
        add((intptr_t) "external32", "\"external32\"", RIGHT);
        if (has(f, "Register")) {
            into[-1].wrong = BIT(MPI_ERR_DUP_DATAREP);
            /* Once it is registered, views may have it. */
            add((intptr_t) "registered", "\"registered\"", EVERY);
        } else {
            add((intptr_t) "nonsense", "\"nonsense\"",
                BIT(MPI_ERR_ARG) | BIT(MPI_ERR_UNSUPPORTED_DATAREP) | BIT(MPI_ERR_TYPE));
        }
        add((intptr_t) "", "\"\"", BIT(MPI_ERR_ARG) | BIT(MPI_ERR_UNSUPPORTED_DATAREP) | BIT(MPI_ERR_TYPE));
        add((intptr_t)long_text, "a long text", BIT(MPI_ERR_ARG) | BIT(MPI_ERR_UNSUPPORTED_DATAREP) | BIT(MPI_ERR_TYPE));
        ADD(NULL, BIT(MPI_ERR_ARG));
        break;
    case K_FILENAME:
        add((intptr_t) "other", "\"other\"", EVERY);
        add((intptr_t) "", "\"\"", BIT(MPI_ERR_BAD_FILE) | BIT(MPI_ERR_NO_SUCH_FILE) | BIT(MPI_ERR_ARG) | BIT(MPI_ERR_AMODE));
        add((intptr_t) "/no/such/folder", "\"/no/such/folder\"", BIT(MPI_ERR_NO_SUCH_FILE) | BIT(MPI_ERR_BAD_FILE) | BIT(MPI_ERR_AMODE));
        add((intptr_t)long_text, "a long text", BIT(MPI_ERR_BAD_FILE) | BIT(MPI_ERR_ARG) | BIT(MPI_ERR_IO) | BIT(MPI_ERR_AMODE));
        ADD(NULL, BIT(MPI_ERR_ARG) | BIT(MPI_ERR_BAD_FILE));
        break;
    case K_KEY:
        add((intptr_t) "key", "\"key\"", has(f, "_delete") ? EVERY : RIGHT);
        add((intptr_t) "", "\"\"", BIT(MPI_ERR_INFO_KEY));
        add((intptr_t)long_text, "a long text", BIT(MPI_ERR_INFO_KEY));
        ADD(NULL, BIT(MPI_ERR_ARG) | BIT(MPI_ERR_INFO_KEY));
        break;
    case K_STRING:
        add((intptr_t) "name", "\"name\"", EVERY);
        add((intptr_t) "", "\"\"", EVERY);
        add((intptr_t) "\xff\xfe\x80", "a text of no letters", EVERY);
        add((intptr_t)long_text, "a long text", EVERY);
        ADD(NULL, BIT(MPI_ERR_ARG) | BIT(MPI_ERR_INFO_KEY) | BIT(MPI_ERR_INFO_VALUE) | BIT(MPI_ERR_PORT) | BIT(MPI_ERR_NAME) | BIT(MPI_ERR_SERVICE) | OF_TOOL);
        break;
    case K_CALLBACK:
        add((intptr_t)callback, "a function", RIGHT);
        ADD(NULL, EVERY);
        break;
    case K_T_ENUM:
        add((intptr_t)good.enumeration, "an enumeration", EVERY);
        ADD(0, OF_TOOL);
        ADD(-1, OF_TOOL);
        ADD(slots, OF_TOOL);
        break;
#define TOOL_HANDLE(name, from)                                                                                         \
    case name:                                                                                                          \
        add((intptr_t)from, "a handle", EVERY);                                                                         \
        ADD(0, OF_TOOL);                                                                                                \
        ADD(1, has(f, "MPI_T_pvar") ? EVERY : OF_TOOL);                                                             \
        ADD(-1, OF_TOOL);                                                                                               \
        ADD(slots, OF_TOOL);                                                                                            \
        ADD(MPI_COMM_WORLD, OF_TOOL);                                                                                   \
        break;
    TOOL_HANDLE(K_T_CVAR_HANDLE, good.cvar)
    TOOL_HANDLE(K_T_PVAR_HANDLE, good.pvar)
    TOOL_HANDLE(K_T_PVAR_SESSION, good.pvar_session)
    TOOL_HANDLE(K_T_EVENT_REGISTRATION, good.event)
    TOOL_HANDLE(K_P_EVENT, (has(f, "_win_") ? good.peruse_win : has(f, "_file_") ? good.peruse_file : good.peruse))
    case K_P_NUMBER:
        ADD(PERUSE_COMM_REQ_ACTIVATE, EVERY);
        ADD(PERUSE_WIN_REQ_ACTIVATE, EVERY);
        ADD(PERUSE_FILE_REQ_ACTIVATE, EVERY);
        ADD(PERUSE_EVENT_INVALID, OF_TOOL);
        ADD(-1, OF_TOOL);
        ADD(INT_MIN, OF_TOOL);
        ADD(INT_MAX, OF_TOOL);
        break;
    case K_T_EVENT_INSTANCE:
        ADD(0, OF_TOOL);
        break;
    case K_T_CVAR_HANDLE_AT:
    case K_T_PVAR_HANDLE_AT:
    case K_T_PVAR_SESSION_AT:
    case K_P_EVENT_AT:
        add(fresh ? new_tool_handle(kind) : 0, "a handle", EVERY);
        ADD(0, OF_TOOL);
        ADD(1, OF_TOOL);
        ADD(-1, OF_TOOL);
        ADD(slots, OF_TOOL);
        by_address(start, argument, OF_TOOL | BIT(MPI_ERR_ARG));
        break;
    case K_INTS:
        for (int i = 0; i < 8; i++) ((int *)here)[i] = has(f, "Group_") || has(f, "ranks") || has(f, "Dist") ? 0 : 1;
        add((intptr_t)here, "numbers", EVERY);
        for (int i = 0; i < 8; i++) ((int *)here)[256 + i] = -1, ((int *)here)[512 + i] = INT_MIN, ((int *)here)[768 + i] = INT_MAX;
        int counts = strstr(f->parameters[argument].name, "counts") != NULL;
        if (!strstr(f->parameters[argument].name, "displs")) {
            add((intptr_t)here + 1024, "-1 each", counts ? BIT(MPI_ERR_COUNT) | BIT(MPI_ERR_ARG) : EVERY);
            add((intptr_t)here + 2048, "INT_MIN each", counts ? BIT(MPI_ERR_COUNT) | BIT(MPI_ERR_ARG) : EVERY);
        }
        /* Of these another array has as many elements. */
        int lengths = counts || strstr(f->parameters[argument].name, "degrees") || strstr(f->parameters[argument].name, "indx");
        if (!lengths && !strstr(f->parameters[argument].name, "displs") && !has(f, "eighbor")) add((intptr_t)here + 3072, "INT_MAX each", EVERY);
        ADD(NULL, EVERY);
        break;
    case K_LARGE_INTS:
        for (int i = 0; i < 8; i++) {
            ((int64_t *)here)[i] = 1;
            ((int64_t *)here)[256 + i] = -1;
            ((int64_t *)here)[512 + i] = INT64_MIN;
            ((int64_t *)here)[768 + i] = INT64_MAX;
        }
        add((intptr_t)here, "numbers", EVERY);
        if (!strstr(f->parameters[argument].name, "displs")) {
            int are_counts = strstr(f->parameters[argument].name, "counts") != NULL;
            add((intptr_t)here + 2048, "-1 each", are_counts ? BIT(MPI_ERR_COUNT) | BIT(MPI_ERR_ARG) : EVERY);
            add((intptr_t)here + 4096, "INT64_MIN each", are_counts ? BIT(MPI_ERR_COUNT) | BIT(MPI_ERR_ARG) : EVERY);
            if (!are_counts) add((intptr_t)here + 6144, "INT64_MAX each", EVERY);
        }
        ADD(NULL, EVERY);
        break;
    case K_WEIGHTS:
        ADD(MPI_UNWEIGHTED, EVERY);
        ADD(MPI_WEIGHTS_EMPTY, EVERY);
        add((intptr_t)here, "numbers", EVERY);
        ADD(NULL, EVERY);
        break;
    case K_ROOT:
        ADD(0, RIGHT);
        if (!has(f, "spawn") && !has(f, "accept") && !has(f, "connect")) {
            ADD(1, BIT(MPI_ERR_ROOT) | BIT(MPI_ERR_RANK));
            ADD(-100, BIT(MPI_ERR_ROOT) | BIT(MPI_ERR_RANK));
            ADD(MPI_ROOT, BIT(MPI_ERR_ROOT) | BIT(MPI_ERR_RANK));
            ADD(MPI_PROC_NULL, BIT(MPI_ERR_ROOT) | BIT(MPI_ERR_RANK));
            ADD(INT_MIN, BIT(MPI_ERR_ROOT) | BIT(MPI_ERR_RANK));
            ADD(INT_MAX, BIT(MPI_ERR_ROOT) | BIT(MPI_ERR_RANK));
        }
        break;
    case K_PEER:
        if (any_wrong) ADD(0, RIGHT);
        else ADD(MPI_PROC_NULL, RIGHT);
        if (!has(f, "Status_set")) {
            ADD(1, BIT(MPI_ERR_RANK));
            ADD(-100, BIT(MPI_ERR_RANK));
            ADD(INT_MIN, BIT(MPI_ERR_RANK));
            ADD(INT_MAX, BIT(MPI_ERR_RANK));
            if (strcmp(f->parameters[argument].name, "source") != 0 || has(f, "Precv")) ADD(MPI_ANY_SOURCE, BIT(MPI_ERR_RANK));
        }
        break;
    case K_RANK:
        ADD(0, RIGHT);
        if (has(f, "Cart") || has(f, "Graph") || has(f, "Win_")) {
            ADD(1, BIT(MPI_ERR_RANK));
            ADD(-100, BIT(MPI_ERR_RANK));
            ADD(INT_MIN, BIT(MPI_ERR_RANK));
            ADD(INT_MAX, BIT(MPI_ERR_RANK));
        }
        break;
    case K_TAG:
        ADD(0, RIGHT);
        if (has(f, "Status_set") || has(f, "Intercomm_create_from") || has(f, "create_from_group")) break;
        ADD(-100, BIT(MPI_ERR_TAG));
        ADD(INT_MIN, BIT(MPI_ERR_TAG));
        if (has(f, "Psend") || has(f, "Precv") || has(f, "send") || has(f, "Send"))
            if (strcmp(f->parameters[argument].name, "recvtag") != 0 && !has(f, "Precv")) ADD(MPI_ANY_TAG, BIT(MPI_ERR_TAG));
        break;
    case K_COUNT:
    case K_LENGTH:
        ADD(1, RIGHT);
        ADD(0, EVERY);
        if (!has(f, "Status_set")) {
            ADD(-1, BIT(MPI_ERR_COUNT) | BIT(MPI_ERR_ARG) | BIT(MPI_ERR_DIMS) | BIT(MPI_ERR_TOPOLOGY) | BIT(MPI_ERR_SIZE) | OF_TOOL);
            ADD(INT_MIN, BIT(MPI_ERR_COUNT) | BIT(MPI_ERR_ARG) | BIT(MPI_ERR_DIMS) | BIT(MPI_ERR_TOPOLOGY) | BIT(MPI_ERR_SIZE) | OF_TOOL);
        } else {
            ADD(-1, EVERY);
        }
        break;
    case K_INTEGER:
        if (strcmp(f->parameters[argument].name, "amode") == 0) ADD(MPI_MODE_CREATE | MPI_MODE_RDWR, EVERY);
        if (strcmp(f->parameters[argument].name, "whence") == 0) ADD(MPI_SEEK_SET, EVERY);
        if (strncmp(f->parameters[argument].name, "max", 3) == 0) ADD(2, EVERY);
        ADD(0, EVERY);
        ADD(1, EVERY);
        ADD(-1, EVERY);
        ADD(-100, EVERY);
        ADD(INT_MIN, EVERY);
        /* So many need so much memory. */
        if (strcmp(f->parameters[argument].name, "partitions") != 0) ADD(INT_MAX, EVERY);
        break;
    case K_LARGE_INTEGER:
        ADD(0, EVERY);
        ADD(8, EVERY);
        ADD(-1, EVERY);
        ADD(INT64_MIN, EVERY);
        if (!has(f, "set_size") && !has(f, "preallocate") && !has(f, "_write")) ADD(INT64_MAX, EVERY);
        break;
    }
    return (int)(into - values);
}
