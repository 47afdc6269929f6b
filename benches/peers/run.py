"""Runs everything in turn and keeps what was printed: results[metric][variant] is a list, a value a round."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import catalog
import libraries


def end(job):
    """Ends a job that goes on; gives what it had printed. A launcher that is asked ends its ranks, in whatever sessions they are."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return job.communicate(timeout=5)[0]
    return ""


class Bench:
    def __init__(self, build: Path, variants, metrics, scale, fifo):
        self.build, self.variants, self.metrics = build, variants, metrics
        self.scale, self.fifo = scale, fifo
        self.processors = len(os.sched_getaffinity(0))
        self.results, self.limits = {}, {}
        # (group, variant): how often it did not end in time, or failed, and what it said last.
        self.slow, self.failed, self.commands = {}, {}, {}

    def record(self):
        """All that is known, as JSON has it."""
        name = lambda key: f"{key[1]} ({key[0]})"
        return {
            "results": self.results, "limits": {metric: values["limit"] for metric, values in self.limits.items()}, "commands": self.commands,
            "slow": {name(key): count for key, count in self.slow.items()}, "failed": {name(key): said for key, said in self.failed.items()},
        }

    def keep(self, into, metric, name, value):
        into.setdefault(metric, {}).setdefault(name, []).append(value)

    def start(self, command, environment, limit):
        """Gives (output, seconds, ended in time, status); ends all that it started."""
        env = {**os.environ, "BENCH_SCALE": str(self.scale), "LC_ALL": "C", **environment, "BENCH_START": f"{time.time():.6f}"}
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

    def first(self, roomy):
        """Processes that all have a processor may keep it. Others would stop each other for good, where one spins, so they get weight."""
        if not self.fifo:
            return []
        return ["chrt", "-f", "1"] if roomy else ["nice", "-n", "-20"]

    def parse(self, output):
        """What the benchmark says ("R METRIC VALUE"), and the counter ("case=send calls=MPI_Send instructions=168")."""
        for line in output.splitlines():
            words = line.split()
            if len(words) == 3 and words[0] == "R":
                yield words[1], float(words[2])
            elif line.startswith("case="):
                pairs = dict(word.split("=", 1) for word in words)
                yield f"instructions/{pairs['case']}", float(pairs["instructions"])

    def job(self, group, variant, metrics):
        command = variant.command(group, self.processors)
        kind = "count" if "instructions" in metrics else "bench"
        arguments = () if {"launch", "instructions"} & set(metrics) else metrics
        command = self.first(group.roomy(self.processors)) + command + [libraries.program(self.build, variant.library, kind), *arguments]
        self.commands[f"{group.name}: {variant.name}"] = " ".join(
            [f"{name}={value}" for name, value in variant.environment.items()] + command)
        output, took, in_time, status = self.start(command, variant.environment, group.limit)
        for metric, value in self.parse(output):
            self.keep(self.results, metric, variant.name, value)
        key = (group.name, variant.name)
        if not in_time:
            self.slow[key] = self.slow.get(key, 0) + 1
        elif status != 0:
            self.failed[key] = (status, output[-400:])
        elif "launch" in metrics:
            self.keep(self.results, f"launch/{group.ranks}", variant.name, took * 1e3)

    def round(self, number, say):
        """Everything once. Who begins changes from round to round."""
        for group in catalog.GROUPS:
            metrics = [metric for metric in group.metrics if metric in self.metrics]
            if not metrics or (group.rounds is not None and number >= group.rounds):
                continue
            taking_part = [v for v in self.variants if v.groups is None or group.name in v.groups]
            turn = number % len(taking_part)
            for variant in taking_part[turn:] + taking_part[:turn]:
                if self.slow.get((group.name, variant.name)) and number >= catalog.ROUNDS_WHEN_SLOW:
                    continue
                say(f"{group.name}: {variant.name}")
                self.job(group, variant, metrics)
        say("limits")
        for roomy, what in zip((True, False), catalog.LIMITS):
            output, *_ = self.start([*self.first(roomy), str(self.build / "limits"), *what.split()], {}, 60)
            for metric, value in self.parse(output):
                self.keep(self.limits, metric, "limit", value)
