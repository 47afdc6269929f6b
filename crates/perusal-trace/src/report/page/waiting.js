// Where time went: who waited, for whom, in which form.
const CAUSES = [
  ["late_sender", "for a message that was not sent yet", "posted", ""],
  ["late_receiver", "for a receive that was not posted yet", "unexpected", "M-1 1l2 -2M0 6l6 -6M5 7l2 -2"],
  ["collective", "for others in a collective operation or a fence", "third", "M0 3h6"],
  ["lock", "for the lock of a window", "posted", "M0 0l6 6"],
  ["epoch", "for others to begin or end an epoch of a window", "unexpected", "M0 3h6M3 0v6"],
  ["other", "otherwise asleep", "idle", "M3 0v6"],
];
// Colour is not the only sign: each cause has a pattern too.
const patterns = () => svg("defs", {}, CAUSES.map(([key, , hue, path]) => svg("pattern", { id: "p-" + key, width: 6, height: 6, patternUnits: "userSpaceOnUse" },
  svg("rect", { width: 6, height: 6, fill: `var(--${hue})` }), path && svg("path", { d: path, stroke: "var(--surface)", "stroke-width": 1.2, opacity: .65 }))));
const causeKey = () => html("ul", { class: "key" }, CAUSES.map(([key, words]) => html("li", {}, svg("svg", { width: 14, height: 14, "aria-hidden": "true" }, svg("rect", { width: 14, height: 14, rx: 2, fill: `url(#p-${key})` })), words)));

function waitingBars(width) {
  const ranks = selected(), length = Math.max(1, report.job.duration_ns), left = 78, label = 92, plot = width - left - label;
  const row = ranks.length <= 16 ? 24 : ranks.length <= 64 ? 13 : Math.max(3, Math.floor(640 / ranks.length)), height = ranks.length * row;
  const most = Math.max(length * .01, ...ranks.map((r) => CAUSES.reduce((s, [key]) => s + report.ranks[r].waited[key + "_ns"], 0)));
  const marks = ticks(0, most, Math.max(2, plot / 120)), every = Math.max(1, Math.ceil(13 / row));
  return [causeKey(), svg("svg", { width, height: height + 24, role: "img", "aria-label": "Waiting time of each rank by its cause; the table of all ranks below has the values" }, patterns(),
    marks.at.map((t) => [svg("line", { class: "grid", x1: left + (plot * t) / most, x2: left + (plot * t) / most, y1: 0, y2: height }), svg("text", { x: left + (plot * t) / most, y: height + 16, "text-anchor": "middle" }, timeLabel(t, marks.step))]),
    ranks.map((rank, i) => {
      const waited = report.ranks[rank].waited;
      let x = left, sum = 0;
      const parts = CAUSES.map(([key]) => {
        const ns = waited[key + "_ns"], wide = (plot * ns) / most, part = ns > 0 && svg("rect", { x, y: i * row + (row > 8 ? 3 : 0), width: Math.max(.5, wide - (wide > 4 ? 1 : 0)), height: row - (row > 8 ? 6 : 1), fill: `url(#p-${key})` });
        x += wide; sum += ns;
        return part;
      });
      const text = CAUSES.filter(([key]) => waited[key + "_ns"] > 0).map(([key, words]) => `${show.ns(waited[key + "_ns"])} ${words}`).join("\n");
      return svg("g", { "data-rank": rank, "data-tip": `${rankWord(rank)} waited ${show.ns(sum)} (${show.share(sum / length)} of the run)\n${text}` },
        svg("rect", { x: 0, y: i * row, width, height: row, fill: "transparent" }),
        i % every === 0 && svg("text", { class: row >= 13 ? "strong" : null, x: 0, y: i * row + Math.min(row, 24) / 2 + 4 }, rankWord(rank)), parts,
        row >= 13 && svg("text", { x: x + 6, y: i * row + row / 2 + 4 }, `${show.ns(sum)}, ${show.share(sum / length)}`));
    }))];
}

const LISTED = 25;
function lateTable(id, caption, first, second, rows, columns) {
  const room = html("div", {});
  let all = false;
  const draw = () => {
    const fit = rows.filter((r) => isSelected(r[first]) || isSelected(r[second]));
    if (fit.length === 0) { room.replaceChildren(none("None.")); return; }
    room.replaceChildren(table(caption, columns, all ? fit : fit.slice(0, LISTED), id), fit.length > LISTED && !all ? html("button", { type: "button", onclick: () => { all = true; draw(); } }, `Show all ${fit.length}`) : "");
  };
  state.redraw.push(draw);
  return room;
}

function waitingSection() {
  const node = sectionOf("waiting", "Who waited for whom", "A rank waits when it has nothing to do but wait for a message, a receive, a collective operation, or a lock or an epoch of a window. Waiting is charged to the rank that came late; where that rank was itself waiting at the time, the charge goes on to the one it waited for (\"at the root\").");
  figure(node, html("b", {}, "Waiting time on each rank, by cause"), waitingBars, { id: "waiting-bars" });
  const causes = report.ranks.filter((r) => r.caused.root_ns > 0 || r.caused.direct_ns > 0).sort((a, b) => b.caused.root_ns - a.caused.root_ns || a.rank - b.rank);
  const root = Math.max(1, report.ranks.reduce((s, r) => s + r.caused.root_ns, 0));
  node.append(html("h3", {}, "Ranks that others waited for"), causes.length === 0 ? none("Nobody waited for anybody for long enough to be seen.") : table("Waiting time of all other ranks, charged to the rank that came late", [
    { title: "rank", cell: (r) => show.plain(r.rank) }, { title: "at the root", cell: (r) => show.ns(r.caused.root_ns) }, { title: "share of all waiting", cell: (r) => show.share(r.caused.root_ns / root), bar: (r) => r.caused.root_ns / root }, { title: "directly", cell: (r) => show.ns(r.caused.direct_ns) },
    { title: "as a sender", cell: (r) => show.ns(r.caused.late_sender_ns) }, { title: "as a receiver", cell: (r) => show.ns(r.caused.late_receiver_ns) }, { title: "last in a collective", cell: (r) => show.ns(r.caused.collective_ns) }, { title: "at windows and files", cell: (r) => show.ns(r.caused.lock_ns + r.caused.epoch_ns) }], causes.slice(0, LISTED), "causes"));
  const at = (ns) => timeLabel(ns, report.queues.bin_ns), most = (rows) => Math.max(1, report.key.waited_ns / 50, ...rows.map((r) => r.waited_ns));
  const senders = report.late_senders, receivers = report.late_receivers;
  node.append(html("h3", {}, "Late senders"), lateTable("late-senders", "A receiver waited before the send had begun", "sender", "receiver", senders, [
    { title: "sender", cell: (r) => rankWord(r.sender), text: true }, { title: "made wait", cell: (r) => rankWord(r.receiver), text: true }, { title: "for", cell: (r) => show.ns(r.waited_ns), bar: (r) => r.waited_ns / most(senders) },
    { title: "messages", cell: (r) => show.count(r.messages) }, { title: "longest", cell: (r) => show.ns(r.longest_ns) }, { title: "at", cell: (r) => at(r.longest_at_ns) }, { title: "while the sender waited too", cell: (r) => show.ns(r.passed_on_ns) }, { title: "posted before the send by", cell: (r) => show.ns(r.open_ns) }]));
  node.append(html("h3", {}, "Late receivers"), lateTable("late-receivers", "A sender waited before the receive was posted", "receiver", "sender", receivers, [
    { title: "receiver", cell: (r) => rankWord(r.receiver), text: true }, { title: "sender", cell: (r) => rankWord(r.sender), text: true }, { title: "the sender waited", cell: (r) => show.ns(r.waited_ns), bar: (r) => r.waited_ns / most(receivers) },
    { title: "messages", cell: (r) => show.count(r.messages) }, { title: "longest wait", cell: (r) => show.ns(r.longest_ns) }, { title: "at", cell: (r) => (r.longest_ns ? at(r.longest_at_ns) : "–") }, { title: "sent before the receive by", cell: (r) => show.ns(r.early_ns) }, { title: "most by", cell: (r) => show.ns(r.earliest_ns) }]));
}
