/* Windows of messages from the even ranks to the odd ones, each behind others of the same sender, and long ones that
 * are alone: where ranks outnumber CPUs both ranks copy a part of these. Some receives are posted before, some late.
 * RANKS: 2 4 6
 */
#include "check.h"

enum { MOST = 1 << 21, WINDOW = 6, ROUNDS = 12 };
static const struct { int bytes, messages; } windows[] = {
    {65535, WINDOW}, {65536, WINDOW}, {100001, WINDOW}, {300000, WINDOW}, {1 << 20, 1}, {MOST, 2},
};
enum { WINDOWS = sizeof windows / sizeof *windows };

static unsigned char data[WINDOW][MOST];

static unsigned char at_place(int at, int seed) { return (unsigned char)(at * 3 + at / 257 + seed); }

int main(void)
{
    int rank, size;
    MPI_Init(NULL, NULL);
    errors_return();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int sends = rank % 2 == 0, peer = rank ^ 1;
    MPI_Request requests[WINDOW];
    for (int w = 0; w < WINDOWS; w++) {
        int bytes = windows[w].bytes, messages = windows[w].messages;
        for (int i = 0; i < ROUNDS; i++) {
            if (i % 2) MPI_Barrier(MPI_COMM_WORLD);
            for (int j = 0; j < messages; j++) {
                if (sends) {
                    for (int at = 0; at < bytes; at++) data[j][at] = at_place(at, i + j + rank);
                    OK(MPI_Isend(data[j], bytes, MPI_BYTE, peer, j, MPI_COMM_WORLD, &requests[j]));
                } else {
                    data[j][0] = data[j][bytes - 1] = (unsigned char)~(i + j);
                    OK(MPI_Irecv(data[j], bytes, MPI_BYTE, peer, j, MPI_COMM_WORLD, &requests[j]));
                }
            }
            OK(MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE));
            for (int j = 0; j < messages && !sends; j++) {
                int at = 0;
                while (at < bytes && data[j][at] == at_place(at, i + j + peer)) at++;
                SAME(at, bytes);
            }
            /* The window is taken before the next one. */
            if (sends) OK(MPI_Recv(NULL, 0, MPI_BYTE, peer, WINDOW, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            else OK(MPI_Send(NULL, 0, MPI_BYTE, peer, WINDOW, MPI_COMM_WORLD));
        }
    }
    MPI_Finalize();
    return verdict();
}
