// Histograms over all selected ranks, and one bar for each rank beside the distribution among ranks (the form of figures 3 and
// 4 of "MPI_T Events", where MEL's measurements are shown).
const bars = { log: true };

// Distributions of several ranks put together: [[bin, count]…] summed.
function together(pick) {
  const sums = new Map();
  let count = 0, total = 0, most = 0, least = Infinity;
  for (const rank of selected()) {
    const d = pick(report.ranks[rank]);
    count += d.count; total += d.total;
    if (d.count) { most = Math.max(most, d.max); least = Math.min(least, d.min); }
    for (const [bin, n] of d.histogram) sums.set(bin, (sums.get(bin) || 0) + n);
  }
  return { count, total, max: most, min: count ? least : 0, histogram: [...sums].sort((a, b) => a[0] - b[0]) };
}

// The value below which `part` of all lie, read off the histogram.
function quantile(d, part, edges) {
  let left = d.count * part;
  for (const [bin, n] of d.histogram) {
    if (left <= n) {
      const low = Math.max(d.min, edges[bin]), high = Math.min(d.max, edges[bin + 1] ?? d.max);
      return low + (Math.max(low, high) - low) * (left / n);
    }
    left -= n;
  }
  return d.max;
}

const HISTOGRAM = 190;
function histogram(title, pick, edges, label, hue, width) {
  const d = together(pick), left = 48, right = 26, top = 8, bottom = 34, plot = width - left - right, height = HISTOGRAM;
  if (d.count === 0) return none("None on the ranks shown.");
  const first = d.histogram[0][0], last = d.histogram.at(-1)[0], shown = Math.max(12, last - first + 1), start = Math.max(0, Math.min(first, first - Math.floor((shown - (last - first + 1)) / 2)));
  const most = Math.max(...d.histogram.map(([, n]) => n)), room = height - top - bottom, bin = plot / shown;
  const y = (n) => top + room - room * (n <= 0 ? 0 : bars.log ? (Math.log10(n) + 0.3) / (Math.log10(most) + 0.3) : n / most);
  const decades = Array.from({ length: Math.floor(Math.log10(most)) + 1 }, (_, i) => 10 ** i);
  const marks = bars.log && most >= 10 ? decades.filter((_, i) => decades.length < 6 || i % 2 === 0) : countTicks(most, 4);
  const xLabels = [];
  let lastX = -Infinity;
  for (let i = 0; i <= shown; i++) {
    const edge = edges[start + i];
    if (edge === undefined) break;
    const lead = edge / 10 ** Math.floor(Math.log10(edge) + 1e-9), x = left + i * bin;
    const major = edge === 0 || lead === 1 || (shown <= 20 && (lead === 2 || lead === 5));
    if (major && x - lastX > 48) { xLabels.push([x, edge]); lastX = x; }
  }
  const shape = d.histogram.map(([b, n]) => {
    const from = edges[b], to = edges[b + 1], range = label === show.ns ? `${round(label)(from)} to ${to === undefined ? "∞" : round(label)(to)}` : to - from === 1 ? label(from) : `${label(from)} to ${label(to - 1)}`;
    return svg("rect", { x: left + (b - start) * bin + 0.5, y: y(n), width: Math.max(1, bin - 1.5), height: top + room - y(n), rx: 1.5, fill: `var(--${hue})`, "data-tip": `${range}\n${show.count(n)} (${show.share(n / d.count)})` });
  });
  const words = `${show.count(d.count)} in all: median ≈ ${label(Math.round(quantile(d, .5, edges)))}, 99\u202f% below ≈ ${label(Math.round(quantile(d, .99, edges)))}, ${label === show.ns ? "longest" : "most"} ${label(d.max)}`;
  return [html("figcaption", {}, words),
    svg("svg", { width, height, role: "img", "aria-label": `${title}: ${words}` },
      marks.map((n) => [svg("line", { class: "grid", x1: left, x2: left + plot, y1: y(n), y2: y(n) }), svg("text", { x: left - 6, y: y(n) + 4, "text-anchor": "end" }, short(n))]),
      svg("line", { class: "axis", x1: left, x2: left + plot, y1: top + room, y2: top + room }), shape,
      xLabels.map(([x, edge]) => [svg("line", { class: "axis", x1: x, x2: x, y1: top + room, y2: top + room + 4 }), svg("text", { x, y: top + room + 18, "text-anchor": "middle" }, label === show.ns ? round(label)(edge) : short(edge))]))];
}

function histogramTable(picks, edges, label) {
  const sums = picks.map(([, pick]) => new Map(together(pick).histogram)), bins = [...new Set(sums.flatMap((s) => [...s.keys()]))].sort((a, b) => a - b);
  return table(null, [{ title: "from", cell: (b) => round(label)(edges[b]) }, { title: "to", cell: (b) => (edges[b + 1] === undefined ? "∞" : round(label)(edges[b + 1])) }, ...picks.map(([title], i) => ({ title, cell: (b) => show.count(sums[i].get(b) || 0) }))], bins);
}

// A bar (longest) and a dot (mean) for each rank.
function perRank(name, pick, hue, width, label) {
  const ranks = selected(), left = 62, right = 8, top = 10, bottom = 34, height = 220, plot = width - left - right, room = height - top - bottom;
  const most = Math.max(...ranks.map((r) => pick(report.ranks[r]).max), 0);
  if (most === 0) return none("None on the ranks shown.");
  const y = (v) => top + room - (room * v) / most, step = plot / ranks.length, marks = ticks(0, most, 4);
  const every = Math.max(1, Math.ceil(26 / step)), nth = [1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128, 256, 512].find((n) => n >= every) || 1000;
  return svg("svg", { width, height, role: "img", "aria-label": `${name}, a bar for each rank; the table below has the values` },
    marks.at.map((v) => [svg("line", { class: "grid", x1: left, x2: left + plot, y1: y(v), y2: y(v) }), svg("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, label === show.ns ? (v === 0 ? "0" : timeLabel(v, marks.step)) : short(v))]),
    svg("line", { class: "axis", x1: left, x2: left + plot, y1: top + room, y2: top + room }),
    ranks.map((rank, i) => {
      const d = pick(report.ranks[rank]), mean = d.count ? d.total / d.count : 0, x = left + i * step, wide = Math.min(40, step * .82);
      return svg("g", { "data-rank": rank, "data-tip": `${rankWord(rank)}\nlongest ${label(d.max)}\nmean ${label(mean)}\n${show.count(d.count)} in all` },
        svg("rect", { x, y: top, width: step, height: room, fill: "transparent" }),
        svg("rect", { x: x + (step - wide) / 2, y: y(d.max), width: Math.max(.8, wide), height: top + room - y(d.max), rx: step > 6 ? 2 : 0, fill: `var(--${hue})`, opacity: .75 }),
        d.count > 0 && step > 5 && svg("circle", { cx: x + step / 2, cy: y(mean), r: Math.min(3.5, step / 3), fill: "var(--mark)", stroke: "var(--surface)" }),
        (rank % nth === 0 || ranks.length <= 8) && svg("text", { x: x + step / 2, y: top + room + 16, "text-anchor": "middle" }, String(rank)));
    }),
    svg("text", { x: left + plot / 2, y: height - 3, "text-anchor": "middle" }, "rank"));
}

// How many ranks have their longest where: ten equal bins, as the paper draws it.
function amongRanks(name, pick, hue, width, label) {
  const values = selected().map((r) => pick(report.ranks[r]).max), most = Math.max(...values, 0);
  if (most === 0) return none("");
  const bins = Array(10).fill(0);
  for (const v of values) bins[Math.min(9, Math.floor((10 * v) / most))]++;
  const left = 38, right = 14, top = 10, bottom = 34, height = 220, plot = width - left - right, room = height - top - bottom, high = Math.max(...bins);
  return svg("svg", { width, height, role: "img", "aria-label": `How the ranks share out over: ${name}` },
    countTicks(high, 4).map((n) => [svg("line", { class: "grid", x1: left, x2: left + plot, y1: top + room - (room * n) / high, y2: top + room - (room * n) / high }), svg("text", { x: left - 6, y: top + room - (room * n) / high + 4, "text-anchor": "end" }, String(n))]),
    svg("line", { class: "axis", x1: left, x2: left + plot, y1: top + room, y2: top + room }),
    bins.map((n, i) => svg("rect", { x: left + (i * plot) / 10 + 1, y: top + room - (room * n) / high, width: plot / 10 - 2, height: (room * n) / high, fill: `var(--${hue})`, opacity: .75, "data-tip": `${label((most * i) / 10)} to ${label((most * (i + 1)) / 10)}\n${n} ${n === 1 ? "rank" : "ranks"}` })),
    [0, .5, 1].map((part) => svg("text", { x: left + plot * part, y: top + room + 16, "text-anchor": part === 0 ? "start" : part === 1 ? "end" : "middle" }, label(most * part))),
    svg("text", { x: left + plot / 2, y: height - 3, "text-anchor": "middle" }, "ranks by their longest"));
}

function rankFigure(node, id, caption, choices, label) {
  let now = Object.keys(choices)[0], redraws = [];
  const change = (value) => { now = value; redraws.forEach((r) => r()); };
  if (Object.keys(choices).length > 1) node.append(html("div", { class: "pick" }, picker("Show", Object.fromEntries(Object.entries(choices).map(([key, c]) => [key, c.title])), change)));
  const pair = html("div", { class: "pair wide", id });
  node.append(pair);
  redraws.push(figure(pair, [html("b", {}, caption), " Bar: the longest; dot: the mean."], (width) => perRank(choices[now].title, choices[now].pick, choices[now].hue, width, label)));
  redraws.push(figure(pair, "Ranks by how long their longest is.", (width) => amongRanks(choices[now].title, choices[now].pick, choices[now].hue, width, label)));
  node.append(asTable("Values of all ranks as a table", () => table(null, [{ title: "rank", cell: (r) => show.plain(r.rank) }, ...Object.values(choices).flatMap((c) => [
    { title: c.title + ": count", cell: (r) => show.count(c.pick(r).count) }, { title: "mean", cell: (r) => { const d = c.pick(r); return d.count ? label(d.total / d.count) : "–"; } }, { title: "longest", cell: (r) => label(c.pick(r).max) }])], report.ranks)));
}

function residenceSection() {
  const node = sectionOf("residence", "How long entries stay in the queues", "A long stay in the posted queue means that a message came late, or that its receive was posted well ahead. A long stay in the unexpected queue means that a receive came late, and costs memory and a further copy.");
  node.append(html("div", { class: "pick" }, tickbox("logarithmic counts (all histograms)", true, (on) => { bars.log = on; redrawAll(); })));
  const pair = html("div", { class: "pair", id: "residence-histograms" });
  node.append(pair);
  figure(pair, [html("b", {}, "Residence in the unexpected queue. "), "Messages, until a receive took them."], (w) => histogram("Residence in the unexpected queue", (r) => r.unexpected.residence, report.edges.time, show.ns, "unexpected", w));
  figure(pair, [html("b", {}, "Residence in the posted queue. "), "Receives, until their message came."], (w) => histogram("Residence in the posted queue", (r) => r.posted.residence, report.edges.time, show.ns, "posted", w));
  node.append(asTable("Both histograms as a table (ranks that are shown)", () => histogramTable([["unexpected queue", (r) => r.unexpected.residence], ["posted queue", (r) => r.posted.residence]], report.edges.time, show.ns)));
  node.append(html("h3", {}, "Lifetimes per rank"));
  rankFigure(node, "lifetimes", "Lifetime on each rank.", {
    posted: { title: "receives in the posted queue", pick: (r) => r.posted.residence, hue: "posted" },
    unexpected: { title: "messages in the unexpected queue", pick: (r) => r.unexpected.residence, hue: "unexpected" },
    receive: { title: "receive requests, start to notification", pick: (r) => r.receive_requests, hue: "posted" },
    send: { title: "send requests, start to notification", pick: (r) => r.send_requests, hue: "third" },
  }, show.ns);
}

function searchSection() {
  const node = sectionOf("search", "Searching the queues", "The posted queue is searched when a message comes, the unexpected queue when a receive is posted. Depth is the number of entries that were compared.");
  const pair = html("div", { class: "pair", id: "search-histograms" });
  node.append(pair);
  const shape = [["unexpected", "Unexpected queue"], ["posted", "Posted queue"]];
  for (const [name, title] of shape) figure(pair, html("b", {}, `${title}: time of a search`), (w) => histogram(`${title}: time of a search`, (r) => r[name].search_time, report.edges.time, show.ns, name, w));
  for (const [name, title] of shape) figure(pair, [html("b", {}, `${title}: depth of a search. `), "Entries compared."], (w) => histogram(`${title}: depth of a search`, (r) => r[name].search_depth, report.edges.count, show.count, name, w));
  node.append(asTable("Search times as a table (ranks that are shown)", () => histogramTable([["unexpected queue", (r) => r.unexpected.search_time], ["posted queue", (r) => r.posted.search_time]], report.edges.time, show.ns)));
  node.append(html("h3", {}, "Search time per rank"));
  rankFigure(node, "searches", "Search time on each rank.", {
    unexpected: { title: "searches of the unexpected queue", pick: (r) => r.unexpected.search_time, hue: "unexpected" },
    posted: { title: "searches of the posted queue", pick: (r) => r.posted.search_time, hue: "posted" },
  }, show.ns);
}
