/* A rank that is killed in the middle of an accumulate keeps nobody from the elements that it was reducing.
 * RANKS: 3
 * OPTIONS: --survive
 */
#include "survive.h"
#include <sys/time.h>

enum { DOUBLES = 40000 };

int main(void)
{
    static double ones[DOUBLES];
    int rank;
    double *memory;
    MPI_Win win;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    OK(MPI_Win_allocate(DOUBLES * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    for (int i = 0; i < DOUBLES; i++) ones[i] = 1, memory[i] = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    if (rank == 2) {
        struct itimerval soon = {{0, 0}, {0, 30000}};
        signal(SIGALRM, SIG_DFL);
        setitimer(ITIMER_REAL, &soon, NULL);
        for (;;) MPI_Accumulate(ones, DOUBLES, MPI_DOUBLE, 0, 0, DOUBLES, MPI_DOUBLE, MPI_SUM, win);
    }
    await_deaths(MPI_COMM_WORLD, 1);
    for (int i = 0; i < 20; i++) OK(MPI_Accumulate(ones, DOUBLES, MPI_DOUBLE, 0, 0, DOUBLES, MPI_DOUBLE, MPI_SUM, win));
    OK(MPI_Win_flush(0, win));
    double got;
    OK(MPI_Fetch_and_op(ones, &got, MPI_DOUBLE, 0, DOUBLES - 1, MPI_NO_OP, win));
    CHECK(got >= 20);
    OK(MPI_Win_unlock_all(win));
    MPI_Finalize();
    return verdict();
}
