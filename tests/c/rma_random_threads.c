/* The random one-sided operations of several threads of each rank:
 * each with windows of its own, then all on windows that are locked once.
 * RANKS: 2 3
 * FLAGS: -pthread
 */
#define THREADS 3
#define ROUNDS 15
#define OWN_MAIN
#include "rma_random.c"
#include <pthread.h>

static void on_all(struct worker *workers, void *(*run)(void *))
{
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&thread[i], NULL, run, &workers[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
}

static int current;

static void *play_held(void *argument)
{
    struct worker *w = argument;
    play(w, &w->areas[current], HELD);
    return NULL;
}

/* All threads of all ranks are origins of one plan. */
static void work_together(struct worker *workers, struct area *areas)
{
    for (int i = 0; i < THREADS; i++) {
        make(&workers[i], 0, areas);
        workers[i].origin = workers[i].rank * THREADS + i, workers[i].origins = workers[i].size * THREADS;
        workers[i].own += (unsigned)i * 7919;
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < THREADS; i++) {
            current = draw(&workers[i].shared, KINDS);
            even_tickets(&workers[i], current);
            draw_plan(&workers[i], current, HELD, 0);
        }
        struct area *a = &areas[current];
        set_tickets(&workers[0], a);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        for (int i = 0; i < 2; i++) OK(MPI_Win_lock_all(0, a->win[i]));
        on_all(workers, play_held);
        for (int i = 0; i < 2; i++) OK(MPI_Win_unlock_all(a->win[i]));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        check_memory(&workers[0], a);
        check_tickets(workers, THREADS);
        for (int i = 0; i < THREADS; i++) forget(&workers[i]);
    }
    for (int i = 0; i < THREADS; i++) end(&workers[i]);
}

int main(int argc, char **argv)
{
    static struct area own[THREADS][KINDS], together[KINDS];
    static struct worker worker[THREADS];
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    SAME(provided, MPI_THREAD_MULTIPLE);
    for (int i = 0; i < THREADS; i++) {
        make(&worker[i], i, own[i]);
        for (int k = 0; k < KINDS; k++) make_area(&worker[i], &own[i][k], k);
    }
    on_all(worker, work);
    for (int i = 0; i < THREADS; i++) {
        for (int k = 0; k < KINDS; k++) free_area(&own[i][k]);
        end(&worker[i]);
    }
    make(&worker[0], 0, together);
    for (int k = 0; k < KINDS; k++) make_area(&worker[0], &together[k], k);
    end(&worker[0]);
    int failed;
    OK(MPI_Allreduce(&failures, &failed, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (failed == 0) work_together(worker, together);
    for (int k = 0; k < KINDS; k++) free_area(&together[k]);
    MPI_Finalize();
    return verdict();
}
