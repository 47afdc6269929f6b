"""The tables that are printed, and the section of docs/performance.md."""

import catalog
from libraries import LIBRARIES
from summary import number


def cell(figure):
    if figure and figure.rounds == 1:
        return number(figure.median)
    return f"{number(figure.median)} ({number(figure.low)}–{number(figure.high)})" if figure else "–"


def table(summary):
    """Every metric: medians and spreads, ratios."""
    lines, last = [], None
    for metric in summary.in_order():
        word = metric.split("/")[0]
        if word != last:
            family, last = catalog.family(metric), word
            lines += ["", f"{family.title}, {family.unit} ({'higher' if family.higher else 'lower'} is better)"]
            lines.append(f"  {'':<26}" + "".join(f"{name:>25}" for name in LIBRARIES) + f"{'to best peer':>14}{'to limit':>10}")
        figures = summary.figures[metric]
        lines.append(f"  {metric:<26}" + "".join(f"{cell(figures.get(name)):>25}" for name in LIBRARIES)
                     + f"{number(summary.to_peer(metric)):>14}{number(summary.to_limit(metric)):>10}")
    lines += ["", "limits of the machine: " + ", ".join(f"{name} {number(value)}" for name, value in summary.limits.items())]
    return "\n".join(lines)


def goal_lines(summary):
    for verdict in summary.goals():
        peer = summary.best_peer(verdict.metric)
        figures = summary.figures.get(verdict.metric, {})
        unit = catalog.family(verdict.metric).unit
        ours = f"{cell(figures.get('perusal'))} {unit}"
        theirs = f"{peer[0]} {number(peer[1])} {unit}" if peer else "–"
        if verdict.goal.against == "limit":
            theirs = f"the machine {number(summary.limit(verdict.metric))} {unit}"
        if verdict.goal.other:
            theirs = f"our {verdict.goal.other} {number(summary.ours(verdict.goal.other))} {unit}"
        told = "not measured" if verdict.value is None else ("reached" if verdict.reached else "**missed**")
        worst = f" ({verdict.metric})" if len(verdict.goal.metrics) > 1 else ""
        best = number(summary.best_round_to_peer(verdict.metric)) if verdict.goal.against == "peer" else "–"
        yield verdict.goal.text, ours + worst, theirs, number(verdict.value), best, told


def goals(summary):
    lines = [f"{'goal':<84}{'ratio':>8}{'best':>8}  "]
    for text, ours, theirs, value, best, told in goal_lines(summary):
        lines.append(f"{text:<84}{value:>8}{best:>8}  {told.strip('*'):<13} ours {ours}; {theirs}")
    reached = sum(verdict.reached for verdict in summary.goals())
    return "\n".join([*lines, f"{reached} of {len(lines) - 1} reached"])


def conditions(record):
    machine, versions = record["machine"], record["versions"]
    said = ", ".join(f"{name} {versions[name]}" for name in LIBRARIES)
    return (f"{record['date']}, {machine['cpu']}, {machine['processors']} processors, Linux {machine['kernel']}; {said}; "
            f"{record['rounds']} rounds, each library in turn; load average {record['load'][0]:.1f} before and {record['load'][1]:.1f} after")


SHOWN = ("latency/8", "latency/4096", "latency/65536", "latency/1048576", "latency-shared/65536", "latency-shared/1048576", "latency-2pairs/8",
         "bandwidth/65536", "bandwidth/1048576", "bandwidth/4194304", "bandwidth-shared/65536", "bandwidth-shared/1048576", "bandwidth-shared/4194304",
         "bidirectional/1048576", "rate/1pair", "rate/2pairs", "posted/exact-1", "posted/exact-10000", "posted/exact-100000",
         "posted/any-source-10000", "posted/any-tag-10000", "unexpected/exact-1", "unexpected/exact-10000", "unexpected/any-source-10000",
         "unexpected/any-10000", "barrier/2", "barrier/16", "barrier/32", "allreduce/2-8", "allreduce/16-8", "allreduce/2-1048576", "allreduce/16-65536",
         "bcast/16-8", "bcast/2-1048576", "alltoall/2-8", "alltoall/16-8", "alltoall/16-65536", "wildcard/64", "threads/pairwise-1", "threads/pairwise-4",
         "threads/comms-4", "threads/to-one-4", "threads/self-comms-1", "threads/self-comms-2", "startup/2", "startup/16", "startup/64", "launch/2",
         "launch/16", "memory/init-64", "memory/alltoall-64", "idle/recv", "instructions/send", "instructions/recv", "instructions/recv-any",
         "instructions/recv-unexpected", "instructions/isend", "instructions/irecv", "instructions/window-send", "instructions/window-receive")


def markdown(summary):
    """The section of docs/performance.md."""
    record = summary.record
    lines = ["## Beside the peers", "", f"`make peers` ({conditions(record)}). Medians over the rounds, lowest and highest in parentheses; the ratio is ours to the best "
             "peer's, metric by metric. *Best rounds* is the same ratio of each library's best round: the two virtual processors have a slow and a fast mode "
             "that last for seconds to minutes and change within a round, which the medians of few rounds do not even out.", "",
             "| goal | perusal | against | ratio | best rounds | |", "|---|---|---|---|---|---|"]
    lines += [f"| {text} | {ours} | {theirs} | {value} | {best} | {told} |" for text, ours, theirs, value, best, told in goal_lines(summary)]
    lines += ["", "| metric | " + " | ".join(LIBRARIES) + " | to best peer | to the limit |", "|---|" + "---|" * (len(LIBRARIES) + 2)]
    for metric in SHOWN:
        figures = summary.figures.get(metric)
        if figures:
            cells = " | ".join(cell(figures.get(name)) for name in LIBRARIES)
            lines.append(f"| {metric}, {catalog.family(metric).unit} | {cells} | {number(summary.to_peer(metric))} | {number(summary.to_limit(metric))} |")
    lines += ["", "Limits in the same run: " + ", ".join(f"{name} {number(value)}" for name, value in summary.limits.items()
                                                        if not name.startswith("copy/") or name in ("copy/65536", "copy/4194304")) + ".", ""]
    lines += [f"- {note}" for note in notes(record)]
    return "\n".join(lines) + "\n"


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
