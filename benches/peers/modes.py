"""The machine's modes, and which samples belong together.

On a virtual machine the processors of two ranks change places on the host: a line between them takes 0.05 or 0.3 µs, for
seconds to minutes, and all that two ranks do goes with it. So a line is bounced before and after each sample (probe.h), and
samples are compared with samples of the same mode alone.

A sample is [value], or [value, before, after] with the microseconds that a line took; where it was taken in a quicker way or
on one processor there are no probes, and all such samples are of one mode.
"""

import math
from collections import Counter

# Probes of one sample that differ more: the mode changed meanwhile.
STEADY = 1.3
# What makes two modes: the middle of the slow lines is more than so many times the middle of the quick ones.
APART = 2
# A mode seen less often is none: something else was in the line's way.
LEAST = 3
ONLY, FAST, SLOW, MIXED = "only", "fast", "slow", "mixed"


def line(sample):
    """What a line took around the sample; None without probes."""
    return math.sqrt(sample[1] * sample[2]) if len(sample) == 3 else None


def is_steady(sample):
    return len(sample) < 3 or max(sample[1:]) <= STEADY * min(sample[1:])


def border(lines):
    """The time of a line that divides two modes; None if there is one. The cut is where the logarithms on both sides lie closest."""
    logs = sorted(math.log(it) for it in lines)
    if len(logs) < 2 * LEAST:
        return None
    total, below, best = sum(logs), 0.0, (0.0, 0)
    for cut in range(1, len(logs)):
        below += logs[cut - 1]
        # What lies between the two sides of all the variance: the larger, the less lies within them.
        between = cut * (len(logs) - cut) * (below / cut - (total - below) / (len(logs) - cut)) ** 2
        best = max(best, (between, cut))
    cut = best[1]
    if min(cut, len(logs) - cut) < LEAST:
        return None
    apart = logs[(cut + len(logs)) // 2] - logs[cut // 2]
    return math.exp((logs[cut - 1] + logs[cut]) / 2) if apart > math.log(APART) else None


class Modes:
    """Made of all samples of a run; tells of each where it belongs."""

    def __init__(self, samples):
        self.lines = [line(it) for it in samples if len(it) == 3 and is_steady(it)]
        self.border = border(self.lines)

    def of(self, sample):
        if not is_steady(sample):
            return MIXED
        found = line(sample)
        if found is None or self.border is None:
            return ONLY
        return FAST if found < self.border else SLOW

    def split(self, samples):
        """Mode to its samples, the mixed ones left out."""
        found = {}
        for sample in samples:
            found.setdefault(self.of(sample), []).append(sample)
        found.pop(MIXED, None)
        return found

    def seen(self):
        """Mode to (how many samples, the middle of their lines), the quicker first."""
        counts = Counter(ONLY if self.border is None else FAST if it < self.border else SLOW for it in self.lines)
        ordered = sorted(self.lines)
        at, found = 0, {}
        for mode in (ONLY, FAST, SLOW):
            if counts[mode]:
                found[mode] = (counts[mode], ordered[at + counts[mode] // 2])
                at += counts[mode]
        return found
