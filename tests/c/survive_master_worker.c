/* A master that outlives its workers, as the specification of User Level Failure Mitigation shows it: a receive from
 * any source tells of a death by MPIX_ERR_PROC_FAILED_PENDING, the master acknowledges it, and gives what the dead had
 * to do to another. Workers die with a task, and with an answer that they have just sent.
 * Every task is done, however many are left.
 * RANKS: 2 4 9
 * OPTIONS: --survive
 */
#include "survive.h"

enum { TASKS = 200, WORK = 1, ANSWER = 2, STOP = 3, NONE = -1 };

static int size, task_of[16], is_dead[16];

/* Acknowledges all deaths; puts back the tasks of those whose answers will not come. Returns how many workers live. */
static int bury(char *is_done, char *is_given) {
    MPI_Group failed, world;
    int number, acknowledged;
    OK(MPIX_Comm_get_failed(MPI_COMM_WORLD, &failed));
    OK(MPI_Group_size(failed, &number));
    OK(MPIX_Comm_ack_failed(MPI_COMM_WORLD, number, &acknowledged));
    CHECK(acknowledged >= number);
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    for (int i = 0, rank; i < number; i++) {
        OK(MPI_Group_translate_ranks(failed, 1, &i, world, &rank));
        if (is_dead[rank]) continue;
        is_dead[rank] = 1;
        if (task_of[rank] != NONE && !is_done[task_of[rank]]) is_given[task_of[rank]] = 0;
        task_of[rank] = NONE;
    }
    OK(MPI_Group_free(&failed));
    OK(MPI_Group_free(&world));
    return size - 1 - number;
}

/* Gives each worker that has nothing to do a task, if there is one.
 * A send to one that has died fails, and the receive will tell of it. */
static void give(const char *is_done, char *is_given) {
    for (int worker = 1, task = 0; worker < size; worker++) {
        if (is_dead[worker] || task_of[worker] != NONE) continue;
        while (task < TASKS && (is_done[task] || is_given[task])) task++;
        if (task == TASKS) return;
        if (MPI_Send(&task, 1, MPI_INT, worker, WORK, MPI_COMM_WORLD) != MPI_SUCCESS) continue;
        is_given[task] = 1;
        task_of[worker] = task;
    }
}

static void master(void) {
    static char is_done[TASKS], is_given[TASKS];
    int answer[2], left = TASKS, living = size - 1, class;
    MPI_Request request;
    MPI_Status status;
    for (int i = 0; i < size; i++) task_of[i] = NONE;
    give(is_done, is_given);
    OK(MPI_Irecv(answer, 2, MPI_INT, MPI_ANY_SOURCE, ANSWER, MPI_COMM_WORLD, &request));
    while (left > 0 && living > 0) {
        MPI_Error_class(MPI_Wait(&request, &status), &class);
        if (class == MPIX_ERR_PROC_FAILED_PENDING) {
            CHECK(request != MPI_REQUEST_NULL);
            living = bury(is_done, is_given);
        } else {
            SAME(class, MPI_SUCCESS);
            int task = answer[0];
            SAME(answer[1], task * task);
            /* An answer may be that of a worker whose death has been heard of before: another one has the task, too. */
            if (!is_done[task]) left--;
            is_done[task] = 1;
            if (task_of[status.MPI_SOURCE] == task) task_of[status.MPI_SOURCE] = NONE;
            OK(MPI_Irecv(answer, 2, MPI_INT, MPI_ANY_SOURCE, ANSWER, MPI_COMM_WORLD, &request));
        }
        give(is_done, is_given);
    }
    OK(MPI_Cancel(&request));
    while (MPI_Wait(&request, &status) != MPI_SUCCESS) living = bury(is_done, is_given);
    for (int worker = 1; worker < size; worker++) MPI_Send(NULL, 0, MPI_INT, worker, STOP, MPI_COMM_WORLD);
    /* One worker stays, unless there is only one, which dies. */
    SAME(living > 0, size > 2);
    SAME(left > 0, size == 2);
}

static void worker(int rank) {
    int task, answer[2], done = 0, class;
    MPI_Status status;
    for (;;) {
        MPI_Error_class(MPI_Recv(&task, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status), &class);
        SAME(class, MPI_SUCCESS);
        if (class != MPI_SUCCESS || status.MPI_TAG == STOP) return;
        /* All but the last of several die, each after its own number of tasks:
         * some with a task, some behind an answer. */
        int dies = (rank < size - 1 || size == 2) && ++done == 2 * rank;
        if (dies && rank % 2 == 0) die();
        answer[0] = task;
        answer[1] = task * task;
        OK(MPI_Send(answer, 2, MPI_INT, 0, ANSWER, MPI_COMM_WORLD));
        if (dies) die();
    }
}

int main(void) {
    int rank;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) master();
    else worker(rank);
    MPI_Finalize();
    return verdict();
}
