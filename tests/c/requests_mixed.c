/* Requests of all kinds in one array, which every call that completes requests is given in turn: persistent ones, with
 * and without gaps in their data, plain ones, inactive and null ones. What persists stays and becomes inactive, all
 * others are null afterwards (MPI 5.0 §3.7.3, §3.7.5, §3.9); data, statuses and numbers are those of the messages.
 * RANKS: 2
 */
#include "check.h"

enum { KINDS = 6, SLOTS = 12, ROUNDS = 300, INTS = 40, TRUNCATED = 99 };

/* What a slot holds. */
enum kind { PERSISTENT, PERSISTENT_GAPS, PLAIN, PLAIN_GAPS, INACTIVE, NOTHING };

static int rank, peer, in[SLOTS][2 * INTS], out[SLOTS][2 * INTS];
static MPI_Request persistent[SLOTS], send_again[SLOTS];
static MPI_Datatype gaps;

static enum kind kind_of(int slot) { return (enum kind)(slot % KINDS); }
static int has_gaps(enum kind kind) { return kind == PERSISTENT_GAPS || kind == PLAIN_GAPS; }
static int persists(enum kind kind) { return kind == PERSISTENT || kind == PERSISTENT_GAPS; }
static int is_active(enum kind kind) { return kind < INACTIVE; }

static int value(int slot, int round, int i) { return slot * 1000003 + round * 101 + i; }

static MPI_Datatype type_of(enum kind kind) { return has_gaps(kind) ? gaps : MPI_INT; }
static int count_of(enum kind kind) { return has_gaps(kind) ? 1 : INTS; }

static void check_status(int slot, const MPI_Status *status)
{
    int n;
    SAME(status->MPI_SOURCE, peer);
    SAME(status->MPI_TAG, slot);
    OK(MPI_Get_count(status, MPI_INT, &n));
    SAME(n, INTS);
}

static void check_empty(const MPI_Status *status)
{
    int n;
    SAME(status->MPI_SOURCE, MPI_ANY_SOURCE);
    SAME(status->MPI_TAG, MPI_ANY_TAG);
    OK(MPI_Get_count(status, MPI_INT, &n));
    SAME(n, 0);
}

static void check_data(int slot, int round)
{
    int step = has_gaps(kind_of(slot)) ? 2 : 1;
    for (int i = 0; i < INTS; i++) SAME(in[slot][step * i], value(slot, round, i));
    if (step == 2)
        for (int i = 0; i < INTS - 1; i++) SAME(in[slot][2 * i + 1], -1);
}

/* Every request of the round, in an order of its own. */
static void begin(int round, MPI_Request *requests, int *slots)
{
    for (int i = 0; i < SLOTS; i++) slots[i] = (i * 5 + round) % SLOTS;
    for (int at = 0; at < SLOTS; at++) {
        int slot = slots[at];
        enum kind kind = kind_of(slot);
        for (int i = 0; i < 2 * INTS; i++) in[slot][i] = -1;
        switch (kind) {
        case PERSISTENT:
        case PERSISTENT_GAPS:
            OK(MPI_Start(&persistent[slot]));
            requests[at] = persistent[slot];
            break;
        case PLAIN:
        case PLAIN_GAPS:
            OK(MPI_Irecv(in[slot], count_of(kind), type_of(kind), peer, slot, MPI_COMM_WORLD, &requests[at]));
            break;
        case INACTIVE: requests[at] = persistent[slot]; break;
        case NOTHING: requests[at] = MPI_REQUEST_NULL; break;
        }
    }
}

static void send_all(int round)
{
    for (int slot = 0; slot < SLOTS; slot++) {
        enum kind kind = kind_of(slot);
        if (!is_active(kind)) continue;
        /* To a receive with gaps goes what has none, and the other way round. */
        int apart = !has_gaps(kind), step = apart ? 2 : 1;
        for (int i = 0; i < INTS; i++) out[slot][step * i] = value(slot, round, i);
        if (persists(kind)) {
            MPI_Status status;
            OK(MPI_Start(&send_again[slot]));
            MPI_Request before = send_again[slot];
            OK(MPI_Wait(&send_again[slot], &status));
            SAME(send_again[slot] == before, 1);
        } else {
            OK(MPI_Send(out[slot], apart ? 1 : INTS, apart ? gaps : MPI_INT, peer, slot, MPI_COMM_WORLD));
        }
    }
}

static void ended(const MPI_Request *requests, const int *slots, int at)
{
    int slot = slots[at];
    if (persists(kind_of(slot))) SAME(requests[at] == persistent[slot], 1);
    else if (kind_of(slot) == INACTIVE) SAME(requests[at] == persistent[slot], 1);
    else SAME(requests[at] == MPI_REQUEST_NULL, 1);
}

static void finish(int round, MPI_Request *requests, const int *slots)
{
    MPI_Status statuses[SLOTS], status;
    int done = 0, flag, at, n, indices[SLOTS], seen[SLOTS] = {0}, active = 0;
    for (int i = 0; i < SLOTS; i++) active += is_active(kind_of(slots[i]));
    switch (round % 8) {
    case 0:
        OK(MPI_Waitall(SLOTS, requests, statuses));
        break;
    case 1:
        do OK(MPI_Testall(SLOTS, requests, &flag, statuses));
        while (!flag);
        break;
    case 2:
    case 3:
        while (done < active) {
            if (round % 8 == 2) OK(MPI_Waitany(SLOTS, requests, &at, &statuses[0]));
            else do OK(MPI_Testany(SLOTS, requests, &at, &flag, &statuses[0]));
            while (!flag);
            SAME(at >= 0 && at < SLOTS, 1);
            SAME(seen[at]++, 0);
            check_status(slots[at], &statuses[0]);
            done++;
        }
        OK(MPI_Waitany(SLOTS, requests, &at, &status));
        SAME(at, MPI_UNDEFINED);
        OK(MPI_Testany(SLOTS, requests, &at, &flag, &status));
        SAME(flag && at == MPI_UNDEFINED, 1);
        break;
    case 4:
    case 5:
        while (done < active) {
            if (round % 8 == 4) OK(MPI_Waitsome(SLOTS, requests, &n, indices, statuses));
            else OK(MPI_Testsome(SLOTS, requests, &n, indices, statuses));
            SAME(n >= (round % 8 == 4) && n <= active - done, 1);
            for (int i = 0; i < n; i++) {
                SAME(seen[indices[i]]++, 0);
                check_status(slots[indices[i]], &statuses[i]);
            }
            done += n;
        }
        OK(MPI_Waitsome(SLOTS, requests, &n, indices, statuses));
        SAME(n, MPI_UNDEFINED);
        break;
    case 6:
        for (at = 0; at < SLOTS; at++) OK(MPI_Wait(&requests[at], &statuses[at]));
        break;
    case 7:
        for (at = 0; at < SLOTS; at++)
            do OK(MPI_Test(&requests[at], &flag, &statuses[at]));
            while (!flag);
        break;
    }
    for (at = 0; at < SLOTS; at++) {
        ended(requests, slots, at);
        if (is_active(kind_of(slots[at]))) check_data(slots[at], round);
        if (round % 8 >= 2 && round % 8 <= 5) continue;
        if (is_active(kind_of(slots[at]))) check_status(slots[at], &statuses[at]);
        else check_empty(&statuses[at]);
    }
}

/* A persistent receive of too little fails at its end, stays, and works again. */
static void failed_ones_stay(void)
{
    int small[2] = {0, 0}, big[3] = {1, 2, 3}, class;
    MPI_Request request, again;
    MPI_Status status;
    errors_return();
    OK(MPI_Recv_init(small, 2, MPI_INT, peer, TRUNCATED, MPI_COMM_WORLD, &request));
    again = request;
    for (int bytes = 3; bytes >= 2; bytes--) {
        OK(MPI_Start(&request));
        OK(MPI_Send(big, bytes, MPI_INT, peer, TRUNCATED, MPI_COMM_WORLD));
        MPI_Error_class(MPI_Waitall(1, &request, &status), &class);
        SAME(class, bytes == 3 ? MPI_ERR_IN_STATUS : MPI_SUCCESS);
        SAME(request == again, 1);
    }
    SAME(small[1], 2);
    OK(MPI_Request_free(&request));
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    peer = 1 - rank;
    OK(MPI_Type_vector(INTS, 1, 2, MPI_INT, &gaps));
    OK(MPI_Type_commit(&gaps));
    for (int slot = 0; slot < SLOTS; slot++) {
        enum kind kind = kind_of(slot);
        if (!persists(kind) && kind != INACTIVE) continue;
        OK(MPI_Recv_init(in[slot], count_of(kind), type_of(kind), peer, slot, MPI_COMM_WORLD, &persistent[slot]));
        int apart = !has_gaps(kind);
        OK(MPI_Send_init(out[slot], apart ? 1 : INTS, apart ? gaps : MPI_INT, peer, slot, MPI_COMM_WORLD,
                         &send_again[slot]));
    }
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request requests[SLOTS];
        int slots[SLOTS];
        /* Sometimes the messages are there before the receives. */
        if (round / 8 % 2) send_all(round);
        if (round / 16 % 2) OK(MPI_Barrier(MPI_COMM_WORLD));
        begin(round, requests, slots);
        if (!(round / 8 % 2)) send_all(round);
        finish(round, requests, slots);
    }
    failed_ones_stay();
    for (int slot = 0; slot < SLOTS; slot++) {
        if (!persists(kind_of(slot)) && kind_of(slot) != INACTIVE) continue;
        OK(MPI_Request_free(&persistent[slot]));
        OK(MPI_Request_free(&send_again[slot]));
    }
    OK(MPI_Type_free(&gaps));
    OK(MPI_Finalize());
    return verdict();
}
