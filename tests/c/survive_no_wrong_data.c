/* A member of a collective operation that cannot have its result, because another has died, gets an error, however many
 * living members are between the two; and a communicator that could not be made is none. Each operation has members 0
 * to 3 and a member of its own that dies before it.
 * RANKS: 12
 * OPTIONS: --survive
 */
#include "survive.h"

enum { LIVING = 4, STAGES = 8 };

static int rank;

/* The living ranks and that of the stage, which is member `place`. */
static MPI_Comm with_victim(int stage, int place) {
    MPI_Comm comm;
    int takes_part = rank < LIVING || rank == LIVING + stage;
    int key = rank < LIVING ? 2 * rank : 2 * place - 1;
    OK(MPI_Comm_split(MPI_COMM_WORLD, takes_part ? 0 : MPI_UNDEFINED, key, &comm));
    if (comm != MPI_COMM_NULL) OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    return comm;
}

/* Of its members the first `near` are one group, the others the other one. */
static MPI_Comm two_groups(MPI_Comm comm, int near) {
    MPI_Comm half, inter;
    int own;
    OK(MPI_Comm_rank(comm, &own));
    OK(MPI_Comm_split(comm, own < near, own, &half));
    OK(MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN));
    OK(MPI_Intercomm_create(half, 0, comm, own < near ? near : 0, 1, &inter));
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    return inter;
}

static int failed(int code) {
    int class;
    OK(MPI_Error_class(code, &class));
    if (class != MPI_SUCCESS) SAME(class, MPIX_ERR_PROC_FAILED);
    return class != MPI_SUCCESS;
}

static int waited(int code, MPI_Request *request) {
    return code ? code : MPI_Wait(request, MPI_STATUS_IGNORE);
}

/* `own`: this rank as a member; `place`: the dead one. */
static void one(int stage, MPI_Comm comm, MPI_Comm inter, int own, int place, int near) {
    long value = 1 << own, result = -1, all[LIVING + 1], before = (1 << own) - 1;
    int is_near = own < near, victim_is_near = place < near;
    MPI_Request request;
    MPI_Comm made = MPI_COMM_NULL;
    switch (stage) {
    case 0:
        if (!failed(MPI_Scan(&value, &result, 1, MPI_LONG, MPI_SUM, comm))) {
            CHECK(own < place);
            SAME(result, before + value);
        }
        break;
    case 1:
        if (!failed(waited(MPI_Iscan(&value, &result, 1, MPI_LONG, MPI_SUM, comm, &request), &request))) {
            CHECK(own < place);
            SAME(result, before + value);
        }
        break;
    case 2:
        if (!failed(waited(MPI_Iexscan(&value, &result, 1, MPI_LONG, MPI_SUM, comm, &request), &request)) && own > 0) {
            CHECK(own < place);
            SAME(result, before);
        }
        break;
    case 3:
        CHECK(failed(MPI_Allgather(&value, 1, MPI_LONG, all, 1, MPI_LONG, comm)));
        break;
    case 4:
        /* Each group gets the sum of the other one. */
        if (!failed(MPI_Allreduce(&value, &result, 1, MPI_LONG, MPI_SUM, inter))) {
            CHECK(is_near == victim_is_near);
            SAME(result, is_near ? (1 << (LIVING + 1)) - (1 << near) : (1 << near) - 1);
        }
        break;
    case 5:
        if (own == 2) usleep(300000);
        if (!failed(MPI_Barrier(inter))) CHECK(is_near == victim_is_near);
        break;
    default:
        /* Whoever takes the context is dead, or a member of its group. */
        if (!failed(MPI_Comm_dup(inter, &made))) {
            OK(MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN));
            CHECK(made != MPI_COMM_NULL);
            int flag = 0;
            if (!failed(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, made, &flag, MPI_STATUS_IGNORE))) CHECK(!flag);
        }
    }
}

int main(int argc, char **argv) {
    static const int place[STAGES] = {1, 1, 2, 3, 3, 0, 0, 2}, near[STAGES] = {0, 0, 0, 0, 1, 2, 2, 2};
    MPI_Comm comms[STAGES], inters[STAGES], world;
    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    for (int stage = 0; stage < STAGES; stage++) {
        comms[stage] = with_victim(stage, place[stage]);
        inters[stage] = MPI_COMM_NULL;
        if (comms[stage] != MPI_COMM_NULL && near[stage]) inters[stage] = two_groups(comms[stage], near[stage]);
    }
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank < LIVING, rank, &world));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int stage = 0; stage < STAGES; stage++) {
        if (rank == LIVING + stage) {
            /* Its turn has come when the living say so. */
            OK(MPI_Recv(NULL, 0, MPI_INT, 0, stage, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            die();
        }
        if (rank >= LIVING) continue;
        /* A message on the world's communicator, which no other communicator may show. */
        OK(MPI_Send(&rank, 1, MPI_INT, (rank + 1) % LIVING, 100, MPI_COMM_WORLD));
        if (rank == 0) OK(MPI_Send(NULL, 0, MPI_INT, LIVING + stage, stage, MPI_COMM_WORLD));
        int own, from;
        OK(MPI_Comm_rank(comms[stage], &own));
        one(stage, comms[stage], inters[stage], own, place[stage], near[stage]);
        OK(MPI_Recv(&from, 1, MPI_INT, (rank + LIVING - 1) % LIVING, 100, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Barrier(world));
    }
    MPI_Finalize();
    return verdict();
}
