/* MPI_Comm_split_type by parts of the machine and by process sets, and what MPI_Get_hw_resource_info says of them.
 * Ranks bind themselves, so that it is known what they are confined to.
 * RANKS: 1 2 5
 */
#define _GNU_SOURCE
#include <sched.h>

#include "check.h"

#define THREAD "hwloc://PU"

static int rank, size;
/* The CPUs that the job may use. */
static cpu_set_t allowed;
static int cpus[2];

static void bind_to(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
}

static MPI_Info hint(const char *key, const char *value) {
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, key, value));
    return info;
}

/* The size of the part of MPI_COMM_WORLD that this rank is in; 0 for none. */
static int part(int type, const char *key, const char *value) {
    MPI_Info info = hint(key, value);
    MPI_Comm comm;
    int members = 0;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, type, 0, info, &comm));
    if (comm != MPI_COMM_NULL) {
        OK(MPI_Comm_size(comm, &members));
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Info_free(&info));
    return members;
}

static int hardware(const char *kind) {
    int members = part(MPI_COMM_TYPE_HW_GUIDED, "mpi_hw_resource_type", kind);
    SAME(part(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_hw_resource_type", kind), members);
    return members;
}

/* 1: confined to one, 0: not, -1: there is no such resource. */
static int confined(const char *kind) {
    MPI_Info info;
    char value[8];
    int length = sizeof value, found;
    OK(MPI_Get_hw_resource_info(&info));
    OK(MPI_Info_get_string(info, kind, &length, value, &found));
    OK(MPI_Info_free(&info));
    if (!found)
        return -1;
    CHECK(strcmp(value, "true") == 0 || strcmp(value, "false") == 0);
    return strcmp(value, "true") == 0;
}

/* Splits until nothing is left to split; returns how often. */
static int levels(void) {
    MPI_Comm comm = MPI_COMM_WORLD, next;
    int level = 0;
    for (;; level++, comm = next) {
        MPI_Info info;
        int before, after, found, length = MPI_MAX_INFO_VAL;
        char kind[MPI_MAX_INFO_VAL];
        OK(MPI_Comm_size(comm, &before));
        OK(MPI_Info_create(&info));
        OK(MPI_Comm_split_type(comm, MPI_COMM_TYPE_HW_UNGUIDED, 0, info, &next));
        OK(MPI_Info_get_string(info, "mpi_hw_resource_type", &length, kind, &found));
        OK(MPI_Info_free(&info));
        if (comm != MPI_COMM_WORLD)
            OK(MPI_Comm_free(&comm));
        SAME(found, next != MPI_COMM_NULL);
        if (next == MPI_COMM_NULL)
            return level;
        OK(MPI_Comm_size(next, &after));
        CHECK(after < before);
        SAME(confined(kind), 1);
    }
}

static void all_on_one_cpu(void) {
    bind_to(cpus[0]);
    SAME(confined(THREAD), 1);
    SAME(confined("hwloc://Machine"), 1);
    SAME(hardware(THREAD), size);
    SAME(hardware("HWThread"), size);
    SAME(hardware("hwloc://Machine"), size);
    SAME(hardware("mpi_shared_memory"), size);
    SAME(hardware("hwloc://Bridge"), 0);
    /* Where the kernel says so, also to what is larger. */
    if (confined("hwloc://Package") >= 0)
        SAME(hardware("socket"), size);
    if (confined("hwloc://NUMANode") >= 0)
        SAME(hardware("numanode"), size);
    SAME(levels(), 0);
}

static void on_two_cpus(void) {
    int even = (size + 1) / 2, own = rank % 2 ? size - even : even;
    bind_to(cpus[rank % 2]);
    SAME(hardware(THREAD), own);
    /* Both CPUs may belong to one core, or each to a package of its own: but they are two. */
    SAME(levels(), size > 1);
    /* Rank 0 may use both. */
    if (rank == 0)
        CHECK(sched_setaffinity(0, sizeof allowed, &allowed) == 0);
    SAME(confined(THREAD), rank > 0);
    SAME(hardware(THREAD), rank == 0 ? 0 : rank % 2 ? own : own - 1);
}

static void some_take_no_part(void) {
    MPI_Comm comm;
    int members;
    bind_to(cpus[0]);
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : MPI_COMM_TYPE_HW_UNGUIDED, -rank, MPI_INFO_NULL, &comm));
    SAME(comm == MPI_COMM_NULL, rank == 0);
    if (comm != MPI_COMM_NULL) {
        int last;
        OK(MPI_Comm_size(comm, &members));
        SAME(members, size - 1);
        OK(MPI_Comm_rank(comm, &last));
        SAME(last, size - 1 - rank);
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, MPI_INFO_NULL, &comm));
    CHECK(comm == MPI_COMM_NULL);
}

static void process_sets(void) {
    MPI_Info info = hint("mpi_pset_name", "mpi://WORLD");
    MPI_Comm comm;
    SAME(part(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "mpi://WORLD"), size);
    SAME(part(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "mpi://SELF"), 1);
    SAME(part(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "app://ocean"), 0);
    /* This type is split by hardware alone. */
    SAME(part(MPI_COMM_TYPE_HW_GUIDED, "mpi_pset_name", "mpi://WORLD"), 0);
    OK(MPI_Info_set(info, "mpi_hw_resource_type", "mpi_shared_memory"));
    CLASS(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, info, &comm), MPI_ERR_INFO_KEY);
    OK(MPI_Info_free(&info));
}

int main(int argc, char **argv) {
    int found = 0;
    OK(MPI_Init(&argc, &argv));
    errors_return();
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    /* The launcher may have bound each rank to a CPU of its own: those of the job are what all ranks have together. */
    CHECK(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    OK(MPI_Allreduce(MPI_IN_PLACE, &allowed, sizeof allowed / sizeof(long), MPI_LONG, MPI_BOR, MPI_COMM_WORLD));
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
        if (CPU_ISSET(cpu, &allowed))
            cpus[found++] = cpu;
    all_on_one_cpu();
    some_take_no_part();
    if (found == 2)
        on_two_cpus();
    process_sets();
    OK(MPI_Finalize());
    return verdict();
}
