// Queue lengths and waiting over time: a row for each rank, as lines while they are few,
// as a heat map when they are many.
const LINES = 16; // rows that are still readable as lines
const KINDS = {
  unexpected: { title: "Unexpected queue", colour: "unexpected", unit: "messages", most: (r) => r.unexpected.high },
  posted: { title: "Posted queue", colour: "posted", unit: "receives", most: (r) => r.posted.high },
  waiting: { title: "Waiting", colour: "fourth", unit: "of the time", most: () => 1000 },
};
const timeline = { kind: "unexpected", same: true };

// The bins of a rank's series within the zoom, as [first bin, last bin, least, most] with equal neighbours joined. A series
// has the bins in which something changed, each with the least, the most and the last length; between them the last one
// holds.
function pieces(kind, rank, from, to) {
  const series = report.queues[kind][rank], width = report.queues.bin_ns, out = [];
  const first = Math.floor(from / width), last = Math.min(report.queues.bins - 1, Math.ceil(to / width) - 1);
  let low = 0, high = series.length;
  while (low < high) { const middle = (low + high) >> 1; if (series[middle][0] <= first) low = middle + 1; else high = middle; }
  for (let bin = first, at = low - 1; bin <= last; at++) {
    const now = series[at], next = series[at + 1]?.[0] ?? Infinity;
    if (now && now[0] === bin) { out.push([bin, bin, now[1], now[2]]); bin++; }
    if (bin < next && bin <= last) {
      const still = now ? now[3] : 0, end = Math.min(last, next - 1);
      out.push([bin, end, still, still]);
      bin = end + 1;
    }
  }
  return out;
}
const valueAt = (kind, rank, bin) => pieces(kind, rank, bin * report.queues.bin_ns, (bin + 1) * report.queues.bin_ns)[0] || [bin, bin, 0, 0];
const showLength = (kind, value) => (kind === "waiting" ? show.share(value / 1000) : show.count(value));
function tipAt(kind, rank, ns) {
  const bin = Math.min(report.queues.bins - 1, Math.max(0, Math.floor(ns / report.queues.bin_ns)));
  const [, , least, most] = valueAt(kind, rank, bin), k = KINDS[kind];
  const range = least === most ? showLength(kind, most) : showLength(kind, least) + " to " + showLength(kind, most);
  return `${rankWord(rank)}, ${timeLabel(bin * report.queues.bin_ns, report.queues.bin_ns)}\n${k.title.toLowerCase()}: ${range} ${k.unit}`;
}

function timeAxis(left, width, top, height) {
  const [from, to] = state.zoom, marks = ticks(from, to, Math.max(2, width / 110));
  return marks.at.map((at) => {
    const x = left + (width * (at - from)) / (to - from);
    return [svg("line", { class: "grid", x1: x, x2: x, y1: top, y2: top + height }), svg("text", { x, y: top + height + 15, "text-anchor": x > left + width - 20 ? "end" : "middle" }, timeLabel(at, marks.step))];
  });
}

// Dragging along the time axis zooms; the pointer tells what is under it.
function timeInput(area, left, width, rankAt) {
  let began = null;
  const timeOf = (event) => {
    const x = event.clientX - area.getBoundingClientRect().left - left;
    return state.zoom[0] + ((state.zoom[1] - state.zoom[0]) * Math.min(width, Math.max(0, x))) / width;
  };
  const band = svg("rect", { y: 0, height: "100%", fill: "var(--posted)", opacity: .18, visibility: "hidden" });
  const hair = svg("line", { y1: 0, y2: "100%", stroke: "var(--soft)", "stroke-width": 1, visibility: "hidden", "pointer-events": "none" });
  const cover = svg("svg", { width: "100%", height: "100%", style: "position:absolute;inset:0", "aria-hidden": "true" }, hair, band);
  const xOf = (t) => left + (width * (t - state.zoom[0])) / (state.zoom[1] - state.zoom[0]);
  area.append(cover);
  area.classList.add("live", "plot");
  area.addEventListener("pointerdown", (event) => { if (event.button === 0) { began = timeOf(event); area.setPointerCapture(event.pointerId); } });
  area.addEventListener("pointermove", (event) => {
    const t = timeOf(event), rank = rankAt(event.clientY - area.getBoundingClientRect().top);
    hair.setAttribute("x1", xOf(t)); hair.setAttribute("x2", xOf(t)); hair.setAttribute("visibility", "visible");
    showTip(rank === null ? "" : tipAt(timeline.kind, rank, Math.min(t, report.job.duration_ns - 1)), event.clientX, event.clientY);
    if (began !== null) {
      band.setAttribute("visibility", "visible");
      band.setAttribute("x", xOf(Math.min(began, t)));
      band.setAttribute("width", Math.abs(xOf(t) - xOf(began)));
    }
  });
  area.addEventListener("pointerleave", () => { hair.setAttribute("visibility", "hidden"); showTip(""); });
  area.addEventListener("pointerup", (event) => {
    const from = began, to = timeOf(event);
    began = null;
    band.setAttribute("visibility", "hidden");
    if (from !== null && Math.abs(xOf(to) - xOf(from)) > 5) setZoom(Math.min(from, to), Math.max(from, to));
  });
  area.addEventListener("dblclick", () => setZoom(0, report.job.duration_ns));
}

function lines(kind, ranks, width) {
  const k = KINDS[kind], left = 78, right = 20, plot = width - left - right, [from, to] = state.zoom;
  const row = ranks.length <= 4 ? 96 : ranks.length <= 8 ? 70 : 52, gap = 8, head = 18, height = ranks.length * (row + gap);
  const all = Math.max(1, ...ranks.map((rank) => k.most(report.ranks[rank])));
  const x = (bin) => left + Math.min(plot, Math.max(0, (plot * (bin * report.queues.bin_ns - from)) / (to - from)));
  const rows = ranks.map((rank, index) => {
    const base = index * (row + gap) + row + 6, own = Math.max(1, k.most(report.ranks[rank])), most = timeline.same ? all : own;
    const y = (value) => base - ((row - head) * value) / most;
    const steps = pieces(kind, rank, from, to);
    let upper = "", lower = "";
    for (const [a, b, least, high] of steps) {
      upper += `L${x(a).toFixed(1)} ${y(high).toFixed(1)}L${x(b + 1).toFixed(1)} ${y(high).toFixed(1)}`;
      lower = `L${x(b + 1).toFixed(1)} ${y(least).toFixed(1)}L${x(a).toFixed(1)} ${y(least).toFixed(1)}` + lower;
    }
    const shape = upper && [
      svg("path", { d: `M${left} ${base}${upper}L${left + plot} ${base}Z`, fill: `var(--${k.colour})`, opacity: .22 }),
      svg("path", { d: "M" + (upper + lower).slice(1) + "Z", fill: `var(--${k.colour})`, opacity: .55 }),
      svg("path", { d: "M" + upper.slice(1), fill: "none", stroke: `var(--${k.colour})`, "stroke-width": 1.5, "stroke-linejoin": "round" }),
    ];
    const queue = kind === "waiting" ? null : report.ranks[rank][kind];
    const peak = queue && queue.high > 0 && queue.high_at_ns >= from && queue.high_at_ns <= to;
    const px = peak && left + (plot * (queue.high_at_ns - from)) / (to - from), py = peak && y(queue.high);
    return svg("g", { class: "row", "data-rank": rank },
      svg("line", { class: "axis", x1: left, x2: left + plot, y1: base, y2: base }),
      svg("line", { class: "grid", x1: left, x2: left + plot, y1: y(most), y2: y(most) }),
      svg("text", { class: "strong", x: 0, y: base - row / 2 + 4 }, rankWord(rank)),
      svg("text", { x: left - 6, y: base + 1, "text-anchor": "end" }, "0"),
      svg("text", { x: left - 6, y: y(most) + 5, "text-anchor": "end" }, kind === "waiting" ? "100\u202f%" : short(most)),
      shape,
      peak && svg("path", { d: `M${px} ${py - 1}l-4 -6h8Z`, fill: "var(--mark)" }),
      peak && svg("text", { class: "mark high", x: px > left + plot - 210 ? px - 8 : px + 8, y: py - 5, "text-anchor": px > left + plot - 210 ? "end" : "start", style: "paint-order:stroke;stroke:var(--surface);stroke-width:3px" }, `high water ${show.count(queue.high)} at ${timeLabel(queue.high_at_ns, report.queues.bin_ns)}`));
  });
  const area = html("div", { style: "position:relative" }, svg("svg", { width, height: height + 26, role: "img", "aria-label": `${k.title} of ${ranks.length} ranks over time; the table below has the high-water marks` }, timeAxis(left, plot, 0, height), rows));
  timeInput(area, left, plot, (y) => ranks[Math.floor(y / (row + gap))] ?? null);
  return area;
}

function heat(kind, ranks, width) {
  const k = KINDS[kind], left = 78, right = 20, plot = Math.floor(width - left - right), [from, to] = state.zoom;
  const row = Math.max(1, Math.min(12, Math.floor(600 / ranks.length))), height = row * ranks.length;
  const scale = window.devicePixelRatio || 1, shade = ramp(k.colour);
  const most = kind === "waiting" ? 1000 : Math.max(1, ...ranks.map((rank) => k.most(report.ranks[rank])));
  const canvas = html("canvas", { width: plot * scale, height: height * scale, style: `position:absolute;left:${left}px;top:0;width:${plot}px;height:${height}px`, role: "img", "aria-label": `${k.title} of ${ranks.length} ranks over time as a heat map; the table below has the high-water marks` });
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  ranks.forEach((rank, index) => {
    for (const [a, b, , high] of pieces(kind, rank, from, to)) {
      if (high === 0) continue;
      // Whole columns, so that neighbours meet without a seam.
      const x0 = Math.max(0, Math.floor((plot * (a * report.queues.bin_ns - from)) / (to - from))), x1 = Math.min(plot, Math.ceil((plot * ((b + 1) * report.queues.bin_ns - from)) / (to - from)));
      pen.fillStyle = shade(kind === "waiting" ? high / most : logShare(high, most));
      pen.fillRect(x0, index * row, Math.max(1, x1 - x0), row > 3 ? row - 1 : row);
    }
  });
  const every = Math.ceil(14 / row), step = [1, 2, 4, 8, 16, 32, 64, 128, 256].find((s) => s >= every) || 512;
  const labels = ranks.map((rank, index) => index % step === 0 && svg("text", { x: left - 8, y: index * row + Math.min(row, 12) - 1, "text-anchor": "end" }, rankWord(rank)));
  const area = html("div", { style: `position:relative;height:${height + 24}px` }, svg("svg", { width, height: height + 24, "aria-hidden": "true", style: "position:absolute;inset:0" }, timeAxis(left, plot, 0, height), svg("line", { class: "axis", x1: left, x2: left + plot, y1: height, y2: height }), labels), canvas);
  timeInput(area, left, plot, (y) => (y < height ? ranks[Math.floor(y / row)] ?? null : null));
  const legend = html("p", { class: "ramp" }, "0", html("i", { style: `background:linear-gradient(90deg,${[0, .25, .5, .75, 1].map(shade).join(",")})` }), kind === "waiting" ? "100\u202f% of the time" : `${show.count(most)} ${k.unit} (logarithmic)`, html("span", {}, `Up to ${LINES} ranks are drawn as lines: choose them above.`));
  return [legend, area];
}

function queuesSection() {
  const node = sectionOf("queues", "Queues over time", "The unexpected queue holds messages that came before their receive; the posted queue holds receives that wait for their message. Drag across to look closer, double-click for the whole run.");
  let redraw = () => {};
  node.append(html("div", { class: "pick" },
    picker("Show", { unexpected: "unexpected queue", posted: "posted queue", waiting: "waiting (share of the time)" }, (kind) => { timeline.kind = kind; redraw(); }),
    RANKS > 1 && tickbox("same scale for all ranks", true, (on) => { timeline.same = on; redraw(); })));
  redraw = figure(node, [html("b", {}, "Entries in the queue, per rank. "), `Values are distinguished to ${show.ns(report.queues.bin_ns)}: within that, the solid band spans the least and the most. The triangle is the high-water mark.`], (width) => {
    const ranks = selected();
    return (ranks.length <= LINES ? lines : heat)(timeline.kind, ranks, width);
  }, { id: "timeline" });
  const columns = (name) => [
    { title: "high water", cell: (r) => show.count(r[name].high) }, { title: "reached at", cell: (r) => (r[name].high ? timeLabel(r[name].high_at_ns, report.queues.bin_ns) : "–") },
    { title: "entries in all", cell: (r) => show.count(r[name].entries) }, { title: "left at the end", cell: (r) => show.count(r[name].left) }, { title: "not empty for", cell: (r) => show.ns(r[name].occupied_ns) }];
  const both = [{ title: "rank", cell: (r) => show.plain(r.rank) }, ...columns("unexpected").map((c) => ({ ...c, title: "unexpected: " + c.title })), ...columns("posted").map((c) => ({ ...c, title: "posted: " + c.title }))];
  node.append(asTable("High-water marks of all ranks as a table", () => table(null, both, report.ranks, "high-water")));
}
