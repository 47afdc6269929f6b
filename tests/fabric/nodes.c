/* Ranks on two nodes: every rank sends to rank 0, which receives from any source and any tag, in messages of several
 * sizes, and looks that those of each sender come in order; then all to all. Arguments: "kill N": rank N kills itself
 * while the others wait for it; "wait": rank 0 says "waiting" and receives from the last rank, which sends nothing;
 * "stream": the last rank sends long messages without end, of which rank 0 receives some before it says "waiting";
 * "rings": neighbours within pairs of ranks exchange messages, no others.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int sizes[] = {0, 8, 1000, 16384, 16385, 200000, 3000001};
enum { SIZES = 7, ROUNDS = 50, LONGEST = 3000001 };

static void fill(char *bytes, int size, int rank, int at)
{
    for (int i = 0; i < size; i++) bytes[i] = (char)(i * 7 + rank * 31 + at);
}

static void check(int is_right, const char *what)
{
    if (!is_right) {
        fprintf(stderr, "wrong: %s\n", what);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *what = argc > 1 ? argv[1] : "";
    char *bytes = malloc(LONGEST), *right = malloc(LONGEST);
    MPI_Status status;
    if (strcmp(what, "kill") == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == atoi(argv[2])) raise(SIGKILL);
        MPI_Recv(bytes, 8, MPI_BYTE, atoi(argv[2]), 0, MPI_COMM_WORLD, &status);
    } else if (strcmp(what, "wait") == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            printf("waiting\n");
            fflush(stdout);
            MPI_Recv(bytes, 8, MPI_BYTE, size - 1, 0, MPI_COMM_WORLD, &status);
        } else if (rank < size - 1) {
            MPI_Recv(bytes, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &status);
        } else {
            sleep(600);
        }
    } else if (strcmp(what, "stream") == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; rank == 0 || rank == size - 1; i++) {
            if (rank > 0) {
                MPI_Send(bytes, LONGEST, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
                continue;
            }
            if (i == 20) {
                printf("waiting\n");
                fflush(stdout);
            }
            MPI_Recv(bytes, LONGEST, MPI_BYTE, size - 1, 0, MPI_COMM_WORLD, &status);
        }
        MPI_Recv(bytes, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &status);
    } else if (strcmp(what, "rings") == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        /* Ranks are dealt to two nodes in turn: those two apart are neighbours. */
        int other = rank / 2 % 2 ? rank - 2 : rank + 2;
        for (int i = 0; i < 10000; i++)
            MPI_Sendrecv(bytes, 8, MPI_BYTE, other, 1, right, 8, MPI_BYTE, other, 1, MPI_COMM_WORLD, &status);
    } else {
        if (rank == 0) {
            int *next = calloc(size, sizeof(int));
            for (int i = 0; i < (size - 1) * ROUNDS; i++) {
                MPI_Recv(bytes, LONGEST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
                int from = status.MPI_SOURCE, at = next[from]++, len;
                MPI_Get_count(&status, MPI_BYTE, &len);
                check(status.MPI_TAG == at, "the order of a sender's messages");
                check(len == sizes[at % SIZES], "a length");
                fill(right, len, from, at);
                check(memcmp(bytes, right, len) == 0, "the bytes of a message");
            }
        } else {
            for (int i = 0; i < ROUNDS; i++) {
                fill(bytes, sizes[i % SIZES], rank, i);
                MPI_Send(bytes, sizes[i % SIZES], MPI_BYTE, 0, i, MPI_COMM_WORLD);
            }
        }
        /* A message that is longer than its receive's buffer, from a rank of the other node. */
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        if (rank == 1) {
            fill(bytes, LONGEST, rank, 0);
            MPI_Send(bytes, LONGEST, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        } else if (rank == 0) {
            enum { SHORT = 100000 };
            memset(bytes, 1, LONGEST);
            int class, error = MPI_Recv(bytes, SHORT, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &status);
            MPI_Error_class(error, &class);
            check(class == MPI_ERR_TRUNCATE, "the error of a message that is too long");
            fill(right, SHORT, 1, 0);
            check(memcmp(bytes, right, SHORT) == 0 && bytes[SHORT] == 1, "the beginning of a message that is too long");
        }
        int *all = malloc(size * sizeof(int)), sum = 0, own = rank + 1;
        MPI_Allgather(&own, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
        MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < size; i++) check(all[i] == i + 1, "an allgather");
        check(sum == size * (size + 1) / 2, "a sum");
    }
    MPI_Finalize();
    if (rank == 0) printf("No Errors\n");
    return 0;
}
