"""Measures perusal and its peers side by side; .ci/peers has installed and compiled what this runs.

    peers.py BUILD DIST [--markdown] [--update] [--tables]

Environment: ROUNDS (7, and then the groups of the goals' metrics until each library has seven samples of each in one mode; a number
that is given is not exceeded), MINUTES (30: nothing begins that would not end by then), METRICS (names; all), QUICK=1 (two short rounds), FIFO=1 (jobs go before
everything else on the machine, for one that is not quiet: with real-time priority where each rank has a processor, with the
least niceness otherwise; needs root).
Writes BUILD/peers.json, peers.html and performance.md, the section that --markdown prints and --update puts into
docs/performance.md. --tables measures nothing: it takes the last peers.json.
"""

import datetime
import json
import os
import signal
import sys
import time
from pathlib import Path

import catalog
import chart
import libraries
import text
from run import Bench
from summary import Summary


# Samples of each metric of the goals that each library is to have in one mode, and rounds at the least.
WANTED = 7


def say(line):
    print(f"peers: {line}", file=sys.stderr, flush=True)


def measure(build, dist, keep):
    """Measures; `keep` gets the record after each round."""
    quick = os.environ.get("QUICK", "") not in ("", "0")
    bounded = quick or bool(os.environ.get("ROUNDS"))
    rounds = int(os.environ.get("ROUNDS") or (2 if quick else WANTED))
    metrics = (os.environ.get("METRICS") or " ".join(catalog.METRICS)).split()
    unknown = set(metrics) - set(catalog.METRICS)
    if unknown:
        sys.exit(f"peers: no such metric: {', '.join(sorted(unknown))} (METRICS may have: {' '.join(catalog.METRICS)})")
    variants = libraries.variants(build, build, dist)
    bench = Bench(build, variants, metrics, 0.3 if quick else 1, os.environ.get("FIFO", "") not in ("", "0"))
    about = {"date": datetime.date.today().isoformat(), "machine": libraries.machine(), "versions": libraries.versions(build, dist),
             "variants": {variant.name: variant.library for variant in variants}}
    load, began = os.getloadavg()[0], time.monotonic()
    if load > 0.5:
        say(f"the machine is not quiet (load average {load:.1f}): ratios may be wrong")
    minutes = float(os.environ.get("MINUTES") or 30)
    left = lambda: began + minutes * 60 - time.monotonic()
    number, only = 0, None
    try:
        while number < rounds or only:
            whole = bench.round(number, lambda what: say(f"round {number + 1}, {time.monotonic() - began:4.0f} s, {what}"), left, only)
            number += 1
            record = {**about, "seconds": round(time.monotonic() - began), "rounds": number, "load": [load, os.getloadavg()[0]], **bench.record()}
            keep(record)
            if not whole:
                say(f"round {number} was not finished: more would not have ended within MINUTES={minutes:g}")
                break
            if number >= rounds and not bounded:
                only = bench.repeatable(Summary(record).lacking(WANTED))
                if only:
                    say(f"fewer than {WANTED} samples in one mode yet: {', '.join(sorted(only))}")
    finally:
        bench.end()


def main():
    # Whoever ends this ends the job that is running, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    build, dist = (Path(argument).resolve() for argument in sys.argv[1:3])
    options = sys.argv[3:]
    kept = build / "peers.json"
    if "--tables" not in options:
        measure(build, dist, lambda record: kept.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n"))
    record = json.loads(kept.read_text())
    summary = Summary(record)
    (build / "peers.html").write_text(chart.page(summary))
    section = text.markdown(summary)
    (build / "performance.md").write_text(section)
    if "--update" in options:
        page = Path(__file__).resolve().parents[2] / "docs/performance.md"
        page.write_text(text.replaced(page.read_text(), section))
    if "--markdown" in options:
        return print(section)
    print(text.conditions(summary))
    print(text.table(summary))
    for note in text.notes(record):
        print("note:", note)
    print("\n" + text.heat(summary))
    print("\n" + text.goals(summary))
    print(f"\n{kept}, peers.html (charts, how each was started), performance.md (the section for docs/performance.md)")


if __name__ == "__main__":
    main()
