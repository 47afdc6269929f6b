"""Checks what the driver makes of figures, on figures that are made up. Says nothing and exits with 0 if all is well."""

import unittest

import catalog
import chart
import goals
import modes
import run
import text
from summary import Summary

VARIANTS = {"perusal": "perusal", "MPICH": "MPICH", "MPICH, better": "MPICH", "Open MPI": "Open MPI", "Intel MPI": "Intel MPI"}


def samples(values, *lines):
    """Samples with these values; with a line, one that was bounced before and after each."""
    return [[value, *lines] for value in values]


def record(results, limits=None):
    """Of samples; a bare list of numbers stands for samples without probes."""
    full = lambda values: [value if isinstance(value, list) else [value] for value in values]
    results = {metric: {name: full(values) for name, values in by.items()} for metric, by in results.items()}
    limits = {metric: full(values) for metric, values in (limits or {}).items()}
    return {
        "date": "2026-01-01", "machine": {"cpu": "one", "processors": 2, "kernel": "6"}, "versions": dict.fromkeys(("perusal", "MPICH", "Open MPI", "Intel MPI"), "1"),
        "rounds": 3, "seconds": 9, "load": [0, 0], "variants": VARIANTS, "commands": {"pair: perusal": "mpiexec <&>"}, "results": results, "limits": limits,
        "slow": {"MPICH (crowd)": 1}, "failed": {},
    }


class Figures(unittest.TestCase):
    def test_the_better_variant_of_a_library_is_quoted(self):
        summary = Summary(record({"latency/8": {"perusal": [1, 3, 2], "MPICH": [9, 9, 9], "MPICH, better": [4, 5, 6]},
                                  "rate/1pair": {"perusal": [8], "MPICH": [2], "MPICH, better": [4]}}))
        self.assertEqual(summary.figures("latency/8")["MPICH"].variant, "MPICH, better")
        self.assertEqual((summary.to_peer("latency/8"), summary.to_peer("rate/1pair")), (2 / 5, 2))
        self.assertEqual(summary.figures("latency/8")["perusal"][:3], (2, 1, 3))

    def test_limits_belong_to_their_metrics(self):
        limits = {"line/each-way": [0.05], "copy/65536": [50.0], "copy/4096": [80.0], "flags/16": [16.0]}
        flat = {name: values[0] for name, values in limits.items()}
        self.assertEqual(catalog.limit("latency/8", flat), 0.05)
        self.assertAlmostEqual(catalog.limit("latency/65536", flat), 0.05 + 65536 / 50 * 1e-3)
        self.assertEqual([catalog.limit(metric, flat) for metric in ("bandwidth/65536", "barrier/16", "allreduce/16-8", "allreduce/16-64", "rate/1pair")],
                         [50.0, 16.0, 16.0, None, None])

    def test_a_goal_of_several_metrics_is_judged_by_the_worst(self):
        goal = goals.Goal("bandwidth", ("bandwidth/65536", "bandwidth/262144"), "peer", at_least=1.3)
        results = {"bandwidth/65536": {"perusal": [40], "MPICH": [10]}, "bandwidth/262144": {"perusal": [12], "MPICH": [10]}}
        verdict = goals.judge(goal, Summary(record(results)))
        self.assertEqual((verdict.value, verdict.metric, verdict.reached), (1.2, "bandwidth/262144", False))
        del results["bandwidth/262144"]
        self.assertIsNone(goals.judge(goal, Summary(record(results))).value)

    def test_the_matrix_counts_cells_that_all_libraries_have(self):
        cell = lambda ours, theirs: {"perusal": [ours], "MPICH": [theirs], "Open MPI": [9], "Intel MPI": [9]}
        results = {"matrix/bcast-2-8": cell(1, 2), "matrix/bcast-2-128": cell(3, 2), "matrix/ibarrier-4-0": cell(2, 2), "matrix/vector-latency-2-8": cell(1, 4)}
        summary = Summary(record(results))
        verdicts = {goal.against: goals.judge(goal, summary) for goal in goals.GOALS if goal.against in ("behind", "worst", "ahead")}
        self.assertEqual({against: verdict.value for against, verdict in verdicts.items()}, {"behind": 0.25, "worst": 1.5, "ahead": 0.5})
        self.assertEqual(verdicts["worst"].metric, "matrix/bcast-2-128")
        self.assertIn("| bcast | 1 (1.5) |  |", text.matrix(summary))
        self.assertIn("| vector-latency | 0.25 (0.25) |  |", text.matrix(summary))
        self.assertIn("bcast-2 ranks", text.heat(summary))
        self.assertIn("<table class=heat>", chart.page(summary))

    def test_every_metric_of_a_goal_and_of_the_page_has_a_family(self):
        for metric in (*text.SHOWN, *(metric for goal in goals.GOALS for metric in goal.metrics)):
            self.assertIn(metric.split("/")[0], catalog.FAMILIES)

    def test_series_and_places(self):
        for metric, found in {"posted/exact-10": ("exact", 10), "bcast/16-8": ("16 ranks", 8), "latency/0": ("", 0), "idle/recv": ("recv", None),
                              "threads/self-comms-2": ("self-comms", 2)}.items():
            self.assertEqual(catalog.case(metric), found)

    def test_lines_of_both_programs_are_read(self):
        said = "R latency/8 0.05 0.04 0.06\nR startup/2 5\nwarning: R\ncase=recv-any calls=MPI_Recv(ANY_SOURCE,ANY_TAG) instructions=285\n"
        self.assertEqual(list(run.Bench.parse(None, said)), [("latency/8", [0.05, 0.04, 0.06]), ("startup/2", [5]), ("instructions/recv-any", [285])])

    def test_a_section_takes_the_place_of_its_former_self_alone(self):
        section = "## Beside\n\nnew\n"
        self.assertEqual(text.replaced("# P\n\n## A\na\n", section), "# P\n\n## A\na\n\n## Beside\n\nnew\n")
        once = text.replaced("## A\na\n\n## Beside\n\nold\n\n## C\nc\n", section)
        self.assertEqual(once, "## A\na\n\n## Beside\n\nnew\n\n## C\nc\n")
        self.assertEqual(text.replaced(once, section), once)

    def test_pages(self):
        results = {f"latency/{size}": {name: [size + 1.0] for name in VARIANTS} for size in (0, 8, 1024)}
        summary = Summary(record(results, {"line/each-way": [0.05]}))
        page, markdown = chart.page(summary), text.markdown(summary)
        self.assertEqual((page.count("<svg"), page.count("<polyline")), (1, 5))
        self.assertIn("mpiexec &lt;&amp;&gt;", page)
        self.assertIn("| latency/8, µs | 9 | 9 | 9 | 9 | 1 | 180 |\n", markdown)
        self.assertNotIn("mode", markdown)
        self.assertIn("MPICH (crowd) did not end in time in 1 rounds", markdown)
        self.assertIn("latency/1024", text.table(summary))


class Modes(unittest.TestCase):
    FAST, SLOW = (0.05, 0.052), (0.3, 0.31)

    def two_modes(self, ours, peers):
        """Each: samples in the fast mode, samples in the slow one."""
        both = lambda fast, slow: samples(fast, *self.FAST) + samples(slow, *self.SLOW)
        return {"perusal": both(*ours), **{name: both(*peers) for name in ("MPICH", "Open MPI", "Intel MPI")}}

    def test_two_clusters_of_lines_are_two_modes_and_one_is_one(self):
        both = modes.Modes(samples([1] * 9, *self.FAST) + samples([1] * 4, *self.SLOW))
        self.assertTrue(0.052 < both.border < 0.3)
        self.assertEqual({mode: count for mode, (count, _) in both.seen().items()}, {"fast": 9, "slow": 4})
        for values in ([0.05, 0.055, 0.06, 0.045] * 4, [0.05] * 20, [0.05 * 1.04**i for i in range(16)], [0.05], []):
            one = modes.Modes([[1, value, value] for value in values])
            self.assertIsNone(one.border, values)

    def test_what_is_seen_twice_is_no_mode(self):
        self.assertIsNone(modes.Modes(samples([1] * 30, *self.FAST) + samples([1] * 2, *self.SLOW)).border)

    def test_samples_of_one_mode_are_compared_with_those_of_the_same(self):
        # All samples together would say 0.14 : 0.5, because ours met the slow mode less often.
        by = self.two_modes(([0.06, 0.05, 0.07] * 3, [0.3] * 3), ([0.12] * 3, [0.5] * 9))
        summary = Summary(record({"latency/8": by}))
        self.assertAlmostEqual(summary.to_peer("latency/8", "fast"), 0.5)
        self.assertAlmostEqual(summary.to_peer("latency/8", "slow"), 0.6)

    def test_the_mode_with_the_most_samples_of_all_libraries_is_the_main_one(self):
        by = self.two_modes(([1.0] * 12, [2.0] * 4), ([1.0] * 3, [2.0] * 8))
        summary = Summary(record({"latency/8": by}))
        self.assertEqual((summary.main("latency/8"), summary.samples("latency/8", "slow"), summary.samples("latency/8", "fast")), ("slow", 4, 3))
        self.assertEqual(summary.other("latency/8", "slow"), "fast")

    def test_a_sample_whose_line_changed_counts_nowhere(self):
        by = self.two_modes(([1.0] * 5, [2.0] * 5), ([1.0] * 5, [2.0] * 5))
        by["perusal"] += [[100.0, 0.05, 0.3]]
        summary = Summary(record({"latency/8": by}))
        self.assertEqual([summary.figures("latency/8", mode)["perusal"].high for mode in ("fast", "slow")], [1, 2])
        self.assertIn("1 samples in which the line changed are left out", text.conditions(summary))

    def test_one_mode_compares_all_samples(self):
        results = {"latency/8": {name: samples([1.0, 2.0, 3.0], *self.FAST) for name in VARIANTS}}
        summary = Summary(record(results))
        self.assertEqual((summary.main("latency/8"), summary.samples("latency/8", "only"), summary.other("latency/8", "only")), ("only", 3, None))
        self.assertNotIn("other mode", text.markdown(summary))

    def test_a_library_that_seldom_ends_in_time_keeps_nobody_waiting(self):
        by = self.two_modes(([1.0] * 7, []), ([1.0] * 7, []))
        by["MPICH"] = samples([9.0] * 2, *self.FAST) + samples([9.0], *self.SLOW)
        filler = {"rate/1pair": self.two_modes(([1.0] * 3, [2.0] * 3), ([1.0] * 3, [2.0] * 3))}
        summary = Summary(record({"barrier/16": by, **filler}))
        self.assertEqual(summary.samples("barrier/16", "fast"), 7)
        self.assertEqual(summary.lacking(7), {"rate/1pair"})

    def test_a_variant_that_met_the_mode_once_is_not_the_best_by_luck(self):
        by = self.two_modes(([1.0] * 6, [2.0] * 6), ([3.0] * 6, [4.0] * 6))
        by["MPICH, better"] = samples([0.5], *self.FAST) + samples([3.5] * 6, *self.SLOW)
        figures = Summary(record({"latency/8": by})).by_mode["latency/8"]
        self.assertEqual([figures[mode]["MPICH"].variant for mode in ("fast", "slow")], ["MPICH", "MPICH, better"])

    def test_the_limits_are_those_of_the_mode(self):
        by = self.two_modes(([0.06] * 4, [0.33] * 4), ([0.1] * 4, [0.5] * 4))
        limits = {"line/each-way": samples([0.04] * 3, *self.FAST), "copy/65536": samples([50.0], *self.FAST) + samples([25.0], *self.SLOW), "spawn/2": samples([1, 3], *self.SLOW)}
        summary = Summary(record({"latency/8": by, "launch/2": {"perusal": [8.0]}}, limits))
        self.assertEqual(summary.limit("latency/8", "fast"), 0.04)
        self.assertIsNone(summary.limit("latency/8", "slow"))
        self.assertEqual([summary.limits(mode).get("copy/65536") for mode in ("fast", "slow", "only")], [50, 25, 37.5])
        self.assertEqual(summary.to_limit("launch/2"), 4)

    def test_a_goal_compares_with_another_metric_in_the_same_mode_and_tells_the_other(self):
        goal = goals.Goal("flat", ("posted/exact-10000",), "self", at_most=2, other="posted/exact-1")
        results = {"posted/exact-10000": self.two_modes(([3.0] * 8, [5.0] * 4), ([9.0] * 8, [9.0] * 4)),
                   "posted/exact-1": self.two_modes(([2.0] * 3, [4.0] * 5), ([9.0] * 8, [9.0] * 4))}
        verdict = goals.judge(goal, Summary(record(results)))
        self.assertEqual((verdict.mode, verdict.value, verdict.samples), ("slow", 1.25, 4))
        self.assertEqual((verdict.other_mode, verdict.other_value, verdict.other_samples), ("fast", 1.5, 3))

    def test_rounds_go_on_for_what_lacks_samples(self):
        few = {"latency/8": self.two_modes(([1.0] * 6, [2.0] * 6), ([1.0] * 9, [2.0] * 9)), "rate/1pair": self.two_modes(([1.0] * 7, [2.0] * 6), ([1.0] * 7, []))}
        self.assertEqual(Summary(record(few)).lacking(7), {"latency/8"})
        # A goal of ours alone waits for nobody else.
        own = {"idle/recv": {"perusal": [1.0] * 7, "MPICH": [1.0] * 4}}
        self.assertEqual(Summary(record(own)).lacking(7), set())

    def test_both_modes_are_on_the_page_and_in_the_charts(self):
        results = {f"latency/{size}": self.two_modes(([size + 1.0] * 5, [size + 2.0] * 3), ([size + 3.0] * 5, [size + 4.0] * 3)) for size in (8, 1024)}
        summary = Summary(record(results, {"line/each-way": samples([0.05], *self.FAST)}))
        self.assertIn("fast mode", chart.page(summary))
        self.assertIn("latency/8 slow", text.table(summary))
        self.assertIn("0.818 | 180 | fast | 0.833 |", text.markdown(summary))
        self.assertIn("0.818 | fast, 5 | 0.833 (slow, 3) | **missed** |", text.markdown(summary))


if __name__ == "__main__":
    unittest.main(verbosity=0)
