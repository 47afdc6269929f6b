/* A buffer that has been remapped is freed, and another one is allocated in its place: a message of that has its own
 * bytes, though the library remembers the old one until it asks the kernel, which it does while the receiver copies.
 * RANKS: 2 4
 * ENV: PERUSAL_COPY_REMAP_AFTER=2
 */
#include "remapped.h"
#include <malloc.h>

enum { BYTES = 200000, BUFFERS = 12 };

static int rank, peer;
static unsigned char room[BYTES];

/* Sends what the buffer holds; the other rank may look for it before it receives it. */
static void one_way(const unsigned char *buffer, int bytes, int value, int probes)
{
    if (rank % 2 == 0) {
        OK(MPI_Send(buffer, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD));
        return;
    }
    memset(room, 0xee, sizeof room);
    if (probes) OK(MPI_Probe(peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Recv(room, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    int at = 0;
    while (at < bytes && room[at] == value) at++;
    SAME(at, bytes);
}

int main(void)
{
    MPI_Init(NULL, NULL);
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    peer = rank ^ 1;
    /* What is freed is unmapped at once. */
    mallopt(M_MMAP_THRESHOLD, BYTES / 2);
    int in_place = 0, remapped = 0;
    for (int i = 0; i < BUFFERS; i++) {
        unsigned char *buffer = malloc(BYTES);
        memset(buffer, i, BYTES);
        for (int j = 0; j < 6; j++) one_way(buffer, BYTES, i, j % 2);
        uintptr_t was = (uintptr_t)buffer;
        remapped += is_remapped(buffer + BYTES / 2);
        free(buffer);
        buffer = malloc(BYTES);
        in_place += (uintptr_t)buffer == was;
        memset(buffer, i + 100, BYTES);
        /* Of another length, so that the library does not know that its bytes have changed. */
        for (int j = 0; j < 3; j++) one_way(buffer, BYTES - 1000 - 8 * i, i + 100, i % 2);
        free(buffer);
    }
    CHECK(in_place > 0);
    if (can_remap() && rank % 2 == 0) CHECK(remapped > 0);
    MPI_Finalize();
    return verdict();
}
