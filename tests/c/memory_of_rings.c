/* A rank that has got a small message from each of many peers has mapped the pages of the rings where those lie,
 * and not the rest of the rings.
 * RANKS: 12
 */
#include "check.h"
#include <unistd.h>

enum { TAG = 3, PEER_KB = 24 };

/* Whether shared memory comes in pages of 4 KiB, so that what was not used can be distinguished from what was. */
static int in_small_pages(void)
{
    char modes[128] = "";
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "r");
    if (file) {
        if (!fgets(modes, sizeof modes, file)) modes[0] = 0;
        fclose(file);
    }
    return sysconf(_SC_PAGESIZE) == 4096 && !strstr(modes, "[always]") && !strstr(modes, "[within_size]") && !strstr(modes, "[force]");
}

/* Kilobytes of the job's memory that this process has mapped; -1 if the system does not say. */
static long mapped(void)
{
    char line[512];
    long sum = -1, kilobytes;
    int inside = 0;
    FILE *file = fopen("/proc/self/smaps", "r");
    while (file && fgets(line, sizeof line, file)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) inside = strstr(line, "perusal-job") != NULL;
        if (inside && sscanf(line, "Rss: %ld", &kilobytes) == 1) sum = (sum < 0 ? 0 : sum) + kilobytes;
    }
    if (file) fclose(file);
    return sum;
}

int main(int argc, char **argv)
{
    int rank, size, in;
    MPI_Request requests[64];
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    long before = mapped();

    for (int to = 1; to < size; to++)
        OK(MPI_Isend(&rank, 1, MPI_INT, (rank + to) % size, TAG, MPI_COMM_WORLD, &requests[to - 1]));
    /* By now all rings have been written to, so that a page may be mapped with those around it. */
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int from = 1; from < size; from++)
        OK(MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Waitall(size - 1, requests, MPI_STATUSES_IGNORE));

    long after = mapped();
    CHECK((before < 0) == (after < 0));
    /* A page or two of the ring to each peer and of that from it; a whole ring has 76 KiB. */
    if (in_small_pages() && before >= 0 && after - before > (long)(size - 1) * PEER_KB) {
        fprintf(stderr, "rank %d maps %ld KiB more than before %d messages\n", rank, after - before, size - 1);
        failures++;
    }
    OK(MPI_Finalize());
    return failures != 0;
}
