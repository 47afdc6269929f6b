/* A message of 20,000 bytes that lies in memory from MPI_Alloc_mem is copied from there once, whatever the call that
 * sends it and whatever is eager elsewhere, unless somebody has said that it is to be eager. It can be cancelled like
 * any other.
 * RANKS: 2
 * ENV: PERUSAL_COPY_ENGINE=auto
 */
#include "mpi_t_counter.h"

enum { BYTES = 20000, SHORT = 16384 };
static int rank;
static unsigned char *memory, other[BYTES];
static MPI_T_pvar_handle copied;

static void fill(int seed)
{
    for (int i = 0; i < BYTES; i++) memory[i] = rank == 0 ? (unsigned char)(i * 7 + seed) : 0;
}

static void look(int seed, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        if (memory[i] != (unsigned char)(i * 7 + seed)) {
            SAME(memory[i], (unsigned char)(i * 7 + seed));
            return;
        }
    }
}

enum how { SEND, SSEND, ISEND, START, SENDRECV, BSEND, WAYS };

static void send_by(enum how how, int bytes)
{
    MPI_Request request;
    switch (how) {
    case SEND: OK(MPI_Send(memory, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD)); return;
    case SSEND: OK(MPI_Ssend(memory, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD)); return;
    case BSEND: OK(MPI_Bsend(memory, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD)); return;
    case SENDRECV:
        OK(MPI_Sendrecv(memory, bytes, MPI_BYTE, 1, 0, NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        return;
    case ISEND:
        OK(MPI_Isend(memory, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        return;
    default:
        OK(MPI_Send_init(memory, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request));
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Request_free(&request));
    }
}

/* Sends a message, and returns how many were copied from where they lie. */
static int sent(enum how how, int bytes)
{
    unsigned long long before = read_of(copied);
    fill(how);
    if (rank == 0) {
        send_by(how, bytes);
    } else {
        OK(MPI_Recv(memory, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        look(how, bytes);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    return (int)(read_of(copied) - before);
}

static void set_eager_limit(unsigned long bytes)
{
    int index = -1, count;
    MPI_T_cvar_handle handle;
    OK(MPI_T_cvar_get_index("eager_limit", &index));
    OK(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count));
    OK(MPI_T_cvar_write(handle, &bytes));
    OK(MPI_T_cvar_handle_free(&handle));
}

static void a_cancelled_one_is_not_received(void)
{
    MPI_Request request;
    MPI_Status status;
    int flag = 0;
    if (rank == 0) {
        OK(MPI_Isend(memory, BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request));
        OK(MPI_Cancel(&request));
        OK(MPI_Wait(&request, &status));
        OK(MPI_Test_cancelled(&status, &flag));
        CHECK(flag);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    if (rank == 1) CHECK(!flag);
}

int main(int argc, char **argv)
{
    int threads;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &threads));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_T_pvar_session_create(&session));
    copied = counter("messages_sent_direct");
    OK(MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &memory));
    static char room[BYTES + MPI_BSEND_OVERHEAD];
    OK(MPI_Buffer_attach(room, sizeof room));

    for (enum how how = SEND; how < BSEND; how++) {
        SAME(sent(how, BYTES), rank == 0);
        SAME(sent(how, SHORT), 0);
    }
    SAME(sent(BSEND, BYTES), 0);
    unsigned char *in_heap = memory;
    memory = other;
    SAME(sent(SEND, BYTES), 0);
    memory = in_heap;
    a_cancelled_one_is_not_received();
    SAME(sent(SEND, BYTES), rank == 0);
    set_eager_limit(BYTES);
    for (enum how how = SEND; how < WAYS; how++) SAME(sent(how, BYTES), 0);

    void *gone;
    int size;
    OK(MPI_Buffer_detach(&gone, &size));
    OK(MPI_Free_mem(memory));
    OK(MPI_T_pvar_session_free(&session));
    OK(MPI_T_finalize());
    OK(MPI_Finalize());
    return verdict();
}
