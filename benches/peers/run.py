"""Runs everything in turn and keeps what was printed: results[metric][variant] is a list of samples (modes.py)."""

import contextlib
import mmap
import os
import signal
import subprocess
import time
from pathlib import Path

import catalog
import libraries
from modes import STEADY


def end(job):
    """Ends a job that goes on; gives what it had printed. A launcher that is asked ends its ranks, in whatever sessions they are."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return job.communicate(timeout=5)[0]
    return ""


class Prober:
    """The program that bounces a line between two processors whenever a job asks for it (probe.h), and the page where it is asked."""

    def __init__(self, program, processors, prefix=()):
        self.file = os.memfd_create("peers-probe")
        os.ftruncate(self.file, mmap.PAGESIZE)
        self.page = mmap.mmap(self.file, mmap.PAGESIZE)
        self.path = f"/proc/{os.getpid()}/fd/{self.file}"
        self.process = subprocess.Popen([*prefix, program, self.path, *map(str, processors[:2])], stdin=subprocess.DEVNULL, start_new_session=True)

    def ready(self):
        """Forgets ranks that came to a probe in a job that was ended. Gives the page's path."""
        if self.process.poll() is not None:
            raise RuntimeError(f"the prober ended with status {self.process.returncode}")
        self.page[:4] = bytes(4)
        return self.path

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Bench:
    def __init__(self, build: Path, variants, metrics, scale, fifo):
        self.build, self.variants, self.metrics = build, variants, metrics
        self.scale, self.fifo = scale, fifo
        processors = sorted(os.sched_getaffinity(0))
        self.processors = len(processors)
        # Without a second processor there is no line to bounce, and one mode.
        self.prober = Prober(str(build / "prober"), processors, self.first(True)) if self.processors > 1 else None
        self.results, self.limits = {}, {}
        # Which groups a metric was seen in, and the longest that a group has taken.
        self.groups_of, self.longest = {}, {}
        # (group, variant): how often it did not end in time, or failed, and what it said last.
        self.slow, self.failed, self.commands = {}, {}, {}

    def end(self):
        if self.prober:
            self.prober.end()

    def repeatable(self, metrics):
        """Those of the metrics that another round measures."""
        again = {group.name for group in catalog.GROUPS if group.rounds is None}
        return {metric for metric in metrics if self.groups_of[metric] & again}

    def record(self):
        """All that is known, as JSON has it."""
        name = lambda key: f"{key[1]} ({key[0]})"
        return {
            "results": self.results, "limits": self.limits, "commands": self.commands,
            "slow": {name(key): count for key, count in self.slow.items()}, "failed": {name(key): said for key, said in self.failed.items()},
        }

    def keep(self, group, variant, metric, sample):
        self.results.setdefault(metric, {}).setdefault(variant.name, []).append(sample)
        self.groups_of.setdefault(metric, set()).add(group.name)

    def start(self, command, environment, limit):
        """Gives (output, seconds, ended in time, status); ends all that it started."""
        probes = {"BENCH_PAGE": self.prober.ready() if self.prober else "", "BENCH_STEADY": str(STEADY)}
        env = {**os.environ, "BENCH_SCALE": str(self.scale), "LC_ALL": "C", **probes, **environment, "BENCH_START": f"{time.time():.6f}"}
        before = time.monotonic()
        job = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, start_new_session=True)
        try:
            output, _ = job.communicate(timeout=limit)
            return output, time.monotonic() - before, True, job.returncode
        except subprocess.TimeoutExpired:
            return end(job), limit, False, 124
        except BaseException:
            end(job)
            raise

    def first(self, dedicated):
        """Processes that all have a processor may keep it. Others would stop each other for good, where one spins, so they get weight."""
        if not self.fifo:
            return []
        return ["chrt", "-f", "1"] if dedicated else ["nice", "-n", "-20"]

    def parse(self, output):
        """What the benchmark says ("R METRIC VALUE [BEFORE AFTER]"), and the counter ("case=send calls=MPI_Send instructions=168")."""
        for line in output.splitlines():
            words = line.split()
            if len(words) in (3, 5) and words[0] == "R":
                yield words[1], [float(word) for word in words[2:]]
            elif line.startswith("case="):
                pairs = dict(word.split("=", 1) for word in words)
                yield f"instructions/{pairs['case']}", [float(pairs["instructions"])]

    def job(self, group, variant, metrics):
        command = variant.command(group, self.processors)
        kind = "count" if "instructions" in metrics else "bench"
        arguments = () if set(catalog.OTHER_PROGRAM) & set(metrics) else group.arguments(metrics)
        command = self.first(group.dedicated(self.processors)) + command + [libraries.program(self.build, variant.library, kind), *arguments]
        self.commands[f"{group.name}: {variant.name}"] = " ".join(
            [f"{name}={value}" for name, value in variant.environment.items()] + command)
        output, took, in_time, status = self.start(command, variant.environment, group.limit)
        for metric, sample in self.parse(output):
            self.keep(group, variant, metric, sample)
        key = (group.name, variant.name)
        if not in_time:
            self.slow[key] = self.slow.get(key, 0) + 1
        elif status != 0:
            self.failed[key] = (status, output[-400:])
        elif "launch" in metrics:
            self.keep(group, variant, f"launch/{group.ranks}", [took * 1e3])

    def round(self, number, say, left, only=None):
        """Every group once, or those in which a metric of `only` was seen. Who begins changes from round to round. Gives whether there was
        time for all of it, which is asked of `left` before each group: seconds."""
        for group in catalog.GROUPS:
            metrics = [metric for metric in group.metrics if metric in self.metrics]
            if not metrics or (group.rounds is not None and number >= group.rounds):
                continue
            if only is not None and not any(group.name in self.groups_of[metric] for metric in only):
                continue
            if number > 0 and left() < self.longest.get(group.name, 0):
                return False
            began = time.monotonic()
            self.group(group, metrics, number, say)
            self.longest[group.name] = max(self.longest.get(group.name, 0), time.monotonic() - began)
        if left() > 0 or number == 0:
            say("limits")
            for dedicated, what in zip((True, False), catalog.LIMITS):
                self.measure_limits(dedicated, what)
        return True

    def group(self, group, metrics, number, say):
        taking_part = [v for v in self.variants if v.groups is None or group.name in v.groups]
        turn = number % len(taking_part)
        for variant in taking_part[turn:] + taking_part[:turn]:
            if self.slow.get((group.name, variant.name)) and number >= catalog.ROUNDS_WHEN_SLOW:
                continue
            say(f"{group.name}: {variant.name}")
            self.job(group, variant, metrics)
        if group.name in catalog.PAIRS:
            self.measure_limits(True, "line")

    def measure_limits(self, dedicated, what):
        output, *_ = self.start([*self.first(dedicated), str(self.build / "limits"), *what.split()], {}, 60)
        for metric, sample in self.parse(output):
            self.limits.setdefault(metric, []).append(sample)
