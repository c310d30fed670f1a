// SPDX-License-Identifier: Apache-2.0
// The page of format=html: a flame graph and its functions, from the data that lies in the page.

import type { FlameAnswer, TopFunction } from "../server/api";
import { HoverCard } from "../graph/details";
import { byId, el } from "../widgets/dom";
import { FlameGraph } from "../graph/flamegraph";
import { formatCount, formatPercent, formatRange, formatSampled, formatShare, formatValue } from "../text/format";
import { Graph } from "../graph/graph";
import { compilePattern, findFrames, matchNames } from "../graph/search";
import { listenToKeys } from "../shell/keyboard";
import type { KeyBinding } from "../shell/view";
import { FlameSteps, inwards, outwards } from "../views/flame/flame_steps";
import { collapseRecursion, type Recursion } from "./recursion";
import { copyText } from "../widgets/copy";

const ROWS = 200; // of the table: more are found by its filter

interface Profile {
  graph: FlameAnswer;
  match: string;
  functions: TopFunction[];
  function_count: number;
}

const profile = JSON.parse(byId("profile").textContent ?? "") as Profile;
const answer = profile.graph;
const whole = answer.accounting.value;
let graph = new Graph(answer);
const card = new HoverCard();
const box = byId<HTMLInputElement>("search");
let zoomed = 0;
let selected = -1;
let at = -1; // the match that was gone to
let recursion: Recursion = "";
let found: Uint8Array | null = null;
let byTotal = false;

const flame = new FlameGraph(byId("flame"), {
  hover: (node, x, y) => {
    if (node >= 0) {
      card.show(graph, node, x, y);
    } else {
      card.hide();
    }
  },
  zoom: (node) => zoom(node),
  select: (node) => select(node),
  menu: () => undefined,
});

const steps = new FlameSteps(flame, select);

// What is known of it is shown beside it.
function select(node: number): void {
  selected = node;
  flame.select(node);
  document.body.dataset.selected = node < 0 ? "" : graph.nameOf(node);
  if (node < 0) {
    card.hide();
    return;
  }
  flame.reveal(node);
  const { left, top } = flame.place(node);
  card.show(graph, node, left + 12, top + 20);
}

function zoom(node: number): void {
  zoomed = node;
  selected = node === 0 ? -1 : node;
  card.hide();
  flame.show(graph, node, selected);
  document.body.dataset.zoom = graph.pathOf(node).join(";");
  trail();
  tell();
}

function trail(): void {
  byId("trail").replaceChildren(
    ...graph.ancestorsOf(zoomed).map((node) => {
      const button = el("button", { type: "button" }, graph.nameOf(node));
      button.addEventListener("click", () => zoom(node));
      return button;
    }),
  );
}

function zoomBy(node: number): void {
  if (node >= 0) {
    zoom(node);
  }
}

function next(step: 1 | -1): void {
  const nodes = found === null ? [] : findFrames(graph, found, 0).nodes();
  if (nodes.length === 0) {
    return;
  }
  at = at < 0 ? (step > 0 ? 0 : nodes.length - 1) : (at + step + nodes.length) % nodes.length;
  const seen = flame.zoomToSee(graph, nodes[at], zoomed);
  if (seen !== zoomed) {
    zoom(seen);
  }
  select(nodes[at]);
}

// Recursion as it is, direct or all collapsed; the zoom stays where its frame is still there.
function collapse(): void {
  const path = graph.pathOf(zoomed);
  recursion = recursion === "" ? "direct" : recursion === "direct" ? "all" : "";
  graph = new Graph(collapseRecursion(answer, recursion));
  document.body.dataset.recursion = recursion;
  zoom(Math.max(0, graph.find(path)));
  search(box.value);
}

function copy(text: (node: number) => string): void {
  if (selected >= 0) {
    void copyText(text(selected));
  }
}

const KEYS: KeyBinding[] = [
  { keys: ["ArrowUp"], does: "caller", yields: true, run: () => steps.move(graph, "parent", selected, zoomed) },
  { keys: ["ArrowDown"], does: "widest callee", yields: true, run: () => steps.move(graph, "child", selected, zoomed) },
  { keys: ["ArrowLeft"], does: "left neighbour", yields: true, run: () => steps.move(graph, "left", selected, zoomed) },
  { keys: ["ArrowRight"], does: "right neighbour", yields: true, run: () => steps.move(graph, "right", selected, zoomed) },
  { keys: ["Enter"], does: "zoom into the selected frame", yields: true, run: () => zoomBy(selected) },
  { keys: ["Escape"], does: "zoom out one step", run: () => zoomBy(outwards(graph, zoomed)) },
  { keys: ["Home", "0"], does: "all of it", run: () => zoom(0) },
  { keys: ["+", "=", "w"], does: "zoom in one step, towards the selected frame", run: () => zoomBy(inwards(graph, zoomed, selected)) },
  { keys: ["-"], does: "zoom out one step", run: () => zoomBy(outwards(graph, zoomed)) },
  { keys: ["k"], does: "recursion: as it is, direct or all collapsed", run: collapse },
  { keys: ["/"], does: "search", run: () => box.focus() },
  { keys: ["n"], does: "next match", run: () => next(1) },
  { keys: ["N"], does: "previous match", run: () => next(-1) },
  { keys: ["c"], does: "copy the selected function's name", run: () => copy((node) => graph.nameOf(node)) },
  { keys: ["C"], does: "copy its stack as text", run: () => copy((node) => graph.pathOf(node).join("\n")) },
  { keys: ["t"], does: "table by own value or with callees", run: () => byId(byTotal ? "by-self" : "by-total").click() },
  { keys: ["r"], does: "all as it was: no search, no zoom", run: () => byId("reset").click() },
];

function tell(): void {
  if (found === null) {
    byId("search-result").textContent = "";
    return;
  }
  const matches = findFrames(graph, found, zoomed);
  const count = matches.nodes().filter((node) => graph.isInside(node, zoomed)).length;
  byId("search-result").textContent =
    `${graph.holdsCut(0) ? "at least " : ""}${formatPercent(matches.value, graph.total[zoomed])}` +
    `${zoomed === 0 ? "" : " of the zoom"} in ${formatCount(count)} ` +
    (count === 1 ? "frame" : "frames");
}

function search(text: string): void {
  const pattern = compilePattern(text);
  found = pattern === null ? null : matchNames(graph, pattern.expression);
  at = -1;
  flame.highlight(found);
  tell();
  table();
}

function rowOf(row: TopFunction): HTMLElement {
  const place = row.file === "" ? "" : row.line > 0 ? `${row.file}:${row.line}` : row.file;
  const name = el("button", { type: "button", title: row.signature ?? row.name }, row.name);
  name.addEventListener("click", () => {
    box.value = `^${row.name.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}$`;
    search(box.value);
  });
  const number = (text: string) => el("td", { class: "number" }, text);
  const { error } = answer.accounting;
  return el(
    "tr",
    {},
    number(formatShare(row.self, whole, row.self_error, error)),
    number(formatSampled(row.self, row.self_error, answer.unit)),
    number(formatShare(row.total, whole, row.total_error, error)),
    el("td", { class: "name" }, name),
    el("td", { class: "quiet" }, place),
    el("td", { class: "quiet", title: row.build_id }, row.module),
  );
}

function table(): void {
  const pattern = compilePattern(box.value)?.expression ?? null;
  const rows = profile.functions
    .filter((row) => pattern === null || pattern.test(row.name))
    .sort((a, b) => (byTotal ? b.total - a.total : b.self - a.self));
  byId("functions").replaceChildren(...rows.slice(0, ROWS).map(rowOf));
  byId("function-count").textContent =
    `${formatCount(Math.min(ROWS, rows.length))} of ${formatCount(profile.function_count)} functions`;
}

function accountingRows(): [string, string][] {
  const a = answer.accounting;
  const rows: [string, string][] = [
    ["total", `${formatSampled(whole, a.error, answer.unit)} in ${formatCount(a.samples)} samples`],
    ["hosts", formatCount(a.hosts)],
    ["taken by these hosts", `${formatCount(a.taken)} samples`],
    ["lost", `${formatCount(a.lost)} (${formatPercent(a.lost, a.taken)})`],
  ];
  for (const [reason, count] of Object.entries(a.lost_by)) {
    if (count !== 0) {
      rows.push([`lost by ${reason}`, formatCount(count)]);
    }
  }
  rows.push([
    "incomplete stacks",
    `${formatCount(a.unwind_incomplete)} (${formatPercent(a.unwind_incomplete, a.samples)})`,
  ]);
  for (const { reason, samples, modules } of a.incomplete_by) {
    const places = modules.map((m) => `${m.name || m.build_id} ${formatCount(m.samples)}`);
    rows.push([reason, formatCount(samples) + (places.length ? `: ${places.join(", ")}` : "")]);
  }
  rows.push(
    ["in functions without names", `${formatValue(a.nameless_value, answer.unit)} (${formatPercent(a.nameless_value, whole)})`],
    ["with a frame without a name", `${formatCount(a.unsymbolized)} (${formatPercent(a.unsymbolized, a.samples)})`],
    ["cut by max_nodes", formatPercent(a.cut - (a.cut_by_memory ?? 0), whole)],
  );
  if (a.cut_by_memory !== undefined) {
    rows.push(["lightest stacks, no memory for them", formatPercent(a.cut_by_memory, a.value)]);
  }
  return rows;
}

function head(): void {
  const title = `${answer.type}, ${formatValue(whole, answer.unit)}`;
  document.title = `${title} – farflame`;
  byId("title").textContent = title;
  byId("range").textContent = formatRange(answer.from, answer.until);
  byId("match").textContent = profile.match;
  byId("accounting").replaceChildren(
    ...accountingRows().map(([term, text]) => el("div", {}, el("dt", {}, term), el("dd", {}, text))),
  );
}

function setTheme(dark: boolean): void {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  flame.setTheme(dark);
}

function listen(): void {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", () => setTheme(dark.matches));
  setTheme(dark.matches);
  box.addEventListener("input", () => search(box.value));
  byId("reset").addEventListener("click", () => {
    box.value = "";
    search("");
    zoom(0);
  });
  for (const [id, total] of [
    ["by-self", false],
    ["by-total", true],
  ] as const) {
    byId(id).addEventListener("click", () => {
      byTotal = total;
      table();
    });
  }
  box.addEventListener("keydown", ({ key, shiftKey }) => {
    if (key === "Escape") {
      byId("reset").click();
      box.blur();
    } else if (key === "Enter") {
      next(shiftKey ? -1 : 1);
    }
  });
  listenToKeys({ bindings: () => KEYS, go: () => false });
  byId("keys").replaceChildren(
    ...KEYS.map(({ keys, does }) => el("div", {}, el("dt", {}, keys.join(" ")), el("dd", {}, does))),
  );
}

head();
listen();
zoom(0);
table();
document.body.dataset.shown = "1";
