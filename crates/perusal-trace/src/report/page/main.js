// Builds the page and keeps it in step with the controls.
function redrawAll() { for (const redraw of state.redraw) redraw(); }

function setZoom(from, to) {
  const whole = report.job.duration_ns, least = Math.max(1, Math.min(whole, report.queues.bin_ns * 4));
  let length = Math.min(whole, Math.max(least, to - from)), start = Math.min(whole - length, Math.max(0, from + (to - from - length) / 2));
  state.zoom = [start, start + length];
  const step = length / 1000;
  document.getElementById("zoom-range").textContent = length >= whole ? "" : `${timeLabel(start, step)} to ${timeLabel(start + length, step)}`;
  redrawAll();
}

function tiles() {
  const k = report.key, tile = (name, value, note) => html("div", {}, html("dt", {}, name), html("dd", {}, value, note && html("small", {}, note)));
  const queue = (high) => (high.length ? `rank ${high.rank}, at ${timeLabel(high.at_ns, report.queues.bin_ns)}` : "never filled");
  document.getElementById("key").append(
    tile("Run", show.ns(report.job.duration_ns), `${show.count(RANKS)} ${RANKS === 1 ? "rank" : "ranks"}, ${show.count(report.job.records)} records`),
    tile("Messages", show.count(k.messages), show.bytes(k.bytes)),
    tile("Unexpected", show.count(k.unexpected), k.messages ? show.share(k.unexpected / k.messages) + " of the messages" : null),
    tile("Waiting", show.ns(k.waited_ns), show.share(k.waited_ns / Math.max(1, k.rank_time_ns)) + " of all ranks' time"),
    tile("Longest unexpected queue", show.count(k.unexpected_high.length), queue(k.unexpected_high)),
    tile("Longest posted queue", show.count(k.posted_high.length), queue(k.posted_high)),
    tile("Collective calls", show.count(k.collectives), k.collectives ? show.ns(k.collective_wait_ns) + " waiting in them" : null),
    k.one_sided ? tile("One-sided operations", show.count(k.one_sided), show.bytes(k.one_sided_bytes) + (k.window_wait_ns ? `, ${show.ns(k.window_wait_ns)} waiting at windows` : "")) : "",
    tile("Sleeps", show.count(k.sleeps), k.ring_full ? `rings full ${show.count(k.ring_full)}×` : "no ring full"));
}

const filter = document.getElementById("rank-filter");
filter.addEventListener("input", () => {
  const ranks = readRanks(filter.value);
  filter.setAttribute("aria-invalid", String(ranks === undefined));
  if (ranks !== undefined) { state.ranks = ranks; redrawAll(); }
});
document.getElementById("controls").addEventListener("submit", (event) => event.preventDefault());
const zoomBy = (factor) => { const [from, to] = state.zoom, middle = (from + to) / 2, half = ((to - from) * factor) / 2; setZoom(middle - half, middle + half); };
const pan = (part) => { const [from, to] = state.zoom, by = (to - from) * part; setZoom(from + by, to + by); };
document.getElementById("zoom-in").onclick = () => zoomBy(0.5);
document.getElementById("zoom-out").onclick = () => zoomBy(2);
document.getElementById("zoom-left").onclick = () => pan(-0.25);
document.getElementById("zoom-right").onclick = () => pan(0.25);
document.getElementById("zoom-all").onclick = () => setZoom(0, report.job.duration_ns);

tiles();
waitingSection();
queuesSection();
residenceSection();
searchSection();
matrixSection();
collectivesSection();
callsSection();
partitionedSection();
windowsSection();
filesSection();
sleepsSection();
communicatorsSection();
ranksSection();
setZoom(0, report.job.duration_ns);

// Drawn by width and in the colours of the scheme: anew when either changes, and in light colours for paper.
let width = innerWidth;
addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; redrawAll(); } });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
addEventListener("beforeprint", redrawAll);
addEventListener("afterprint", redrawAll);
document.body.dataset.drawn = "yes";
