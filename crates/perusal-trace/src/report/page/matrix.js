// Who sends to whom: a table while its numbers can be read, a shaded field when there are more ranks.
const CELLS = 16; // ranks whose cells still have room for a number
const FIELDS = {
  messages: { title: "messages", at: 2, hue: "posted", label: show.count },
  bytes: { title: "bytes", at: 3, hue: "posted", label: show.bytes },
  unexpected: { title: "unexpected messages", at: 4, hue: "unexpected", label: show.count },
  unexpected_bytes: { title: "unexpected bytes", at: 5, hue: "unexpected", label: show.bytes },
  share: { title: "unexpected share of the messages", at: -1, hue: "unexpected", label: show.share },
};
const matrix = { field: "messages" };
const cellsByPair = new Map(report.matrix.cells.map((cell) => [cell[0] * 65536 + cell[1], cell]));
const cellOf = (from, to) => cellsByPair.get(from * 65536 + to);
const valueOf = (field, cell) => (!cell ? 0 : field.at >= 0 ? cell[field.at] : cell[2] ? cell[4] / cell[2] : 0);
// With very many ranks a row stands for several.
const groupName = (index) => {
  const size = report.matrix.group, first = index * size, last = Math.min(RANKS, first + size) - 1;
  return first === last ? String(first) : `${first}–${last}`;
};
const groups = () => {
  const shown = new Set(selected().map((rank) => Math.floor(rank / report.matrix.group)));
  return [...shown].sort((a, b) => a - b);
};
const cellTip = (from, to, cell) => `${groupName(from)} → ${groupName(to)}\n${cell ? `${show.count(cell[2])} messages, ${show.bytes(cell[3])}\nunexpected: ${show.count(cell[4])} (${show.share(cell[2] ? cell[4] / cell[2] : 0)}), ${show.bytes(cell[5])}` : "no message"}`;

function matrixTable(field, ranks) {
  const most = Math.max(...ranks.flatMap((a) => ranks.map((b) => valueOf(field, cellOf(a, b)))), 0), shade = ramp(field.hue);
  const sum = (cells) => field.at < 0 ? (cells.reduce((s, c) => s + (c?.[4] || 0), 0) / (cells.reduce((s, c) => s + (c?.[2] || 0), 0) || 1)) : cells.reduce((s, c) => s + valueOf(field, c), 0);
  const brief = (value) => (field.label === show.count ? (value < 10000 ? show.count(value) : short(value)) : field.label(value));
  return html("div", { class: "scroll" }, html("table", { class: "matrix", id: "matrix-table" },
    html("caption", {}, html("span", {}, `${field.title}: rows send, columns receive`)),
    html("thead", {}, html("tr", {}, html("th", { scope: "col" }, "from \\ to"), ranks.map((to) => html("th", { scope: "col" }, groupName(to))), html("th", { scope: "col" }, field.at < 0 ? "in all" : "sum"))),
    html("tbody", {}, ranks.map((from) => html("tr", {}, html("th", { scope: "row" }, groupName(from)), ranks.map((to) => {
      const cell = cellOf(from, to), value = valueOf(field, cell), fillColour = shade(field.at < 0 ? value : logShare(value, most));
      return html("td", { "data-from": from, "data-to": to, "data-value": value, "data-tip": cellTip(from, to, cell), style: cell ? `background:${fillColour};color:${inkOn(fillColour)}` : null }, cell ? brief(value) : "·");
    }), html("td", {}, brief(sum(ranks.map((to) => cellOf(from, to)))))))),
    html("tfoot", {}, html("tr", {}, html("th", { scope: "row" }, field.at < 0 ? "in all" : "sum"), ranks.map((to) => html("td", {}, brief(sum(ranks.map((from) => cellOf(from, to)))))), html("td", {}, brief(sum(ranks.flatMap((a) => ranks.map((b) => cellOf(a, b))))))))));
}

function matrixField(field, ranks, width) {
  const left = 64, top = 24, cell = Math.max(2, Math.floor(Math.min(18, (Math.min(width, 860) - left) / ranks.length))), side = cell * ranks.length;
  const scale = window.devicePixelRatio || 1, shade = ramp(field.hue), most = Math.max(...ranks.flatMap((a) => ranks.map((b) => valueOf(field, cellOf(a, b)))), 0);
  const canvas = html("canvas", { width: side * scale, height: side * scale, class: "live", style: `position:absolute;left:${left}px;top:${top}px;width:${side}px;height:${side}px`, role: "img", "aria-label": `${field.title} between ${ranks.length} ranks; the table of the busiest pairs below has numbers` });
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.fillStyle = colour("head");
  pen.fillRect(0, 0, side, side);
  const gap = cell > 6 ? 1 : 0;
  ranks.forEach((from, row) => ranks.forEach((to, column) => {
    const value = valueOf(field, cellOf(from, to));
    if (value <= 0) return;
    pen.fillStyle = shade(field.at < 0 ? value : logShare(value, most));
    pen.fillRect(column * cell, row * cell, cell - gap, cell - gap);
  }));
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect(), to = ranks[Math.floor((event.clientX - box.left) / cell)], from = ranks[Math.floor((event.clientY - box.top) / cell)];
    showTip(from === undefined || to === undefined ? "" : cellTip(from, to, cellOf(from, to)), event.clientX, event.clientY);
  });
  canvas.addEventListener("pointerleave", () => showTip(""));
  const step = [1, 2, 4, 8, 16, 32, 64].find((s) => s * cell >= 30) || 128;
  const labels = ranks.map((rank, i) => i % step === 0 && [
    svg("text", { x: left - 6, y: top + i * cell + Math.min(cell, 12), "text-anchor": "end" }, groupName(rank)),
    svg("text", { x: left + i * cell + Math.min(cell, 18) / 2, y: top - 7, "text-anchor": "middle" }, groupName(rank))]);
  return [
    html("p", { class: "ramp" }, "0", html("i", { style: `background:linear-gradient(90deg,${[0, .25, .5, .75, 1].map(shade).join(",")})` }), field.at < 0 ? "100\u202f%" : `${field.label(most)} (logarithmic)`, html("span", {}, "rows send, columns receive")),
    html("div", { style: `position:relative;height:${top + side + 4}px` }, svg("svg", { width: left + side + 20, height: top + side, "aria-hidden": "true", style: "position:absolute;inset:0" }, labels), canvas),
  ];
}

function matrixSection() {
  const node = sectionOf("matrix", "Who sends to whom", "Point-to-point messages by their ranks in MPI_COMM_WORLD. Those of collective operations are not in it.");
  let redraw = () => {};
  node.append(html("div", { class: "pick" }, picker("Show", Object.fromEntries(Object.entries(FIELDS).map(([key, f]) => [key, f.title])), (value) => { matrix.field = value; redraw(); })));
  redraw = figure(node, [html("b", {}, "Sender–receiver matrix. "), report.matrix.group > 1 ? `A row or column stands for ${report.matrix.group} ranks.` : "Shading is logarithmic; an empty cell (·) means no message."], (width) => {
    const ranks = groups(), field = FIELDS[matrix.field];
    if (report.matrix.cells.length === 0) return none("No point-to-point message was recorded.");
    return ranks.length <= CELLS ? matrixTable(field, ranks) : matrixField(field, ranks, width);
  }, { id: "matrix-figure" });
  if (report.matrix.cells.length === 0) return;
  node.append(asTable("Busiest pairs as a table", () => {
    const field = FIELDS[matrix.field], rows = report.matrix.cells.filter((c) => valueOf(field, c) > 0).sort((a, b) => valueOf(field, b) - valueOf(field, a)).slice(0, 50);
    return table(`The ${rows.length} pairs with most ${field.title}`, [
      { title: "from", cell: (c) => groupName(c[0]) }, { title: "to", cell: (c) => groupName(c[1]) }, { title: "messages", cell: (c) => show.count(c[2]) }, { title: "bytes", cell: (c) => show.bytes(c[3]) },
      { title: "unexpected", cell: (c) => show.count(c[4]) }, { title: "unexpected bytes", cell: (c) => show.bytes(c[5]) }, { title: "share", cell: (c) => show.share(c[2] ? c[4] / c[2] : 0) }], rows, "busiest");
  }));
}
