/* Conversions between handles of C and of Fortran, which the header has and the library has not.
 * RANKS: 2
 */
#include "check.h"

#define BACK(word, type, handle)                                  \
    do {                                                          \
        type one = handle;                                        \
        MPI_Fint there = MPI_##word##_c2f(one);                   \
        CHECK(MPI_##word##_f2c(there) == one);                    \
    } while (0)

int main(int argc, char **argv) {
    MPI_Comm dup;
    MPI_Datatype pair;
    MPI_Request request;
    MPI_Group group;
    MPI_Status status, again;
    MPI_Fint words[MPI_F_STATUS_SIZE];
    int rank, count, value = 5;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    OK(MPI_Comm_group(dup, &group));
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_commit(&pair));
    BACK(Comm, MPI_Comm, MPI_COMM_WORLD);
    BACK(Comm, MPI_Comm, dup);
    BACK(Comm, MPI_Comm, MPI_COMM_NULL);
    BACK(Group, MPI_Group, group);
    BACK(Type, MPI_Datatype, MPI_DOUBLE);
    BACK(Type, MPI_Datatype, pair);
    BACK(Op, MPI_Op, MPI_SUM);
    BACK(Errhandler, MPI_Errhandler, MPI_ERRORS_RETURN);
    BACK(Info, MPI_Info, MPI_INFO_ENV);
    BACK(File, MPI_File, MPI_FILE_NULL);
    BACK(Win, MPI_Win, MPI_WIN_NULL);
    BACK(Message, MPI_Message, MPI_MESSAGE_NO_PROC);
    BACK(Session, MPI_Session, MPI_SESSION_NULL);
    OK(MPI_Irecv(&value, 1, MPI_INT, 1 - rank, 4, MPI_Comm_f2c(MPI_Comm_c2f(dup)), &request));
    BACK(Request, MPI_Request, request);
    OK(MPI_Send(&rank, 1, MPI_Type_f2c(MPI_Type_c2f(MPI_INT)), 1 - rank, 4, dup));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Status_c2f(&status, words));
    SAME(words[MPI_F_SOURCE], 1 - rank);
    SAME(words[MPI_F_TAG], 4);
    OK(MPI_Status_f2c(words, &again));
    OK(MPI_Get_count(&again, MPI_INT, &count));
    SAME(count, 1);
    OK(MPI_Type_free(&pair));
    OK(MPI_Group_free(&group));
    OK(MPI_Comm_free(&dup));
    OK(MPI_Finalize());
    return verdict();
}
