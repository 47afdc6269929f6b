"""From samples to figures: medians, spreads and ratios within a mode of the machine (modes.py), goals."""

from statistics import median
from typing import NamedTuple

import catalog
import goals
from modes import FAST, ONLY, SLOW, Modes

ORDER = (ONLY, FAST, SLOW)


class Figure(NamedTuple):
    median: float
    low: float
    high: float
    # Which way to run the library gave it, and how many samples.
    variant: str
    samples: int


def figure(samples, variant):
    values = [it[0] for it in samples]
    return Figure(median(values), min(values), max(values), variant, len(values))


def every_sample(record):
    for by_variant in record["results"].values():
        for samples in by_variant.values():
            yield from samples
    for samples in record["limits"].values():
        yield from samples


class Summary:
    def __init__(self, record):
        self.record = record
        self.modes = Modes(every_sample(record))
        self.library_of = record["variants"]
        # metric -> mode -> library -> Figure
        self.by_mode = {metric: self.split(metric, by_variant) for metric, by_variant in record["results"].items()}

    def split(self, metric, by_variant):
        found = {}
        for variant, samples in by_variant.items():
            for mode, own in self.modes.split(samples).items():
                found.setdefault(mode, []).append(figure(own, variant))
        return {mode: self.by_library(metric, figures) for mode, figures in found.items()}

    def by_library(self, metric, figures):
        """Each library's best variant, of those with about as many samples as any of the library's."""
        best, higher = {}, catalog.family(metric).higher
        for library in dict.fromkeys(self.library_of[it.variant] for it in figures):
            own = [it for it in figures if self.library_of[it.variant] == library]
            most = max(it.samples for it in own)
            best[library] = (max if higher else min)((it for it in own if 2 * it.samples >= most), key=lambda it: it.median)
        return best

    def taking_part(self, metric):
        """Libraries that are measured as often as the others; one that does not end in time is not."""
        totals = {}
        for figures in self.by_mode.get(metric, {}).values():
            for name, it in figures.items():
                totals[name] = totals.get(name, 0) + it.samples
        return [name for name, count in totals.items() if 2 * count >= max(totals.values())]

    def samples(self, metric, mode, libraries=None):
        """How many samples in that mode each of these libraries has, or each that takes part."""
        figures = self.by_mode.get(metric, {}).get(mode, {})
        names = self.taking_part(metric) if libraries is None else libraries
        return min((figures[name].samples if name in figures else 0 for name in names), default=0)

    def main(self, *metrics, libraries=None):
        """The mode in which these can be compared best: with the most samples that all have."""
        seen = [mode for mode in ORDER if any(mode in self.by_mode.get(metric, {}) for metric in metrics)]
        return max(seen, key=lambda mode: min(self.samples(metric, mode, libraries) for metric in metrics), default=ONLY)

    def other(self, metric, mode):
        """The other mode, if the metric was measured in it."""
        return next((it for it in ORDER if it != mode and it in self.by_mode.get(metric, {})), None)

    def figures(self, metric, mode=None):
        return self.by_mode.get(metric, {}).get(mode or self.main(metric), {})

    def ours(self, metric, mode=None):
        found = self.figures(metric, mode).get("perusal")
        return found and found.median

    def best_peer(self, metric, mode=None):
        """(library, median) of the best of the others."""
        peers = [(name, it.median) for name, it in self.figures(metric, mode).items() if name != "perusal"]
        if not peers:
            return None
        return (max if catalog.family(metric).higher else min)(peers, key=lambda peer: peer[1])

    def to_peer(self, metric, mode=None):
        """Ours divided by the best peer's; None where a library has no sample in that mode."""
        if self.samples(metric, mode or self.main(metric)) == 0:
            return None
        ours, peer = self.ours(metric, mode), self.best_peer(metric, mode)
        return ours / peer[1] if ours is not None and peer and peer[1] > 0 else None

    def limits(self, mode):
        """Medians of the machine's limits in that mode; of all where the mode does not matter."""
        split = {name: self.modes.split(samples) for name, samples in self.record["limits"].items()}
        if mode == ONLY:
            split = {name: {ONLY: sum(it.values(), [])} for name, it in split.items()}
        return {name: median(sample[0] for sample in it[mode]) for name, it in split.items() if it.get(mode)}

    def limit(self, metric, mode=None):
        """What the machine can do in that mode."""
        return catalog.limit(metric, self.limits(mode or self.main(metric)))

    def to_limit(self, metric, mode=None):
        ours, limit = self.ours(metric, mode), self.limit(metric, mode)
        return ours / limit if ours is not None and limit else None

    def in_order(self):
        """Metrics, family by family as the catalogue has them."""
        order = list(catalog.FAMILIES)
        return sorted(self.by_mode, key=lambda m: (order.index(m.split("/")[0]), *sortable(m)))

    def cells(self):
        """Of each cell of the matrix that all libraries were measured in, ours divided by the best peer's."""
        ratios = {metric: self.to_peer(metric) for metric in self.in_order() if metric.startswith("matrix/")}
        return {metric: ratio for metric, ratio in ratios.items() if ratio is not None}

    def goals(self):
        return [goals.judge(goal, self) for goal in goals.GOALS]

    def lacking(self, wanted):
        """Metrics of the goals that were measured, but not `wanted` times by each library in one mode."""
        short = set()
        for goal in goals.GOALS:
            libraries = None if goal.against == "peer" else ["perusal"]
            for metrics in goal.compared():
                if all(metric in self.by_mode for metric in metrics):
                    mode = self.main(*metrics, libraries=libraries)
                    short |= {metric for metric in metrics if self.samples(metric, mode, libraries) < wanted}
        return short


def sortable(metric):
    series, place = catalog.case(metric)
    number = series.split(" ")[0]
    return (int(number) if number.isdigit() else -1, series, -1 if place is None else place)


def number(value):
    if value is None:
        return "–"
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 0.01 or value == 0 else f"{value:.2g}"
