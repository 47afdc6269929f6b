"""Checks what the driver makes of figures, on figures that are made up. Says nothing and exits with 0 if all is well."""

import unittest

import catalog
import chart
import goals
import run
import text
from summary import Summary

VARIANTS = {"perusal": "perusal", "MPICH": "MPICH", "MPICH, better": "MPICH", "Open MPI": "Open MPI", "Intel MPI": "Intel MPI"}


def record(results, limits=None):
    return {
        "date": "2026-01-01", "machine": {"cpu": "one", "processors": 2, "kernel": "6"}, "versions": dict.fromkeys(("perusal", "MPICH", "Open MPI", "Intel MPI"), "1"),
        "rounds": 3, "load": [0, 0], "variants": VARIANTS, "commands": {"pair: perusal": "mpiexec <&>"}, "results": results, "limits": limits or {},
        "slow": {"MPICH (crowd)": 1}, "failed": {},
    }


class Figures(unittest.TestCase):
    def test_the_better_variant_of_a_library_is_quoted(self):
        summary = Summary(record({"latency/8": {"perusal": [1, 3, 2], "MPICH": [9, 9, 9], "MPICH, better": [4, 5, 6]},
                                  "rate/1pair": {"perusal": [8], "MPICH": [2], "MPICH, better": [4]}}))
        self.assertEqual(summary.figures["latency/8"]["MPICH"].variant, "MPICH, better")
        self.assertEqual((summary.to_peer("latency/8"), summary.to_peer("rate/1pair")), (2 / 5, 2))
        self.assertEqual(summary.figures["latency/8"]["perusal"][:3], (2, 1, 3))

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

    def test_every_metric_of_a_goal_and_of_the_page_has_a_family(self):
        for metric in (*text.SHOWN, *(metric for goal in goals.GOALS for metric in goal.metrics)):
            self.assertIn(metric.split("/")[0], catalog.FAMILIES)

    def test_series_and_places(self):
        for metric, found in {"posted/exact-10": ("exact", 10), "bcast/16-8": ("16 ranks", 8), "latency/0": ("", 0), "idle/recv": ("recv", None),
                              "threads/self-comms-2": ("self-comms", 2)}.items():
            self.assertEqual(catalog.case(metric), found)

    def test_lines_of_both_programs_are_read(self):
        said = "R latency/8 0.05\nwarning: R\ncase=recv-any calls=MPI_Recv(ANY_SOURCE,ANY_TAG) instructions=285\n"
        self.assertEqual(list(run.Bench.parse(None, said)), [("latency/8", 0.05), ("instructions/recv-any", 285)])

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
        self.assertIn("| latency/8, µs | 9 | 9 | 9 | 9 | 1 | 180 |", markdown)
        self.assertIn("MPICH (crowd) did not end in time in 1 rounds", markdown)
        self.assertIn("latency/1024", text.table(summary))


if __name__ == "__main__":
    unittest.main(verbosity=0)
