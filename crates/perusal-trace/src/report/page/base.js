// What every figure uses: the data, elements, numbers for people, scales, the tip. Text reaches the page as text
// nodes and attributes only, never as markup, because names in a trace are whatever the traced program chose.
const report = JSON.parse(document.getElementById("data").textContent);
const RANKS = report.ranks.length;
const state = { ranks: null, zoom: [0, report.job.duration_ns], redraw: [] };

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}
const html = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
function svg(tag, attributes, ...children) {
  const node = fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  // A drawing that is wider than its room, as on paper, is made smaller.
  if (tag === "svg" && typeof attributes.width === "number") node.setAttribute("viewBox", `0 0 ${attributes.width} ${attributes.height}`);
  return node;
}

// Numbers for people. The same rules as in the Rust that writes the first paragraph.
const round3 = (x) => (x >= 100 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x.toFixed(2));
function scaled(value, units, step) {
  let at = 0;
  while (at + 1 < units.length && value >= 999.5) { value /= step; at++; }
  return (at === 0 ? String(Math.round(value * 10) / 10) : round3(value)) + "\u202f" + units[at];
}
const show = {
  ns: (x) => (x === 0 ? "0" : scaled(x, ["ns", "µs", "ms", "s"], 1000)),
  bytes: (x) => scaled(x, ["B", "kB", "MB", "GB", "TB"], 1000),
  count: (x) => Math.round(x).toString().replace(/\B(?=(\d{3})+$)/g, ","),
  share: (x) => (x === 0 ? "0\u202f%" : x < 0.001 ? "<0.1\u202f%" : (x < 0.0995 ? (100 * x).toFixed(1) : Math.round(100 * x)) + "\u202f%"),
  plain: (x) => String(x),
};
// The same without zeros at its end, for round values: 10 µs.
const round = (label) => (x) => label(x).replace(/\.0+(?=\u202f)/, "");
// An axis label is short: 10 k, 2 M.
function short(x) {
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (x >= size) return +(x / size).toPrecision(3) + unit;
  return String(+x.toPrecision(3));
}
function timeLabel(ns, step) {
  if (ns === 0) return "0";
  const [size, unit] = step >= 1e9 ? [1e9, "s"] : step >= 1e6 ? (ns >= 1e9 ? [1e9, "s"] : [1e6, "ms"]) : step >= 1e3 ? (ns >= 1e9 ? [1e9, "s"] : ns >= 1e6 ? [1e6, "ms"] : [1e3, "µs"]) : [1, "ns"];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  return (ns / size).toFixed(Math.min(digits, 9)) + "\u202f" + unit;
}

// Round steps between two values, about `count` of them.
function ticks(low, high, count) {
  const raw = (high - low) / Math.max(1, count) || 1, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const out = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-9; at += step) out.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  return { at: out, step };
}
const countTicks = (high, count) => ticks(0, high, count).at.filter((t) => Number.isInteger(t));

const selected = () => report.ranks.map((_, rank) => rank).filter((rank) => !state.ranks || state.ranks.has(rank));
const isSelected = (rank) => !state.ranks || state.ranks.has(rank);
const rankWord = (rank) => "rank " + rank;

// "0-3, 7" as a set; null for all; undefined if it is neither.
function readRanks(text) {
  if (/^\s*(all)?\s*$/i.test(text)) return null;
  const set = new Set();
  for (const part of text.split(/[\s,]+/).filter(Boolean)) {
    const match = /^(\d+)(?:-(\d+))?$/.exec(part);
    if (!match) return undefined;
    const from = +match[1], to = +(match[2] ?? match[1]);
    if (to < from || to >= RANKS) return undefined;
    for (let rank = from; rank <= to; rank++) set.add(rank);
  }
  return set.size ? set : undefined;
}

// The tip follows the pointer over whatever has data-tip.
const tip = document.getElementById("tip");
function showTip(text, x, y) {
  if (!text) { tip.hidden = true; return; }
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, x + 14 + box.width > innerWidth ? x - 14 - box.width : x + 14) + "px";
  tip.style.top = Math.max(4, y + 14 + box.height > innerHeight ? y - 10 - box.height : y + 14) + "px";
}
document.addEventListener("pointermove", (event) => {
  const over = event.target.closest?.("[data-tip]");
  if (over) showTip(over.getAttribute("data-tip"), event.clientX, event.clientY);
  else if (!event.target.closest?.(".live")) showTip("");
});
addEventListener("scroll", () => showTip(""), { passive: true });

// Colours of canvases and ramps come from the style sheet, so that dark mode and print hold for them too.
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
function ramp(name) {
  const from = channels(colour("surface")), to = channels(colour(name));
  return (share) => {
    const part = share <= 0 ? 0 : 0.1 + 0.9 * Math.min(1, share);
    return "rgb(" + from.map((low, i) => Math.round(low + (to[i] - low) * part)).join(" ") + ")";
  };
}
// Ink that can be read on a colour.
function inkOn(rgb) {
  const [r, g, b] = rgb.match(/\d+/g).map((v) => (v / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.22 ? "#16161a" : "#ffffff";
}
const logShare = (value, most) => (value <= 0 || most <= 0 ? 0 : Math.log1p(value) / Math.log1p(most));

function sectionOf(id, title, lead) {
  const node = html("section", { id, "aria-labelledby": id + "-title" }, html("h2", { id: id + "-title" }, title), lead && html("p", { class: "lead" }, lead));
  document.getElementById("report").append(node);
  return node;
}

// A figure that is drawn anew whenever ranks, zoom or colours change. `draw` gets the width there is and gives nodes.
function figure(parent, caption, draw, extra) {
  const room = html("div", {});
  parent.append(html("figure", extra, html("figcaption", {}, caption), room));
  const redraw = () => room.replaceChildren(...[draw(Math.max(280, room.clientWidth || 900))].flat(Infinity).filter(Boolean));
  state.redraw.push(redraw);
  return redraw;
}

function picker(label, choices, changed) {
  const name = html("select", { onchange: () => changed(name.value) }, Object.entries(choices).map(([value, text]) => html("option", { value }, text)));
  return html("label", {}, label, " ", name);
}
function tickbox(label, on, changed) {
  const box = html("input", { type: "checkbox", checked: on, onchange: () => changed(box.checked) });
  return html("label", {}, box, " ", label);
}

// columns: [{title, text: bool, cell(row), bar(row) between 0 and 1}]; the first one is the row's header.
function table(caption, columns, rows, id) {
  const cell = (column, row, first) => {
    const value = column.cell(row);
    const kind = column.text ? "text" : null;
    if (column.bar) {
      const share = column.bar(row);
      return html("td", { class: "bar" }, html("span", { style: `width:${(70 * share).toFixed(1)}%`, "aria-hidden": "true" }), " ", value);
    }
    return first ? html("th", { scope: "row", class: kind }, value) : html("td", { class: kind ?? (value === "0" ? "zero" : null) }, value);
  };
  return html("div", { class: "scroll" }, html("table", { id }, caption && html("caption", {}, html("span", {}, caption)),
    html("thead", {}, html("tr", {}, columns.map((c) => html("th", { scope: "col", class: c.bar ? "bar" : c.text ? "text" : null }, c.title)))),
    html("tbody", {}, rows.map((row) => html("tr", {}, columns.map((c, i) => cell(c, row, i === 0)))))));
}
const asTable = (title, build) => {
  const room = html("div", {});
  return html("details", { ontoggle: (e) => { if (e.target.open) room.replaceChildren(build()); } }, html("summary", {}, title), room);
};
const none = (text) => html("p", { class: "none" }, text);
