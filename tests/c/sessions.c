/* Sessions without MPI_Init: again and again, two at once, with communicators and an intercommunicator of their own,
 * messages and collectives; what they tell of themselves.
 * RANKS: 1 2 4
 */
#include "check.h"

static char value[MPI_MAX_INFO_VAL];

static const char *text_of(MPI_Info info, const char *key) {
    int size = sizeof value, flag = 0;
    OK(MPI_Info_get_string(info, key, &size, value, &flag));
    SAME(flag, 1);
    return value;
}

static MPI_Session opened(const char *level) {
    MPI_Session session = MPI_SESSION_NULL;
    MPI_Info info = MPI_INFO_NULL, used;
    if (level) {
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "thread_level", level));
    }
    OK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
    CHECK(session != MPI_SESSION_NULL);
    OK(MPI_Session_get_info(session, &used));
    CHECK(strcmp(text_of(used, "thread_level"), level ? level : "MPI_THREAD_MULTIPLE") == 0);
    OK(MPI_Info_free(&used));
    if (level) OK(MPI_Info_free(&info));
    return session;
}

static MPI_Group group_of(MPI_Session session, const char *set) {
    MPI_Group group;
    OK(MPI_Group_from_session_pset(session, set, &group));
    CHECK(group != MPI_GROUP_NULL);
    return group;
}

static MPI_Comm comm_of(MPI_Session session, const char *set, const char *tag) {
    MPI_Group group = group_of(session, set);
    MPI_Comm comm;
    OK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Group_free(&group));
    return comm;
}

static void exchange(MPI_Comm comm) {
    int rank, size, sum, from;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    SAME(sum, size * (size - 1) / 2);
    OK(MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 3, &from, 1, MPI_INT, (rank + size - 1) % size, 3, comm,
                    MPI_STATUS_IGNORE));
    SAME(from, (rank + size - 1) % size);
    /* Errors are the communicator's. */
    CLASS(MPI_Send(&sum, 1, MPI_INT, size, 0, comm), MPI_ERR_RANK);
}

static void sets(MPI_Session session, int size) {
    int count = 0, found = 0;
    OK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count));
    CHECK(count >= 2);
    for (int i = 0; i < count; i++) {
        char name[MPI_MAX_PSET_NAME_LEN], cut[4];
        int length = 0;
        MPI_Info info;
        OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, NULL));
        CHECK(length > 1);
        int room = length;
        OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &room, name));
        SAME(room, length);
        SAME(strlen(name) + 1, length);
        room = sizeof cut;
        OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &room, cut));
        CHECK(strncmp(cut, name, 3) == 0 && cut[3] == 0);
        SAME(room, length);
        OK(MPI_Session_get_pset_info(session, name, &info));
        int members = atoi(text_of(info, "mpi_size"));
        OK(MPI_Info_free(&info));
        if (strcmp(name, "mpi://WORLD") == 0) { SAME(members, size); found++; }
        if (strcmp(name, "mpi://SELF") == 0) { SAME(members, 1); found++; }
    }
    SAME(found, 2);
    int length = 0;
    MPI_Info info;
    MPI_Group none;
    CLASS(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, count, &length, NULL), MPI_ERR_ARG);
    CLASS(MPI_Session_get_pset_info(session, "nobody", &info), MPI_ERR_ARG);
    OK(MPI_Group_from_session_pset(session, "nobody", &none));
    CHECK(none == MPI_GROUP_NULL);
}

/* The lower half and the upper half of the world. */
static void between(MPI_Session session, int rank, int size) {
    MPI_Group world = group_of(session, "mpi://WORLD"), low, high;
    int half = size / 2, ranges[2][3] = {{0, half - 1, 1}, {half, size - 1, 1}};
    OK(MPI_Group_range_incl(world, 1, &ranges[0], &low));
    OK(MPI_Group_range_incl(world, 1, &ranges[1], &high));
    MPI_Comm inter;
    int is_low = rank < half, others, sum;
    OK(MPI_Intercomm_create_from_groups(is_low ? low : high, 0, is_low ? high : low, 0, "halves", MPI_INFO_NULL,
                                        MPI_ERRORS_RETURN, &inter));
    OK(MPI_Comm_remote_size(inter, &others));
    SAME(others, is_low ? size - half : half);
    OK(MPI_Allreduce(&(int){1}, &sum, 1, MPI_INT, MPI_SUM, inter));
    SAME(sum, others);
    OK(MPI_Comm_disconnect(&inter));
    /* With an empty group there is nothing to be made, and nobody to be waited for. */
    if (rank == 0) {
        OK(MPI_Intercomm_create_from_groups(MPI_GROUP_EMPTY, 0, high, 0, "nobody", MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter));
        CHECK(inter == MPI_COMM_NULL);
        OK(MPI_Intercomm_create_from_groups(low, 0, MPI_GROUP_EMPTY, 0, "nobody", MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter));
        CHECK(inter == MPI_COMM_NULL);
        OK(MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "nobody", MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter));
        CHECK(inter == MPI_COMM_NULL);
    }
    OK(MPI_Group_free(&low));
    OK(MPI_Group_free(&high));
    OK(MPI_Group_free(&world));
}

int main(void) {
    int rank = 0, size = 0, flag;
    for (int round = 0; round < 5; round++) {
        MPI_Session session = opened(round == 1 ? "MPI_THREAD_MULTIPLE" : NULL);
        MPI_Comm comm = comm_of(session, "mpi://WORLD", "all of us");
        OK(MPI_Comm_rank(comm, &rank));
        OK(MPI_Comm_size(comm, &size));
        exchange(comm);
        MPI_Session other = opened("MPI_THREAD_SERIALIZED");
        CHECK(other != session);
        sets(other, size);
        MPI_Comm self = comm_of(other, "mpi://self", "me"), more = comm_of(other, "mpi://WORLD", "us, too"), dup;
        exchange(self);
        exchange(more);
        OK(MPI_Comm_dup(more, &dup));
        exchange(dup);
        if (size > 1) between(other, rank, size);
        OK(MPI_Comm_free(&dup));
        OK(MPI_Comm_free(&more));
        OK(MPI_Comm_free(&self));
        OK(MPI_Session_finalize(&other));
        CHECK(other == MPI_SESSION_NULL);
        exchange(comm);
        /* The last message has left before the last session has. */
        if (rank == 0 && size > 1) OK(MPI_Send(&rank, 1, MPI_INT, size - 1, 9, comm));
        if (rank == size - 1 && size > 1) {
            int got = -1;
            OK(MPI_Recv(&got, 1, MPI_INT, 0, 9, comm, MPI_STATUS_IGNORE));
            SAME(got, 0);
        }
        OK(MPI_Comm_free(&comm));
        OK(MPI_Session_finalize(&session));
        /* The world knows nothing of all this. */
        OK(MPI_Initialized(&flag));
        SAME(flag, 0);
        OK(MPI_Finalized(&flag));
        SAME(flag, 0);
    }
    return verdict();
}
