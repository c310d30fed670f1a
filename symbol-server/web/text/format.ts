// SPDX-License-Identifier: Apache-2.0
// Numbers, times and sizes as people read them.

import { zoned, zoneName } from "./zone";

const counts = new Intl.NumberFormat("en");

export function formatCount(n: number): string {
  return counts.format(n);
}

function significant(n: number): string {
  const digits = Math.abs(n) >= 100 ? 0 : Math.abs(n) >= 10 ? 1 : 2;
  return n.toFixed(digits);
}

export function formatPercent(part: number, whole: number): string {
  if (whole <= 0 || part <= 0) {
    return "0 %";
  }
  const percent = (100 * part) / whole;
  if (percent < 0.01) {
    return "< 0.01 %";
  }
  // "100 %" only for all of it.
  if (percent > 99.99 && part < whole) {
    return "> 99.99 %";
  }
  return (
    (percent >= 99.995 ? "100" : percent >= 10 ? percent.toFixed(1) : percent.toFixed(2)) + " %"
  );
}

// "± 0.4" in the digits of a share's text, rounded up; off: in per cents.
function offText(text: string, off: number): string {
  const digits = text.indexOf(" ") - text.indexOf(".") - 1;
  return `± ${(Math.max(1, Math.ceil(off * 10 ** digits - 1e-9)) / 10 ** digits).toFixed(digits)}`;
}

// "12.3 % ± 0.4" of a share of 1 whose own ± is known.
export function formatOwnShare(share: number, error: number | undefined): string {
  const text = formatPercent(share, 1);
  return error === undefined || !/^\d+\./.test(text) ? text : `${text} ${offText(text, 100 * error)}`;
}

// "± 0.4" of a share, "" where there is none: errors as the API has them (95 %), of the part and of the whole that it is in.
export function shareError(part: number, whole: number, error: number | undefined, wholeError: number | undefined): string {
  const text = formatPercent(part, whole);
  const share = part / whole;
  if (error === undefined || wholeError === undefined || !(share > 0) || share >= 1 || !/^\d/.test(text)) {
    return "";
  }
  const squares = error * error * (1 - 2 * share) + share * share * wholeError * wholeError;
  return offText(text, (100 * Math.sqrt(Math.max(0, squares))) / whole);
}

// "12.3 % ± 0.4"
export function formatShare(part: number, whole: number, error: number | undefined, wholeError: number | undefined): string {
  return `${formatPercent(part, whole)} ${shareError(part, whole, error, wholeError)}`.trimEnd();
}

// Units from the smallest, each with the value from which on the next is meant. As it is shown: 999.9 ms
// are 1 s.
type Unit = [name: string, size: number, until: number];

const TIMES: Unit[] = [
  ["µs", 1e3, 1000],
  ["ms", 1e6, 1000],
  ["s", 1e9, 120],
  ["min", 60e9, 120],
  ["h", 3600e9, 48],
  ["d", 86400e9, Infinity],
];
const SIZES: Unit[] = ["KiB", "MiB", "GiB", "TiB", "PiB"].map((name, i) => [name, 1024 ** (i + 1), i < 4 ? 1024 : Infinity]);

function inUnits(value: number, units: Unit[]): string {
  const fits = ([, size, until]: Unit) => Number(significant(value / size)) < until;
  const [name, size] = units.find(fits) ?? units[units.length - 1];
  return `${significant(value / size)} ${name}`;
}

function formatNanoseconds(ns: number): string {
  if (ns <= 0) {
    return "0 s";
  }
  return ns < 1000 ? `${ns} ns` : inUnits(ns, TIMES);
}

export function formatSize(bytes: number): string {
  return bytes < 1024 ? `${bytes} B` : inUnits(bytes, SIZES);
}

// unit as the API names it: "nanoseconds", "bytes", or a count.
export function formatValue(value: number, unit: string): string {
  switch (unit) {
    case "nanoseconds":
      return formatNanoseconds(value);
    case "bytes":
      return formatSize(value);
    case "samples":
    case "count":
      return `${formatCount(value)} ${value === 1 ? "sample" : "samples"}`;
    default:
      return `${formatCount(value)} ${unit}`;
  }
}

// "3.20 s ± 0.11 s"
export function formatSampled(value: number, error: number | undefined, unit: string): string {
  const text = formatValue(value, unit);
  return error === undefined || value <= 0 ? text : `${text} ± ${formatValue(error, unit)}`;
}

// Nanoseconds spent in a range of so many milliseconds: "avg 0.410 CPUs", or "of 2 CPUs" where it is known
// how many there are.
export function formatCpus(ns: number, range_ms: number, all?: number): string {
  const unit = all === undefined ? "CPUs" : `of ${formatCount(all)} ${all === 1 ? "CPU" : "CPUs"}`;
  if (range_ms <= 0 || ns <= 0) {
    return `0 ${unit}`;
  }
  const cpus = ns / 1e6 / range_ms;
  return cpus < 0.0005
    ? `avg < 0.001 ${unit}`
    : `avg ${cpus >= 10 ? cpus.toFixed(1) : cpus.toFixed(3)} ${unit}`;
}

// As ISO 8601 has it, in the zone that is shown.
export function dayText(ms: number): string {
  return zoned(ms).slice(0, 10);
}

export function clockText(ms: number): string {
  return zoned(ms).slice(11);
}

export function formatRange(from: number, until: number): string {
  const day = dayText(until);
  return `${dayText(from)} ${clockText(from)} – ${day === dayText(from) ? "" : `${day} `}${clockText(until)} ${zoneName(until)}`;
}

// One time of the last days: with its date where it is not today.
export function formatTime(ms: number): string {
  const day = dayText(ms);
  return day === dayText(Date.now()) ? clockText(ms) : `${day} ${clockText(ms)}`;
}

// Lengths of time from the longest, each with the next smaller one: "2 d 5 h", "5 min 51 s".
const SPANS: [string, number, string, number][] = [
  ["d", 86_400_000, "h", 3_600_000],
  ["h", 3_600_000, "min", 60_000],
  ["min", 60_000, "s", 1000],
];

// How long something took or lasts, as people say it.
export function formatSpan(ms: number): string {
  if (ms < 10_000) {
    return formatNanoseconds(ms * 1e6);
  }
  const found = SPANS.find(([, size, , part]) => Math.round(ms / part) * part >= 2 * size);
  if (found === undefined) {
    return `${Math.round(ms / 1000)} s`;
  }
  const [name, size, small, part] = found;
  const parts = Math.round(ms / part);
  const whole = Math.floor((parts * part) / size);
  const rest = parts - (whole * size) / part;
  return rest === 0 ? `${whole} ${name}` : `${whole} ${name} ${rest} ${small}`;
}

export function formatAge(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  return seconds < 120 ? `${seconds} s ago` : `${formatSpan(ms)} ago`;
}

// Where the last part of a qualified name begins and ends: of "mod::Class<T>::run(int)" that is
// "run". What stands inside <>, () or [] is skipped, so that "f(std::string)" gives "f"; Go's
// receivers, as in "runtime.(*mheap).alloc", are no parameters. Operators and closures are left as
// they are.
function lastPart(name: string): [number, number] {
  let depth = 0;
  let start = 0;
  let end = name.length;
  if (name.includes("operator")) {
    return [0, end];
  }
  for (let i = 0; i < name.length; i++) {
    const c = name[i];
    if (c === "<" || c === "(" || c === "[") {
      if (depth++ === 0 && c !== "[" && i > start && end === name.length && name[i - 1] !== ".") {
        end = i;
      }
    } else if ((c === ">" && name[i - 1] !== "-") || c === ")" || c === "]") {
      depth = Math.max(0, depth - 1);
    } else if (depth === 0 && c === ":" && name[i + 1] === ":") {
      start = i + 2;
      end = name.length;
    }
  }
  return end > start && name[start] !== "{" ? [start, end] : [0, name.length];
}

// Shorter forms of a name that still say what it is, the longest first.
export function shorterNames(name: string): string[] {
  const collapsed = collapseArguments(name);
  const [start, end] = lastPart(collapsed);
  return [collapsed, collapsed.slice(0, end), collapsed.slice(start, end)];
}

const COLLAPSE_FROM = 4; // characters between < and > that are worth leaving out
const OPERATOR = /\boperator *(?:<=>|<<=|>>=|->\*|<<|>>|<=|>=|->|<|>)/y; // one whose name is no bracket

// "a::B<std::vector<int>, C>::run(int)" → "a::B<…>::run(int)". Operators such as < and -> stay.
export function collapseArguments(name: string): string {
  let out = "";
  let depth = 0;
  let from = 0; // where the outermost < stands
  for (let i = 0; i < name.length; i++) {
    const c = name[i];
    OPERATOR.lastIndex = i;
    const operator = c === "o" ? OPERATOR.exec(name) : null;
    if (operator !== null) {
      out += depth === 0 ? operator[0] : "";
      i += operator[0].length - 1;
    } else if (c === "<" && (depth > 0 || (i > 0 && name[i - 1] !== "-" && name[i + 1] !== "<"))) {
      if (depth++ === 0) {
        from = i;
      }
    } else if (c === ">" && depth > 0 && name[i - 1] !== "-") {
      if (--depth === 0) {
        out += i - from > COLLAPSE_FROM ? "<…>" : name.slice(from, i + 1);
      }
    } else if (depth === 0) {
      out += c;
    }
  }
  return depth === 0 ? out : name;
}
