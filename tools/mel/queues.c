/* queues.c: how long entries stay in the two queues,
 * and how long searches in them take (section 5.2.2 of the paper). */
#include "mel.h"

#include <stdlib.h>

const mel_title mel_titles[MEL_STATISTICS] = {
    {"Posted queue statistics", true},
    {"Unexpected queue statistics", true},
    {"Posted queue search statistics", false},
    {"Unexpected queue search statistics", false},
};

/* Event types that begin and end a stay or a search: those of all communicators together, which also tell what was
 * pending on one that is freed, and those of one communicator, for an MPI that has no others.
 * `id`: the element that identifies a stay. */
enum { FORMS = 2 };
typedef struct {
    const char *first, *last, *id;
} form;

typedef struct {
    form forms[FORMS];
    pthread_mutex_t lock;
    mel_times inside;
    double populated_since;
    mel_sums sums;
} statistic;

static statistic all[MEL_STATISTICS] = {
    {.forms = {{"PERUSE_COMM_REQ_INSERT_IN_POSTED_Q_all", "PERUSE_COMM_REQ_REMOVE_FROM_POSTED_Q_all", "id"},
               {"pml_ob1_posted_insert", "pml_ob1_posted_remove", "request"}},
     .lock = PTHREAD_MUTEX_INITIALIZER},
    {.forms = {{"PERUSE_COMM_MSG_INSERT_IN_UNEX_Q_all", "PERUSE_COMM_MSG_REMOVE_FROM_UNEX_Q_all", "id"},
               {"pml_ob1_unex_insert", "pml_ob1_unex_remove", "request"}},
     .lock = PTHREAD_MUTEX_INITIALIZER},
    {.forms = {{"PERUSE_COMM_SEARCH_POSTED_Q_BEGIN_all", "PERUSE_COMM_SEARCH_POSTED_Q_END_all", NULL},
               {"pml_ob1_search_posted_begin", "pml_ob1_search_posted_end", NULL}},
     .lock = PTHREAD_MUTEX_INITIALIZER},
    {.forms = {{"PERUSE_COMM_SEARCH_UNEX_QUEUE_BEGIN_all", "PERUSE_COMM_SEARCH_UNEX_Q_END_all", NULL},
               {"pml_ob1_search_unexpected_begin", "pml_ob1_search_unexpected_end", NULL}},
     .lock = PTHREAD_MUTEX_INITIALIZER},
};

/* One of the eight event types, and the element that identifies a stay; -1: none,
 * because a search begins and ends on one thread. */
typedef struct {
    const mel_type *type;
    int id;
    statistic *statistic;
} side;

static side sides[2 * MEL_STATISTICS];

bool mel_queues_wanted(void) {
    const char *wanted = getenv("MEL_QUEUES");
    return wanted && *wanted && *wanted != '0';
}

static int64_t key_of(MPI_T_event_instance event, const side *side) {
    return side->id < 0 ? (int64_t)pthread_self() : mel_element_integer(event, side->type, side->id);
}

static void enter(MPI_T_event_instance event, MPI_T_event_registration handle, MPI_T_cb_safety safety, void *user) {
    (void)handle, (void)safety;
    side *side = user;
    statistic *of = side->statistic;
    double now = mel_event_time(event);
    int64_t id = key_of(event, side);
    pthread_mutex_lock(&of->lock);
    if (mel_times_put(&of->inside, id, now)) {
        if (of->inside.held == 1) {
            of->populated_since = now;
        }
        if ((double)of->inside.held > of->sums.length) {
            of->sums.length = (double)of->inside.held;
        }
    } else {
        of->sums.dropped++;
    }
    pthread_mutex_unlock(&of->lock);
}

static void leave(MPI_T_event_instance event, MPI_T_event_registration handle, MPI_T_cb_safety safety, void *user) {
    (void)handle, (void)safety;
    side *side = user;
    statistic *of = side->statistic;
    mel_sums *sums = &of->sums;
    double now = mel_event_time(event), since;
    int64_t id = key_of(event, side);
    pthread_mutex_lock(&of->lock);
    /* Entries that were inserted before the handles were registered are not counted. */
    if (mel_times_take(&of->inside, id, &since)) {
        double stay = now > since ? now - since : 0;
        sums->shortest = sums->number == 0 || stay < sums->shortest ? stay : sums->shortest;
        sums->longest = stay > sums->longest ? stay : sums->longest;
        sums->number++;
        sums->total += stay;
        if (of->inside.held == 0) {
            sums->populated += now - of->populated_since;
        }
    }
    pthread_mutex_unlock(&of->lock);
}

void mel_queues_dropped(MPI_Count count, MPI_T_event_registration handle, int source, MPI_T_cb_safety safety, void *user) {
    (void)handle, (void)source, (void)safety;
    side *side = user;
    pthread_mutex_lock(&side->statistic->lock);
    side->statistic->sums.dropped += (double)count;
    pthread_mutex_unlock(&side->statistic->lock);
}

/* Whether the MPI has both types of a form, and the element that it needs. */
static bool listen_by(statistic *of, const form *form, mel_want *each) {
    const mel_type *first = mel_type_named(form->first), *last = mel_type_named(form->last);
    int of_first = form->id ? mel_element(first, form->id) : -1, of_last = form->id ? mel_element(last, form->id) : -1;
    side *two = &sides[2 * (of - all)];
    if (!first || !last || (form->id && (of_first < 0 || of_last < 0))) {
        return false;
    }
    two[0] = (side){first, of_first, of};
    two[1] = (side){last, of_last, of};
    each(first, enter, &two[0]);
    each(last, leave, &two[1]);
    return true;
}

void mel_queues_each(mel_want *each) {
    for (int i = 0; i < MEL_STATISTICS; i++) {
        const form *forms = all[i].forms, *own = &forms[FORMS - 1];
        int found = 0;
        while (found < FORMS && !listen_by(&all[i], &forms[found], each)) {
            found++;
        }
        if (found == FORMS) {
            mel_say("MEL: no %s: this MPI has no event types '%s' and '%s' that name their request\n", mel_titles[i].title,
                    own->first, own->last);
        }
    }
}

void mel_queues_sums(mel_sums sums[MEL_STATISTICS]) {
    for (int i = 0; i < MEL_STATISTICS; i++) {
        pthread_mutex_lock(&all[i].lock);
        sums[i] = all[i].sums;
        pthread_mutex_unlock(&all[i].lock);
    }
}

static void report_queue(const mel_sums *sums) {
    mel_say("Num Messages: %.0f\n", sums->number);
    mel_say("Max length of message queue: %.0f\n", sums->length);
    mel_say("Time with messages in queue: %g s\n", sums->populated);
    mel_say("Total time of messages in queue: %g s\n", sums->total);
    if (sums->number > 0) {
        mel_say("Average time of message in queue: %g s\n", sums->total / sums->number);
        mel_say("Min time of message in queue: %g s\n", sums->shortest);
        mel_say("Max time of message in queue: %g s\n", sums->longest);
    }
}

static void report_search(const mel_sums *sums) {
    mel_say("Num Searches in queue: %.0f\n", sums->number);
    mel_say("Total time searching in queue: %g s\n", sums->total);
    if (sums->number > 0) {
        mel_say("Average time of a search: %g s\n", sums->total / sums->number);
        mel_say("Min time of a search: %g s\n", sums->shortest);
        mel_say("Max time of a search: %g s\n", sums->longest);
    }
}

void mel_queues_report(void) {
    mel_sums sums[MEL_STATISTICS];
    mel_queues_sums(sums);
    for (int i = 0; i < MEL_STATISTICS; i++) {
        mel_say("[MEL] %s rank: %d\n", mel_titles[i].title, mel_rank());
        (mel_titles[i].is_queue ? report_queue : report_search)(&sums[i]);
        if (sums[i].dropped > 0) {
            mel_say("Events lost: %.0f\n", sums[i].dropped);
        }
    }
}
