"""The tables that are printed, and the section of docs/performance.md."""

from statistics import median

import catalog
from libraries import LIBRARIES
from modes import MIXED, ONLY
from summary import ORDER, every_sample, number


def cell(figure):
    if figure and figure.samples == 1:
        return number(figure.median)
    return f"{number(figure.median)} ({number(figure.low)}–{number(figure.high)})" if figure else "–"


def middle(figure):
    return number(figure.median) if figure else "–"


def table(summary):
    """Every metric in every mode: medians and spreads, ratios."""
    lines, last = [], None
    for metric in summary.in_order():
        word = metric.split("/")[0]
        if word != last:
            family, last = catalog.family(metric), word
            lines += ["", f"{family.title}, {family.unit} ({'higher' if family.higher else 'lower'} is better)"]
            lines.append(f"  {'':<32}" + "".join(f"{name:>25}" for name in LIBRARIES) + f"{'to best peer':>14}{'to limit':>10}{'samples':>9}")
        for mode in ORDER:
            figures = summary.by_mode[metric].get(mode)
            if figures:
                name = metric if mode == ONLY else f"{metric} {mode}"
                lines.append(f"  {name:<32}" + "".join(f"{cell(figures.get(library)):>25}" for library in LIBRARIES)
                             + f"{number(summary.to_peer(metric, mode)):>14}{number(summary.to_limit(metric, mode)):>10}{summary.samples(metric, mode):>9}")
    lines.append("")
    for mode in summary.modes.seen() or (ONLY,):
        named = "" if mode == ONLY else f", {mode}"
        lines.append(f"limits of the machine{named}: " + ", ".join(f"{name} {number(value)}" for name, value in summary.limits(mode).items()))
    return "\n".join(lines)


def other_mode(verdict):
    """The same ratio in the machine's other mode."""
    if verdict.other_value is None:
        return "–"
    return f"{number(verdict.other_value)} ({verdict.other_mode}, {verdict.other_samples})"


def goal_lines(summary):
    for verdict in summary.goals():
        mode, metric = verdict.mode, verdict.metric
        peer, unit = summary.best_peer(metric, mode), catalog.family(metric).unit
        ours = f"{cell(summary.figures(metric, mode).get('perusal'))} {unit}"
        theirs = f"{peer[0]} {number(peer[1])} {unit}" if peer else "–"
        if verdict.goal.against == "limit":
            theirs = f"the machine {number(summary.limit(metric, mode))} {unit}"
        if verdict.goal.other:
            theirs = f"our {verdict.goal.other} {number(summary.ours(verdict.goal.other, mode))} {unit}"
        outcome = "not measured" if verdict.value is None else ("reached" if verdict.reached else "**missed**")
        worst = f" ({metric})" if len(verdict.goal.metrics) != 1 else ""
        counted = str(verdict.samples) if mode == ONLY else f"{mode}, {verdict.samples}"
        yield verdict.goal.text, ours + worst, theirs, number(verdict.value), counted, other_mode(verdict), outcome


def goals(summary):
    lines = [f"{'goal':<84}{'ratio':>8}{'samples':>10}{'other mode':>20}  "]
    for text, ours, theirs, value, counted, other, outcome in goal_lines(summary):
        lines.append(f"{text:<84}{value:>8}{counted:>10}{other:>20}  {outcome.strip('*'):<13} ours {ours}; {theirs}")
    reached = sum(verdict.reached for verdict in summary.goals())
    return "\n".join([*lines, f"{reached} of {len(lines) - 1} reached"])


def heat(summary):
    """The matrix: a row for each operation and number of ranks, a column for each size, ours divided by the best peer's."""
    rows, sizes = {}, set()
    for metric, ratio in summary.cells().items():
        series, size = catalog.case(metric)
        rows.setdefault(series, {})[size] = ratio
        sizes.add(size)
    sizes = sorted(sizes)
    if not rows:
        return ""
    lines = [f"{'ours / the best peer (time)':<28}" + "".join(f"{size:>9,}" for size in sizes)]
    lines += [f"{series:<28}" + "".join(f"{number(row[size]) if size in row else '':>9}" for size in sizes) for series, row in sorted(rows.items())]
    return "\n".join(lines)


def modes(summary):
    """What the probes saw; nothing where there are none."""
    seen = summary.modes.seen()
    if not seen:
        return ""
    mixed = sum(summary.modes.of(it) == MIXED for it in every_sample(summary.record))
    if len(seen) == 1:
        (count, line), = seen.values()
        said = f"a line takes {number(line)} µs ({count} samples), in one mode"
    else:
        said = "a line takes " + ", ".join(f"{number(line)} µs in the {mode} mode ({count} samples)" for mode, (count, line) in seen.items())
    return f"{said}; {mixed} samples in which the line changed are left out"


def conditions(summary):
    record = summary.record
    machine, versions = record["machine"], record["versions"]
    said = ", ".join(f"{name} {versions[name]}" for name in LIBRARIES)
    probed = modes(summary)
    return (f"{record['date']}, {machine['cpu']}, {machine['processors']} processors, Linux {machine['kernel']}; {said}; "
            f"{record['rounds']} rounds, each library in turn, {record['seconds']} s; load average {record['load'][0]:.1f} before and {record['load'][1]:.1f} after"
            + (f"; {probed}" if probed else ""))


def matrix(summary):
    """A row for each operation of the matrix: for each number of ranks, the middle of its ratios over the sizes, and the worst."""
    rows, columns = {}, set()
    for metric, ratio in summary.cells().items():
        operation, ranks, _ = metric.removeprefix("matrix/").rsplit("-", 2)
        rows.setdefault(operation, {}).setdefault(int(ranks), []).append(ratio)
        columns.add(int(ranks))
    if not rows:
        return []
    columns = sorted(columns)
    cell = lambda ratios: f"{number(median(ratios))} ({number(max(ratios))})" if ratios else ""
    return ["The matrix: our time divided by the best peer's, the middle of an operation's sizes (8 bytes to 1 MiB) and the worst in parentheses.", "",
            row("operation", *(f"{ranks} ranks" for ranks in columns)), "|---" * (len(columns) + 1) + "|",
            *(row(operation, *(cell(by.get(ranks)) for ranks in columns)) for operation, by in sorted(rows.items())), ""]


# Besides the first, what the goals' table does not have already.
SHOWN = ("latency/8", "latency/4096", "latency/1048576", "bandwidth/65536", "bidirectional/1048576", "posted/exact-100000", "barrier/2",
         "barrier/32", "allreduce/2-1048576", "bcast/2-1048576", "alltoall/16-8", "alltoall/16-65536", "threads/pairwise-4", "threads/to-one-4", "memory/alltoall-64")


def markdown(summary):
    """The section of docs/performance.md."""
    record, two = summary.record, summary.modes.border is not None
    lines = ["## Beside the peers", "", f"`make peers` ({conditions(summary)}). Medians, in the first table with the lowest and the highest sample in parentheses; the ratio is ours to the best "
             "peer's."
             + (" Samples are compared within one mode of the machine; *other mode* is the same ratio in the other one ([peers.md](peers.md))." if two else ""), "",
             row("goal", "perusal", "against", "ratio", "samples", *["other mode"] * two, ""), "|---" * (6 + two) + "|"]
    lines += [row(text, ours, theirs, value, counted, *[other] * two, outcome) for text, ours, theirs, value, counted, other, outcome in goal_lines(summary)]
    lines += ["", row("metric", *LIBRARIES, "to best peer", "to the limit", *["mode", "other mode, to best peer"] * two), "|---" * (len(LIBRARIES) + 3 + 2 * two) + "|"]
    for metric in SHOWN:
        mode, figures = summary.main(metric), summary.figures(metric)
        if figures:
            other = summary.other(metric, mode)
            about = ["" if mode == ONLY else mode, number(other and summary.to_peer(metric, other))] if two else []
            lines.append(row(f"{metric}, {catalog.family(metric).unit}", *(middle(figures.get(name)) for name in LIBRARIES),
                             number(summary.to_peer(metric)), number(summary.to_limit(metric)), *about))
    lines += ["", *matrix(summary)]
    for mode in summary.modes.seen() or (ONLY,):
        shown = [f"{name} {number(value)}" for name, value in summary.limits(mode).items() if not name.startswith("copy/") or name in ("copy/65536", "copy/4194304")]
        if shown:
            lines += [f"Limits in the same run{'' if mode == ONLY else f', {mode} mode'}: " + ", ".join(shown) + ".", ""]
    lines += [f"- {note}" for note in notes(record)]
    return "\n".join(lines).rstrip("\n") + "\n"


def row(*cells):
    return "| " + " | ".join(cells) + " |"


def replaced(page, section):
    """The page with the section in place of the one of the same heading, or at its end; what comes behind it stays."""
    heading = section.splitlines()[0]
    before, found, after = page.partition(heading + "\n")
    _, following, rest = after.partition("\n## ") if found else ("", "", "")
    return before.rstrip("\n") + "\n\n" + section + (following + rest if following else "")


def notes(record):
    for key, count in sorted(record["slow"].items()):
        yield f"{key} did not end in time in {count} rounds; what it had printed until then counts, and it took part in fewer rounds"
    for key, (status, said) in sorted(record["failed"].items()):
        yield f"{key} failed with status {status}: {' '.join(said.split())[-160:]}"
