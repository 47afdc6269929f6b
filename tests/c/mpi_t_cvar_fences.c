/* Which side pays for the fence between a store and a load is what was written to sender_fences before MPI_Init: with
 * senders that fence, no rank asks the kernel to fence the others; without, one does before it sleeps.
 * RANKS: 2
 */
#define _GNU_SOURCE
#include "mpi_t_counter.h"
#include <dlfcn.h>
#include <linux/membarrier.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SENDERS_FENCE
#define SENDERS_FENCE 0
#endif

enum { TRIES = 200 };
static int fences;

/* The library calls this one. */
long syscall(long number, ...)
{
    static long (*real)(long, ...);
    long arguments[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) arguments[i] = va_arg(list, long);
    va_end(list);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    if (number == SYS_membarrier && (int)arguments[0] == MEMBARRIER_CMD_GLOBAL_EXPEDITED) fences++;
    return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}

int main(int argc, char **argv)
{
    int provided, index = -1, count, rank, choice = SENDERS_FENCE, enough = 0;
    MPI_T_cvar_handle handle;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_cvar_get_index("sender_fences", &index));
    OK(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count));
    long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    if (!SENDERS_FENCE && (commands < 0 || !(commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED))) {
        puts("this kernel has no membarrier: senders must fence");
        choice = 1;
    }
    OK(MPI_T_cvar_write(handle, &choice));
    OK(MPI_Init(&argc, &argv));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    OK(MPI_T_pvar_session_create(&session));
    MPI_T_pvar_handle sleeps = counter("sleeps");
    for (int i = 0; i < TRIES && !enough; i++) {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        unsigned long long before = read_of(sleeps);
        fences = 0;
        if (rank == 1) {
            usleep(20000);
            OK(MPI_Send(&i, 1, MPI_INT, 0, 5, MPI_COMM_WORLD));
        } else {
            OK(MPI_Recv(&index, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            enough = read_of(sleeps) > before;
            if (choice) SAME(fences, 0);
            else if (enough) CHECK(fences > 0);
        }
        OK(MPI_Bcast(&enough, 1, MPI_INT, 0, MPI_COMM_WORLD));
    }
    CHECK(enough);
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return verdict();
}
