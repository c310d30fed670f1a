// SPDX-License-Identifier: Apache-2.0
// What the user chose, and its one place: the part of the address after '#', so that a link shows
// another person the same picture. Values at their default are left out.

import type { Parameters } from "../server/api";
import { bare, escapePattern, matchersIn, NO_PICKS, picksIn, quote, withPicks, type Picks } from "./selector";

export interface State {
  page: string; // which view: shell/views.ts
  type: string;
  from: string; // as the API takes it: "now-1h", or unix milliseconds
  until: string;
  process: string; // "" is all
  service: string;
  host: string;
  match: string; // further matchers, without braces
  group_by: string;
  value: string; // "value" | "samples"
  focus: string; // regular expressions for the server
  ignore: string;
  hide: string;
  max_nodes: string;
  search: string; // regular expression for the page
  zoom: string; // path of frame names, see path.ts
  refresh: string; // seconds, "0" is off
  view: string; // "both" | "graph" | "table"
  colour: string; // "kind" | "module" | "language" | "age"
  sort: string; // of the table: "self" | "total" | "name"
  zone: string; // of all times shown: "" this browser's | "utc"
  exact: string; // "true": only samples with times of their own, to the millisecond
  base: string; // of a comparison, the other side's time: "before", "-1d", or "from..until"
  base_match: string; // its selector; "" is the same
  norm: string; // "per_second" | "share" | "raw"
  width: string; // of a comparison's frames: "larger" | "after" | "before"
  by: string; // rows of the overview: a label; "": services or processes, as it decides
  wall: string; // of the wall clock's frames, the width: "both" | "on" | "off"
  trace_id: string; // 32 hexadecimal digits; "" is all requests and none
  hide_kind: string; // kinds of frames that are left out, separated by commas
  idle: string; // of waits: "" folded by rule, "show"
  collapse: string; // of functions: "" overloads and instances apart, "name" those of one name joined
  hide_runtime: string; // of an interpreter's own frames: "" left out | "false"
  hide_module: string; // regular expression for the server: frames of these modules are left out
  only_module: string; // and those of all others
  build_id: string; // only stacks with a frame of that build
  base_build_id: string; // of a comparison's other side; "" is the same
  invert: string; // "1": leaves first
  recursion: string; // "" as it is | "direct" | "all" collapsed
  sandwich: string; // a function, instead of the flame graph its callers and callees
  row_find: string; // filter of those rows
  note: string; // of who shares it: above the picture, and in its title
  function_find: string; // of the functions beside the graph
  pinned: string; // path of the frame whose details stay, see path.ts
  modules: string; // listed: "nameless" | "used" | "all"
  module: string; // build-id of the one with its details shown
  module_find: string; // words
  module_order: string; // a column; "-" before it: the other way round
  agent: string; // host of the one with its details shown
  agent_find: string;
  agent_order: string;
}

export const DEFAULTS: Readonly<State> = {
  page: "overview",
  type: "on-cpu",
  from: "now-1h",
  until: "now",
  process: "",
  service: "",
  host: "",
  match: "",
  group_by: "process",
  value: "value",
  focus: "",
  ignore: "",
  hide: "",
  max_nodes: "", // as many as the screen shows
  search: "",
  zoom: "",
  refresh: "0",
  view: "both",
  colour: "kind",
  sort: "self",
  zone: "",
  exact: "",
  base: "before",
  base_match: "",
  norm: "per_second",
  width: "larger",
  by: "",
  wall: "both",
  trace_id: "",
  hide_kind: "",
  idle: "",
  collapse: "",
  hide_runtime: "",
  hide_module: "",
  only_module: "",
  build_id: "",
  base_build_id: "",
  invert: "",
  recursion: "",
  sandwich: "",
  row_find: "",
  note: "",
  function_find: "",
  pinned: "",
  modules: "nameless",
  module: "",
  module_find: "",
  module_order: "share",
  agent: "",
  agent_find: "",
  agent_order: "state",
};

// What leaves stacks or frames out.
export const FILTERS = ["focus", "ignore", "hide", "hide_kind", "hide_module", "only_module", "build_id"] as const;
const WAITS = ["off-cpu", "still-blocked"];
const FRAME_FILTERS = ["hide_kind", "hide_runtime", "hide_module", "only_module", "build_id"] as const;

const KEYS = Object.keys(DEFAULTS) as (keyof State)[];
const LIMIT = 16_384; // characters of one value; a longer one came from nobody's click

export function readState(hash: string): State {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const state: State = { ...DEFAULTS };
  for (const key of KEYS) {
    const value = given.get(key);
    if (value !== null && value.length <= LIMIT) {
      state[key] = value;
    }
  }
  const trace = traceIdOf(given.get("trace") ?? "");
  return trace === null ? state : { ...state, page: given.get("page") ?? "graph", trace_id: trace };
}

// What is typed, as the id of a trace; null: it is none.
export function traceIdOf(text: string): string | null {
  const id = text.trim().toLowerCase();
  return /^[0-9a-f]{32}$/.test(id) && /[1-9a-f]/.test(id) ? id : null;
}

// A search of the page: a trace's id leads to its stacks.
export function searchChange(text: string): Partial<State> {
  const trace = traceIdOf(text);
  return trace === null ? { search: text } : { page: "graph", trace_id: trace, search: "", zoom: "" };
}

export function writeState(state: State): string {
  const out = new URLSearchParams();
  for (const key of KEYS) {
    if (state[key] !== DEFAULTS[key]) {
      out.set(key, state[key]);
    }
  }
  const text = out.toString();
  return text === "" ? "" : "#" + text;
}

// Labels of which one value is a key of its own; all else that is picked is in match.
const OWN_KEYS = ["process", "service", "host"] as const;
type OwnKey = (typeof OWN_KEYS)[number];

function hasOwnKey(label: string): label is OwnKey {
  return (OWN_KEYS as readonly string[]).includes(label);
}

export function picksOf(state: State, label: string): Picks {
  const { only, not } = picksIn(state.match, label);
  return { only: hasOwnKey(label) && state[label] !== "" ? [state[label]] : only, not };
}

// The choice with these picks of the label.
export function pick(state: State, label: string, picks: Picks): Partial<State> {
  if (!hasOwnKey(label)) {
    return { match: withPicks(state.match, label, picks) };
  }
  const isOne = picks.only.length === 1 && picks.only[0] !== "";
  const rest = isOne ? { ...picks, only: [] } : picks;
  return { [label]: isOne ? picks.only[0] : "", match: withPicks(state.match, label, rest) };
}

// The choice without any of these labels.
export function without(state: State, labels: readonly string[]): State {
  return labels.reduce((out, label) => ({ ...out, ...pick(out, label, NO_PICKS) }), state);
}

function matchersOf(state: State): string[] {
  const parts = OWN_KEYS.filter((label) => state[label] !== "").map((label) => `${label}=${quote(state[label])}`);
  const own = bare(state.match);
  return own === "" ? parts : [...parts, own];
}

function braced(matchers: string[]): string {
  return matchers.length === 0 ? "" : `{${matchers.join(",")}}`;
}

// Whether everything that the selected hosts did is asked for.
export function isOfHosts(state: State): boolean {
  const matchers = matchersIn(selectorOf(state));
  return matchers !== null && matchers.every(({ label }) => label === "host") && STACK_FILTERS.every((key) => state[key] === "");
}

// The selector of all choices together, as the API's match= takes it; "" for everything.
export function selectorOf(state: State): string {
  return braced(matchersOf(state));
}

// The choice narrowed to what has these labels.
export function narrowTo(state: State, labels: Record<string, string>): Partial<State> {
  const out = { ...state };
  for (const [label, value] of Object.entries(labels)) {
    Object.assign(out, pick(out, label, { only: [value], not: [] }));
  }
  const keys = Object.keys(labels).filter(hasOwnKey);
  return { ...Object.fromEntries(keys.filter((key) => out[key] !== state[key]).map((key) => [key, out[key]])), match: out.match };
}

// The same of a comparison's other side, where it has a selector of its own.
export function narrowBase(state: State, labels: Record<string, string>): Partial<State> {
  const narrow = (text: string, [label, value]: [string, string]) => withPicks(text, label, { only: [value], not: [] });
  return state.base_match === "" ? {} : { base_match: `{${Object.entries(labels).reduce(narrow, state.base_match)}}` };
}

// The parameters that select samples, shared by all questions about one picture.
export function sampleParameters(state: State): Parameters {
  const out: Parameters = { type: state.type, from: state.from, until: state.until };
  const trace = state.trace_id === "" ? [] : [`trace_id=${quote(state.trace_id)}`];
  const selector = braced([...matchersOf(state), ...trace]);
  if (selector !== "") {
    out.match = selector;
  }
  for (const key of ["focus", "ignore", "hide"] as const) {
    if (state[key] !== "") {
      out[key] = state[key];
    }
  }
  if (state.exact !== "") {
    out.exact = state.exact;
  }
  if (state.value !== DEFAULTS.value) {
    out.value = state.value;
  }
  return out;
}

// And of the frames of their stacks, for whoever is answered with frames.
export function frameParameters(state: State): Parameters {
  const out = sampleParameters(state);
  for (const key of FRAME_FILTERS) {
    if (state[key] !== "") {
      out[key] = state[key];
    }
  }
  if (isOfWaits(state.type) && state.idle !== "show") {
    out.idle = "fold";
  }
  if (state.collapse === "name") {
    out.collapse = "name";
  }
  return out;
}

function isOfWaits(type: string): boolean {
  return WAITS.includes(type);
}

// For the status line, which has the switch; undefined: the type has none.
export function idleSwitch(
  state: State,
  change: (changed: Partial<State>) => void,
): { isShown: boolean; toggle: () => void } | undefined {
  return !isOfWaits(state.type) ? undefined : { isShown: state.idle === "show", toggle: () => change({ idle: state.idle === "show" ? "" : "show", zoom: "" }) };
}

export function flameParameters(state: State): Parameters {
  const out = { ...frameParameters(state), group_by: state.group_by };
  return state.max_nodes === "" ? out : { ...out, max_nodes: state.max_nodes };
}

// For who is answered with frames of whole stacks, laid out or counted.
export function recursionParameter({ recursion }: State): Parameters {
  return recursion === "direct" || recursion === "all" ? { recursion } : {};
}

// How frames of one stack are laid out; zoomed frames are paths of these.
function shapeParameters(state: State): Parameters {
  return { ...(state.invert === "1" ? { invert: "1" } : {}), ...recursionParameter(state) };
}

export function treeParameters(state: State): Parameters {
  return { ...flameParameters(state), ...shapeParameters(state) };
}

// The zoomed frame, for other questions about it.
export function zoomParameters(state: State): Parameters {
  return state.zoom === "" ? {} : { group_by: state.group_by, root: state.zoom, ...shapeParameters(state) };
}

export const TOP_LIMIT = 20_000; // functions asked for; the table says when there are more

export function topParameters(state: State): Parameters {
  const sort = state.sort === "total" ? "total" : "self";
  return { ...frameParameters(state), ...recursionParameter(state), sort, limit: String(TOP_LIMIT) };
}

// For questions that know no expressions over frames and no traces, as that for modules.
export function moduleParameters(state: State): Parameters {
  const { type, from, until } = state;
  const match = selectorOf(state);
  return match === "" ? { type, from, until } : { type, from, until, match };
}

export const STACK_FILTERS = ["focus", "ignore"] as const;

// And of stacks by their functions, for whoever answers with values over time.
export function timelineParameters(state: State): Parameters {
  const out = moduleParameters(state);
  for (const key of STACK_FILTERS) {
    if (state[key] !== "") {
      out[key] = state[key];
    }
  }
  return out;
}

const NARROWING = ["process", "service", "host", "match", "exact", "trace_id", ...FILTERS] as const;

export function hasFilters(state: State): boolean {
  return NARROWING.some((key) => state[key] !== "");
}

// What takes all of them away.
export function noFilters(): Partial<State> {
  return Object.fromEntries(NARROWING.map((key) => [key, ""]));
}

// A regular expression that matches exactly this text, for RE2 and JavaScript alike.
export function exactly(text: string): string {
  return "^" + escapePattern(text) + "$";
}

// The text that such an expression matches; any other as it is.
export function plain(expression: string): string {
  const text = expression.replace(/^\^|\$$/g, "").replace(/\\([\\^$.*+?()[\]{}|])/g, "$1");
  return exactly(text) === expression ? text : expression;
}
