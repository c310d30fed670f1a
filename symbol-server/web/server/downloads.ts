// SPDX-License-Identifier: Apache-2.0
// What a view's choice can be taken along as: the questions of the API with a format, and names for
// the files. Pure.

import type { Parameters } from "./api";
import { frameParameters, moduleParameters, sampleParameters, topParameters, treeParameters, zoomParameters, type State } from "../shell/state";
import { splitPath } from "../graph/path";
import { timeOf } from "../text/time";
import { diffParameters } from "../views/diff/diff_parameters";

export interface Download {
  text: string;
  hint: string; // what it is good for
  file: string; // name
  resource: string;
  parameters: Parameters;
}

interface Format {
  format: string;
  ending: string;
  text: string;
  hint: string;
}

const HTML = { format: "html", ending: "html", text: "HTML", hint: "one file to look at without a network" };
const SVG = { format: "svg", ending: "svg", text: "SVG", hint: "a picture" };
const PPROF = { format: "pprof", ending: "pb.gz", text: "pprof", hint: "go tool pprof; whole stacks, nothing cut" };
const SPEEDSCOPE = { format: "speedscope", ending: "speedscope.json", text: "speedscope", hint: "for speedscope" };
const FOLDED = { format: "folded", ending: "folded", text: "folded", hint: "a stack and its value a line" };
const CSV = { format: "csv", ending: "csv", text: "CSV", hint: "for spreadsheets" };
const MD = { format: "md", ending: "md", text: "Markdown", hint: "a report for people and chats" };
const JSON_ = { format: "json", ending: "json", text: "JSON", hint: "as the API answers" };

const SECONDS = /\.\d+Z$/;
const NAME_PART = 60; // characters of the selection in a file's name

// 2026-11-23T0610Z, with seconds where there are some, as file names of all systems may hold it.
function stamp(time: string, now: number): string {
  const ms = timeOf(time, now);
  return Number.isFinite(ms) && Math.abs(ms) < 8e15
    ? new Date(ms).toISOString().replace(SECONDS, "Z").replace(/(?<=T..):(..):(?:00)?/, "$1")
    : "time";
}

// Type, selection and time, without anything that a file system or a shell takes for more than a letter.
export function fileName(state: State, what: string, ending: string, now: number): string {
  const chosen = [state.process, state.service, state.host, state.match, state.trace_id]
    .map((text) => text.replace(/[^A-Za-z0-9._-]+/g, "_").replace(/^[._-]+|[_]+$/g, ""))
    .filter((text) => text !== "")
    .join("-")
    .slice(0, NAME_PART);
  const type = state.type.replace(/[^A-Za-z0-9_-]+/g, "_").slice(0, NAME_PART);
  const parts = ["farflame", type, what, chosen, stamp(state.from, now), stamp(state.until, now)];
  return parts.filter((part) => part !== "").join("_") + "." + ending;
}

// state: a snapshot, see snapshot.ts, so that several files of one picture are of the same time.
export function downloadsOf(state: State, now: number): Map<string, Download[]> {
  const files = (what: string, resource: string, parameters: Parameters, formats: Format[]): Download[] =>
    formats.map(({ format, ending, text, hint }) => ({
      text,
      hint,
      file: fileName(state, what, ending, now),
      resource,
      parameters: { ...parameters, ...(format === "html" ? { errors: "1" } : {}), format },
    }));
  // Of resources that answer in nothing else, and take no format.
  const plainJson = (resource: string, parameters: Parameters): Download => {
    const { text, hint, ending } = JSON_;
    return { text, hint, file: fileName(state, resource, ending, now), resource, parameters };
  };
  const functions = (zoom: Parameters) => files("functions", "top", { ...topParameters(state), ...zoom }, [CSV, MD, JSON_]);
  switch (state.page) {
    case "graph": {
      const whole = state.invert === "1" || state.recursion !== "" ? [] : [PPROF]; // of stacks, which have one direction and all frames
      const formats = [HTML, SVG, ...whole, SPEEDSCOPE, FOLDED, CSV, MD, JSON_];
      const zoom = zoomParameters(state);
      const of = zoom.root === undefined ? "" : ` of ${splitPath(state.zoom).at(-1)}`;
      return new Map([
        [`Flame graph${of}`, files("", "flamegraph", { ...treeParameters(state), ...zoom }, formats)],
        [`Functions${of}`, functions(zoom)],
      ]);
    }
    case "diff":
      return new Map([["Comparison", files("diff", "diff", diffParameters(state, now), [SVG, FOLDED, CSV, MD, JSON_])]]);
    case "time": {
      const parameters = { ...moduleParameters(state), value: state.value, group_by: state.group_by };
      const byFunction = { ...frameParameters(state), by: "function", sort: state.sort === "total" ? "total" : "self", limit: "500" };
      return new Map([
        ["Time line", files("timeline", "timeline", parameters, [CSV, JSON_])],
        ["Functions over time", files("functions", "heatmap", byFunction, [CSV, JSON_])],
      ]);
    }
    case "wall": {
      const parameters = { ...sampleParameters({ ...state, value: "value" }), group_by: state.group_by };
      const of = (type: string) => files(type, "timeline", { ...parameters, type }, [CSV, JSON_]);
      return new Map([["On the CPU", of("on-cpu")], ["Waited", of("off-cpu")]]);
    }
    case "modules":
      return new Map([["Modules", [plainJson("modules", moduleParameters(state))]]]);
    case "agents":
      return new Map([["Agents", [plainJson("agents", {})]]]);
    case "overview":
      return new Map([["Functions", functions({})]]);
    default:
      return new Map();
  }
}
