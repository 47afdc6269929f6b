"""One self-contained HTML page with the same figures as charts (SVG) and the whole table."""

import html
import math

import catalog
import text
from libraries import LIBRARIES
from modes import ONLY
from summary import ORDER, number

COLOURS = {"perusal": "#c2410c", "MPICH": "#2563eb", "Open MPI": "#15803d", "Intel MPI": "#7c3aed", "limit": "#6b7280"}
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 460, 270, 56, 34, 14, 18


def scale(values, low, high):
    """A logarithmic scale over `values` from pixel `low` to pixel `high`."""
    least, most = math.log10(min(values)), math.log10(max(values))
    span = (most - least) or 1
    return lambda value: low + (math.log10(value) - least) / span * (high - low)


def decades(values):
    least, most = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return [10.0**power for power in range(least, most + 1)]


def short(value):
    for size, suffix in ((1 << 20, "Mi"), (1 << 10, "Ki")):
        if value >= size and value % size == 0:
            return f"{value // size}{suffix}"
    return f"{value:,}"


def lines(title, family, series):
    """`series`: name to a list of (x, y)."""
    xs = sorted({x for points in series.values() for x, _ in points})
    ys = [y for points in series.values() for _, y in points]
    ticks = decades(ys)
    at_x, at_y = scale(xs, LEFT, WIDTH - RIGHT), scale(ticks, HEIGHT - BOTTOM, TOP)
    out = [f'<figure><figcaption>{html.escape(title)}</figcaption><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html.escape(title)}">']
    for tick in ticks:
        y = at_y(tick)
        out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/><text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for x in xs:
        out.append(f'<text x="{at_x(x):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{short(x)}</text>')
    out.append(f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 3}" text-anchor="middle">{family.axis}; {family.unit}, {"higher" if family.higher else "lower"} is better</text>')
    for name, points in series.items():
        path = " ".join(f"{at_x(x):.1f},{at_y(y):.1f}" for x, y in sorted(points))
        dash = ' stroke-dasharray="4 3"' if name == "limit" else ""
        out.append(f'<polyline fill="none" stroke="{COLOURS[name]}" stroke-width="2"{dash} points="{path}"/>')
        out += [f'<circle cx="{at_x(x):.1f}" cy="{at_y(y):.1f}" r="2.5" fill="{COLOURS[name]}"><title>{name}, {short(x)}: {number(y)} {family.unit}</title></circle>' for x, y in points]
    return "".join(out) + "</svg></figure>"


def charts(summary):
    grouped = {}
    for metric in summary.in_order():
        series, place = catalog.case(metric)
        if place and catalog.family(metric).axis and not metric.startswith("matrix/"):
            grouped.setdefault((metric.split("/")[0], series), []).append((metric, place))
    for (word, series), metrics in grouped.items():
        if len(metrics) < 2:
            continue
        # One mode for a whole curve.
        mode = max(ORDER, key=lambda mode: sum(summary.samples(metric, mode) for metric, _ in metrics))
        by_name = {}
        for metric, place in metrics:
            for name in LIBRARIES:
                found = summary.figures(metric, mode).get(name)
                if found and found.median > 0:
                    by_name.setdefault(name, []).append((place, found.median))
            limit = summary.limit(metric, mode)
            if limit:
                by_name.setdefault("limit", []).append((place, limit))
        family = catalog.FAMILIES[word]
        if any(name != "limit" for name in by_name):
            yield lines(family.title + (f": {series}" if series else "") + ("" if mode == ONLY else f" ({mode} mode)"), family, by_name)


STYLE = """body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:1440px;padding:0 1rem;color:#1f2937}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(380px,1fr));gap:1rem}figure{margin:0;border:1px solid #e5e7eb;border-radius:6px;padding:.5rem}
figcaption{font-weight:600}svg{width:100%;height:auto}svg text{font:11px system-ui,sans-serif;fill:#4b5563}.grid{stroke:#e5e7eb}
.key b{display:inline-block;width:1.2em;height:.25em;margin:0 .4em .2em 1.2em}pre{overflow-x:auto;font-size:12px}
.heat{border-collapse:collapse;font-size:12px}.heat th{text-align:left;font-weight:400;padding:0 .8em 0 0}.heat td{text-align:right;padding:0 .5em}
@media(prefers-color-scheme:dark){body{background:#111827;color:#e5e7eb}figure{border-color:#374151}.grid{stroke:#374151}svg text{fill:#9ca3af}}"""


def heat(summary):
    """The matrix as a table: greener where we are ahead, redder where behind."""
    rows, sizes = {}, set()
    for metric, ratio in summary.cells().items():
        series, size = catalog.case(metric)
        rows.setdefault(series, {})[size] = ratio
        sizes.add(size)
    if not rows:
        return ""
    head = "".join(f"<th>{short(size)}" for size in sorted(sizes))
    body = "".join(f"<tr><th>{html.escape(series)}" + "".join(tile(row.get(size)) for size in sorted(sizes)) for series, row in sorted(rows.items()))
    return f"<h2>The matrix</h2><p>Our time divided by the best peer's, by operation, ranks and bytes.</p><table class=heat><tr><th>{head}{body}</table>"


def tile(ratio):
    if ratio is None:
        return "<td>"
    # A factor of three either way is the strongest colour.
    strength = min(abs(math.log(ratio, 3)), 1) * 0.7
    return f'<td style="background:rgba({"21,128,61" if ratio <= 1 else "220,38,38"},{strength:.2f})">{number(ratio)}'


def page(summary):
    record = summary.record
    key = "".join(f'<b style="background:{colour}"></b>{name}' for name, colour in COLOURS.items())
    commands = "\n".join(f"{key}\n    {command}" for key, command in sorted(record["commands"].items()))
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in text.notes(record))
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>perusal and its peers</title><style>{STYLE}</style>'
            f"<h1>perusal and its peers</h1><p>{html.escape(text.conditions(summary))}</p><p class=key>{key}</p>"
            f'<h2>Goals</h2><pre>{html.escape(text.goals(summary))}</pre>{heat(summary)}<div class="charts">{"".join(charts(summary))}</div>'
            f"<h2>All figures</h2><p>Median of the samples (lowest–highest).</p><pre>{html.escape(text.table(summary))}</pre>"
            f"<ul>{notes}</ul><h2>How each was started</h2><pre>{html.escape(commands)}</pre></html>")
