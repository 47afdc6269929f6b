/* totals.c: the statistics of all ranks, on rank 0:
 * the sum, and the smallest, mean and largest of the ranks' values. */
#include "mel.h"

#include <stdlib.h>

enum { VALUES = sizeof(mel_sums) / sizeof(double) };

typedef struct {
    const char *queue, *search; /* the value's name in either kind of statistic; NULL: not shown */
    size_t offset;
    const char *unit;
} row;

static const row rows[] = {
    {"Num Messages", "Num Searches in queue", offsetof(mel_sums, number), ""},
    {"Max length of message queue", NULL, offsetof(mel_sums, length), ""},
    {"Time with messages in queue", NULL, offsetof(mel_sums, populated), " s"},
    {"Total time of messages in queue", "Total time searching in queue", offsetof(mel_sums, total), " s"},
    {"Max time of message in queue", "Max time of a search", offsetof(mel_sums, longest), " s"},
    {"Events lost", "Events lost", offsetof(mel_sums, dropped), ""},
};

static double value_of(const mel_sums *sums, const row *row) {
    return *(const double *)((const char *)sums + row->offset);
}

static void report_row(const mel_sums *ranks, int size, int which, const row *row) {
    const char *name = mel_titles[which].is_queue ? row->queue : row->search;
    if (!name) {
        return;
    }
    double sum = 0, least = value_of(&ranks[which], row), most = least;
    for (int rank = 0; rank < size; rank++) {
        double value = value_of(&ranks[rank * MEL_STATISTICS + which], row);
        sum += value;
        least = value < least ? value : least;
        most = value > most ? value : most;
    }
    mel_say("%s: sum %g%s, min %g%s, mean %g%s, max %g%s\n", name, sum, row->unit, least, row->unit, sum / size, row->unit,
            most, row->unit);
}

void mel_totals_report(void) {
    mel_sums mine[MEL_STATISTICS];
    int size = mel_size();
    mel_sums *ranks = mel_rank() == 0 ? malloc((size_t)size * sizeof mine) : NULL;
    mel_queues_sums(mine);
    /* Without room rank 0 still takes part, so that no rank waits for it for ever. */
    int enough = mel_rank() != 0 || ranks, all = 0;
    PMPI_Allreduce(&enough, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (all) {
        PMPI_Gather(mine, MEL_STATISTICS * VALUES, MPI_DOUBLE, ranks, MEL_STATISTICS * VALUES, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    }
    if (mel_rank() == 0 && ranks) {
        for (int which = 0; which < MEL_STATISTICS; which++) {
            mel_say("[MEL] %s all %d ranks\n", mel_titles[which].title, size);
            for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                report_row(ranks, size, which, &rows[i]);
            }
        }
    }
    free(ranks);
}
