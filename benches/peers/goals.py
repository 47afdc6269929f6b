"""The goals, and how far we are: ratios to the best of the peers, or to the machine, in one run."""

from typing import NamedTuple


class Goal(NamedTuple):
    text: str
    metrics: tuple
    # "peer": ours / best peer's; "limit": ours / the machine's; "own": ours; "self": ours / ours of another metric;
    # "behind", "ahead": the share of the matrix's cells that are at more than 1.05 of the best peer, or at 0.7 or less;
    # "worst": the worst ratio of a cell.
    against: str
    at_most: float | None = None
    at_least: float | None = None
    other: str | None = None

    def compared(self):
        """Metrics that must be of one mode: each alone, or with the one that it is held against."""
        return [(metric, self.other) if self.other else (metric,) for metric in self.metrics]


def sized(word, *cases):
    return tuple(f"{word}/{case}" for case in cases)


GOALS = (
    Goal("one-way latency, 8 B, 2 ranks: ≤ 0.6 of the best peer", ("latency/8",), "peer", at_most=0.6),
    Goal("the same: ≤ 1.5 of a bare line each way", ("latency/8",), "limit", at_most=1.5),
    Goal("message rate, 8 B, window 64: ≥ 2 times the best peer", ("rate/1pair",), "peer", at_least=2),
    Goal("latency 64 KiB: ≤ 0.7 of the best peer", ("latency/65536",), "peer", at_most=0.7),
    Goal("the same, buffers from MPI_Alloc_mem", ("latency-shared/65536",), "peer", at_most=0.7),
    Goal("the same, buffers from malloc, perusal with --share-heap", ("latency-heap/65536",), "peer", at_most=0.7),
    Goal("bandwidth 64 KiB – 4 MiB: ≥ 1.3 times the best peer", sized("bandwidth", 65536, 262144, 1 << 20, 4 << 20), "peer", at_least=1.3),
    Goal("the same, buffers from MPI_Alloc_mem", sized("bandwidth-shared", 65536, 262144, 1 << 20, 4 << 20), "peer", at_least=1.3),
    Goal("the same, buffers from malloc, perusal with --share-heap", sized("bandwidth-heap", 65536, 262144, 1 << 20, 4 << 20), "peer", at_least=1.3),
    Goal("match at depth 10,000, posted (exact, any source): ≤ 0.01 of the best peer", sized("posted", "exact-10000", "any-source-10000"), "peer", at_most=0.01),
    Goal("posted, exact: depth 10,000 ≤ 2 times our own depth 1", ("posted/exact-10000",), "self", at_most=2, other="posted/exact-1"),
    Goal("posted, any source: the same", ("posted/any-source-10000",), "self", at_most=2, other="posted/any-source-1"),
    Goal("match at depth 10,000, unexpected, last first: no slower than the best peer", sized("unexpected", "exact-10000", "any-source-10000"), "peer", at_most=1),
    Goal("the same with any tag (oldest first)", sized("unexpected", "any-tag-10000", "any-10000"), "peer", at_most=1),
    Goal("match at depth 1, unexpected: ≤ 0.7 of the best peer", ("unexpected/exact-1",), "peer", at_most=0.7),
    Goal("two pairs (4 ranks), latency 8 B: ≤ 0.3 of the best peer", ("latency-2pairs/8",), "peer", at_most=0.3),
    Goal("barrier, 16 ranks: ≤ 0.4 of the best peer", ("barrier/16",), "peer", at_most=0.4),
    Goal("allreduce 8 B, 16 ranks: ≤ 0.4 of the best peer", ("allreduce/16-8",), "peer", at_most=0.4),
    Goal("all to all by wildcard, 64 ranks: ≥ 2 times the best peer", ("wildcard/64",), "peer", at_least=2),
    Goal("file, blocks of 1 MiB written: ≥ 0.95 of a bare pwrite", ("files/write-2",), "self", at_least=0.95, other="files/bare-write-2"),
    Goal("the same read, against pread", ("files/read-2",), "self", at_least=0.95, other="files/bare-read-2"),
    Goal("file, blocks of 1 MiB written and read: no slower than the best peer", ("files/write-2", "files/read-2"), "peer", at_least=1),
    Goal("file, nonblocking write of 16 MiB, a CPU idle: computing hides ≥ 0.8 of it", ("files-overlap/iwrite-4",), "own", at_least=0.8),
    Goal("file, every n-th KiB written and read together, 2 and 4 ranks: ≥ 2 times the best peer", sized("files", "write-all-2", "read-all-2", "write-all-4", "read-all-4"), "peer", at_least=2),
    Goal("file, every n-th 100 bytes written alone, 2 and 4 ranks: ≥ 2 times the best peer", sized("files", "write-strided-2", "write-strided-4"), "peer", at_least=2),
    Goal("file, 1 KiB at the shared pointer, 4 ranks: ≥ 2 times the best peer", ("files/write-shared-4",), "peer", at_least=2),
    Goal("the same: ≥ 0.8 of a bare pwrite of as many records", ("files/write-shared-4",), "self", at_least=0.8, other="files/bare-write-shared-4"),
    Goal("put of 8 B and flush, lock_all held: ≤ 0.3 of the best peer", ("rma/put-8",), "peer", at_most=0.3),
    Goal("the same: ≤ 2 of a bare store and fence", ("rma/put-8",), "limit", at_most=2),
    Goal("get of 8 B and flush: ≤ 0.3 of the best peer", ("rma/get-8",), "peer", at_most=0.3),
    Goal("the same: ≤ 1.5 of a bare line each way", ("rma/get-8",), "limit", at_most=1.5),
    Goal("lock, put, unlock: ≤ 0.3 of the best peer", ("rma/lock-put-unlock",), "peer", at_most=0.3),
    Goal("fetch-and-op, compare-and-swap, int64: ≤ 0.3 of the best peer", ("rma/fetch-and-op", "rma/compare-and-swap"), "peer", at_most=0.3),
    Goal("the same: ≤ 1.5 of a bare atomic instruction", ("rma/fetch-and-op", "rma/compare-and-swap"), "limit", at_most=1.5),
    Goal("the same of two ranks at once: ≤ 0.7 of the best peer", ("rma/contended-fetch-and-op", "rma/contended-compare-and-swap"), "peer", at_most=0.7),
    Goal("put and get, 1 MiB, also every second 64 B: ≥ 1.3 times the best peer", ("rma-bandwidth/put", "rma-bandwidth/get", "rma-bandwidth/strided-put"), "peer", at_least=1.3),
    Goal("accumulate, sum of doubles, 64 KiB: ≥ 1.5 times the best peer", ("rma-accumulate/65536",), "peer", at_least=1.5),
    Goal("fence and post-start-complete-wait, 2 ranks: ≤ 0.6 of the best peer", ("rma-sync/fence-2", "rma-sync/pscw-2"), "peer", at_most=0.6),
    Goal("the same, 16 ranks: ≤ 0.4 of the best peer", ("rma-sync/fence-16", "rma-sync/pscw-16"), "peer", at_most=0.4),
    Goal("a lock, a put and an unlock while the target computes for 50 ms: ≤ 1,000 µs", ("rma/while-computing",), "own", at_most=1000),
    Goal("spawn of 8 ranks to the first message of a child: ≤ 0.3 of the best peer", ("spawn/8",), "peer", at_most=0.3),
    Goal("connect and accept: ≤ 0.3 of the best peer", ("connect/2",), "peer", at_most=0.3),
    Goal("latency afterwards: ≤ 1.1 of that within a communicator", ("connect-latency/8",), "self", at_most=1.1, other="latency/8"),
    Goal("16 partitions of 64 KiB, readied by 4 threads: ≥ 1.3 times the best peer", ("partitioned/16x65536",), "peer", at_least=1.3),
    Goal("launch to end of an empty program, 16 ranks: ≤ 0.15 of the best peer", ("launch/16",), "peer", at_most=0.15),
    Goal("CPU of a rank that waits a second: ≤ 0.02 s", ("idle/recv",), "own", at_most=0.02),
    Goal("memory a rank (PSS) after init, 64 ranks: ≤ 0.3 of the best peer", ("memory/init-64",), "peer", at_most=0.3),
    Goal("cells of the matrix behind the best peer by more than 5 %: ≤ 0.05", (), "behind", at_most=0.05),
    Goal("the worst cell of the matrix: ≤ 1.25 of the best peer", (), "worst", at_most=1.25),
    Goal("cells of the matrix at 0.7 of the best peer or less: ≥ 0.5", (), "ahead", at_least=0.5),
    Goal("two threads on two communicators: ≥ 1.6 times one thread", ("threads/self-comms-2",), "self", at_least=1.6, other="threads/self-comms-1"),
)


class Verdict(NamedTuple):
    goal: Goal
    # Ratio (or figure) of the metric that is worst; None if it was not measured.
    value: float | None
    metric: str
    reached: bool
    # The machine's mode in which that was measured, the other one's ratio, and how many samples of each there are.
    mode: str
    samples: int
    other_mode: str | None = None
    other_value: float | None = None
    other_samples: int = 0


def ratio(goal, metric, summary, mode):
    ours, other = summary.ours(metric, mode), summary.ours(goal.other, mode) if goal.other else None
    if goal.against == "peer":
        return summary.to_peer(metric, mode)
    if goal.against == "limit":
        return summary.to_limit(metric, mode)
    if goal.against == "own":
        return ours
    return ours / other if ours is not None and other else None


def judge_matrix(goal, summary):
    cells = summary.cells()
    if not cells:
        return Verdict(goal, None, "matrix", False, summary.main(), 0)
    metric, worst = max(cells.items(), key=lambda cell: cell[1])
    share = lambda counts: sum(counts(it) for it in cells.values()) / len(cells)
    value = {"behind": share(lambda it: it > 1.05), "ahead": share(lambda it: it <= 0.7), "worst": worst}[goal.against]
    return Verdict(goal, value, metric, reached(goal, value), summary.main(metric), len(cells))


def reached(goal, value):
    return value <= goal.at_most if goal.at_most is not None else value >= goal.at_least


def judge(goal, summary):
    if goal.against in ("behind", "ahead", "worst"):
        return judge_matrix(goal, summary)
    libraries = None if goal.against == "peer" else ["perusal"]
    measured = []
    for metrics in goal.compared():
        mode = summary.main(*metrics, libraries=libraries)
        value = ratio(goal, metrics[0], summary, mode)
        if value is not None:
            measured.append((value, metrics, mode))
    if len(measured) < len(goal.metrics):
        return Verdict(goal, None, goal.metrics[0], False, summary.main(goal.metrics[0]), 0)
    value, metrics, mode = (max if goal.at_most is not None else min)(measured)
    count = lambda of: min(summary.samples(metric, of, libraries) for metric in metrics)
    other = summary.other(metrics[0], mode)
    return Verdict(goal, value, metrics[0], reached(goal, value), mode, count(mode),
                   other, other and ratio(goal, metrics[0], summary, other), count(other) if other else 0)
