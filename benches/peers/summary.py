"""From values to figures: medians, spreads, ratios, goals."""

from statistics import median
from typing import NamedTuple

import catalog
import goals


class Figure(NamedTuple):
    median: float
    low: float
    high: float
    # Which way to run the library gave it, and in how many rounds.
    variant: str
    rounds: int


def figure(values, variant):
    return Figure(median(values), min(values), max(values), variant, len(values))


class Summary:
    def __init__(self, record):
        self.record = record
        self.limits = {metric: median(values) for metric, values in record["limits"].items()}
        self.library_of = record["variants"]
        self.figures = {metric: self.by_library(metric, by_variant) for metric, by_variant in record["results"].items()}

    def by_library(self, metric, by_variant):
        """Each library's best variant."""
        best = {}
        higher = catalog.family(metric).higher
        for variant, values in by_variant.items():
            library, new = self.library_of[variant], figure(values, variant)
            old = best.get(library)
            if old is None or (new.median > old.median if higher else new.median < old.median):
                best[library] = new
        return best

    def ours(self, metric):
        found = self.figures.get(metric, {}).get("perusal")
        return found and found.median

    def best_peer(self, metric):
        """(library, median) of the best of the others."""
        peers = [(name, it.median) for name, it in self.figures.get(metric, {}).items() if name != "perusal"]
        if not peers:
            return None
        return (max if catalog.family(metric).higher else min)(peers, key=lambda peer: peer[1])

    def to_peer(self, metric):
        """Ours divided by the best peer's."""
        ours, peer = self.ours(metric), self.best_peer(metric)
        return ours / peer[1] if ours is not None and peer and peer[1] > 0 else None

    def best_round_to_peer(self, metric):
        """The same for the best round of each library: what a machine that has a slow and a fast mode leaves of the comparison."""
        best = (lambda it: it.high) if catalog.family(metric).higher else (lambda it: it.low)
        rounds = {name: best(it) for name, it in self.figures.get(metric, {}).items()}
        ours = rounds.pop("perusal", None)
        if ours is None or not rounds:
            return None
        peer = (max if catalog.family(metric).higher else min)(rounds.values())
        return ours / peer if peer > 0 else None

    def limit(self, metric):
        return catalog.limit(metric, self.limits)

    def to_limit(self, metric):
        ours, limit = self.ours(metric), self.limit(metric)
        return ours / limit if ours is not None and limit else None

    def in_order(self):
        """Metrics, family by family as the catalogue has them."""
        order = list(catalog.FAMILIES)
        return sorted(self.figures, key=lambda m: (order.index(m.split("/")[0]), *sortable(m)))

    def goals(self):
        return [goals.judge(goal, self) for goal in goals.GOALS]


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

