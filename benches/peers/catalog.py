"""What is measured: groups of metrics that share a job, and what their figures mean."""

from typing import NamedTuple


class Group(NamedTuple):
    """Metrics that run one after the other in one job."""

    name: str
    ranks: int
    metrics: tuple
    # Seconds after which a job is ended; what it had printed until then counts.
    limit: float
    # None: in every round.
    rounds: int | None = None
    # Ranks have threads, or another process beside, which must find more than the processor that a rank would be bound
    # to.
    threaded: bool = False
    # How often a job measures each of its metrics but the first start:
    # samples of the goals' metrics, more than one a job.
    passes: int = 1
    # Buffers are malloc's, and a launcher that can have them shared does so.
    sharing: bool = False

    def dedicated(self, processors):
        """Everyone has a processor."""
        return self.ranks <= processors and not self.threaded

    def arguments(self, metrics):
        """What the benchmark gets: each of these metrics, as often as it is measured."""
        once = [metric for metric in metrics if metric in ONCE]
        return once + [metric for metric in metrics if metric not in ONCE] * self.passes


# What a job can tell once only, and what has no arguments: its program is another one.
ONCE = ("startup", "memory")
OTHER_PROGRAM = ("launch", "instructions")
COLLECTIVES = ("startup", "collectives")
# Two ranks' jobs are short, so that all libraries meet the same mode of the machine;
# after each of these groups the line is measured, too.
PAIRS = ("pair", "streams", "shared malloc", "posted", "unexpected", "collectives", "one-sided", "matrix")
GROUPS = (
    Group("pair", 2, ("startup", "latency", "latency-shared", "rate"), 20, passes=2),
    Group("streams", 2, ("bandwidth", "bandwidth-shared"), 20, passes=2),
    Group("shared malloc", 2, ("latency-heap", "bandwidth-heap"), 20, passes=2, sharing=True),
    Group("posted", 2, ("posted",), 15),
    Group("unexpected", 2, ("unexpected",), 25),
    Group("collectives", 2, ("collectives",), 12),
    Group("one-sided", 2, ("onesided", "onesided-sync"), 40),
    Group("wait", 2, ("idle",), 10, rounds=3),
    Group("two pairs", 4, ("startup", "latency", "rate", "collectives"), 20, passes=2),
    Group("8 ranks", 8, COLLECTIVES, 12),
    Group("16 ranks", 16, (*COLLECTIVES, "onesided-sync"), 20, passes=2),
    Group("32 ranks", 32, COLLECTIVES, 15),
    Group("crowd", 64, ("startup", "memory", "wildcard"), 30, passes=2),
    Group("threads", 2, ("threads",), 20, threaded=True),
    Group("threads alone", 1, ("self-threads",), 10, threaded=True, passes=2),
    Group("files", 2, ("files",), 30),
    Group("files of 4 ranks", 4, ("files",), 40),
    Group("matrix", 2, ("matrix",), 60, rounds=5),
    Group("matrix of 4 ranks", 4, ("matrix",), 90, rounds=3),
    Group("matrix of 8 ranks", 8, ("matrix",), 120, rounds=3),
    Group("matrix of 16 ranks", 16, ("matrix",), 120, rounds=2),
    Group("spawn", 1, ("spawn",), 30, threaded=True),
    Group("connect", 2, ("latency", "connect"), 20),
    Group("partitioned", 2, ("partitioned",), 20, threaded=True, passes=2),
    # benches/instructions.c: a second process counts instructions one by one. Load does not matter, and once is enough.
    Group("instructions", 2, ("instructions",), 60, rounds=1, threaded=True),
    # No benchmark but a program that is empty; the driver has the clock.
    Group("launch 2", 2, ("launch",), 15),
    Group("launch 16", 16, ("launch",), 25),
)
METRICS = tuple(dict.fromkeys(metric for group in GROUPS for metric in group.metrics))
# A library that does not end in time takes part in this many rounds of that group only.
ROUNDS_WHEN_SLOW = 3
# Once a round, where everyone has a processor and where not.
LIMITS = ("line copy bare barrier 2", "barrier 4 barrier 8 barrier 16 barrier 32 launch 2 launch 16")


class Family(NamedTuple):
    """The figures whose names begin alike."""

    title: str
    unit: str
    # The word for the case in a chart's x axis; None where cases are no numbers.
    axis: str | None
    higher: bool = False


FAMILIES = {
    "latency": Family("One-way latency, 2 ranks", "µs", "bytes"),
    "latency-2pairs": Family("One-way latency, two pairs", "µs", "bytes"),
    "latency-shared": Family("One-way latency, 2 ranks, buffers from MPI_Alloc_mem", "µs", "bytes"),
    "latency-heap": Family("One-way latency, 2 ranks, buffers from malloc, perusal with --share-heap", "µs", "bytes"),
    "bandwidth-heap": Family("Bandwidth, one way, buffers from malloc, perusal with --share-heap", "GB/s", "bytes", True),
    "bandwidth": Family("Bandwidth, one way", "GB/s", "bytes", True),
    "bandwidth-shared": Family("Bandwidth, one way, buffers from MPI_Alloc_mem", "GB/s", "bytes", True),
    "bidirectional": Family("Bandwidth, both ways together", "GB/s", "bytes", True),
    "rate": Family("Messages of 8 bytes, windows of 64", "M/s", None, True),
    "posted": Family("Round trip to the last of the posted receives", "µs", "depth"),
    "unexpected": Family("A receive from the unexpected queue", "µs", "depth"),
    "barrier": Family("Barrier", "µs", "ranks"),
    "bcast": Family("Broadcast", "µs", "bytes"),
    "allreduce": Family("Allreduce", "µs", "bytes"),
    "alltoall": Family("Alltoall, bytes for each", "µs", "bytes"),
    "wildcard": Family("All to all by wildcard", "k/s", "ranks", True),
    "threads": Family("Messages of several threads", "M/s", "threads", True),
    "files": Family("A file in the page cache", "GB/s", "ranks", True),
    "files-overlap": Family("A file's nonblocking write, hidden by computing", "share", "ranks", True),
    "rma": Family("One-sided operations of 8 bytes, complete at the target", "µs", None),
    "rma-bandwidth": Family("One-sided bandwidth, 1 MiB", "GB/s", None, True),
    "rma-accumulate": Family("Accumulates of doubles, 64 KiB", "k/s", "bytes", True),
    "rma-sync": Family("Synchronisation of windows", "µs", "ranks"),
    "spawn": Family("Spawn to the first message of a child", "ms", "children"),
    "connect": Family("Accept, connect and disconnect", "µs", None),
    "connect-latency": Family("One-way latency between groups that have met at a port", "µs", None),
    "partitioned": Family("Partitions that 4 threads mark as ready", "GB/s", None, True),
    "matrix": Family("The matrix", "µs", "bytes"),
    "startup": Family("Launch to the end of the last MPI_Init", "ms", "ranks"),
    "launch": Family("Launch to end of an empty program", "ms", "ranks"),
    "memory": Family("Memory a rank (PSS)", "MiB", "ranks"),
    "instructions": Family("Instructions of a call, 8 bytes", "steps", None),
    "idle": Family("CPU of a rank that waits, seconds a second", "s", None),
}


def family(metric):
    return FAMILIES[metric.split("/")[0]]


def case(metric):
    """A metric's series and its place there: "posted/exact-10" is ("exact", 10), "bcast/16-8" is ("16 ranks", 8)."""
    word, _, name = metric.partition("/")
    series, _, last = name.rpartition("-")
    if not last.isdigit():
        return (name, None)
    if word in ("bcast", "allreduce", "alltoall", "matrix"):
        series += " ranks"
    return (series, int(last))


def limit(metric, limits):
    """What the machine can do at best at this metric, of what was measured in the same run; None if nothing was."""
    word, _, name = metric.partition("/")
    line = limits.get("line/each-way")
    if word in ("latency", "latency-shared", "latency-heap") and line is not None:
        size = int(name)
        if size <= 64:
            return line
        rate = limits.get(f"copy/{max(size, 4096)}")
        return line + size / rate * 1e-3 if rate else None
    if word in ("bandwidth", "bandwidth-shared", "bandwidth-heap", "bidirectional"):
        return limits.get(f"copy/{name}")
    if word == "rma":
        bare = {"put-8": "bare/store-fence", "get-8": "line/each-way", "fetch-and-op": "bare/fetch-add", "compare-and-swap": "bare/fetch-add"}
        return limits.get(bare.get(name))
    if word == "rma-bandwidth":
        return limits.get(f"copy/{1 << 20}")
    if word == "barrier":
        return limits.get(f"flags/{name}")
    if word == "allreduce" and name.endswith("-8"):
        return limits.get(f"flags/{name[:-2]}")
    if word == "launch":
        return limits.get(f"spawn/{name}")
    return None
