// SPDX-License-Identifier: Apache-2.0
// The text of a selector, {service="api",host!~"a|b"}, and the values of one label that are picked in it: these only,
// and not those. What people wrote themselves stays as they wrote it. Pure; the server's reading is query/selector.h.

export interface Picks {
  only: readonly string[]; // none: all
  not: readonly string[];
}

export const NO_PICKS: Picks = { only: [], not: [] };

interface Matcher {
  label: string;
  op: string; // = != =~ !~
  value: string;
  text: string; // as it was written
}

const ESCAPES: Record<string, string> = { n: "\n", t: "\t", r: "\r" };
const MATCHER = /\s*("?)([A-Za-z_][\w.]*)\1\s*(=~|!~|!=|=)\s*(?:"((?:[^"\\]|\\["'\\ntr])*)"|'((?:[^'\\]|\\["'\\ntr])*)'|`([^`]*)`)\s*(,|$)/y;

export function quote(value: string): string {
  return '"' + value.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n") + '"';
}

// Matchers as they were typed, with braces or without.
export function bare(selector: string): string {
  return selector.trim().replace(/^\{/, "").replace(/\}$/, "").trim();
}

export function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

// null: it is not understood; the server says why.
export function matchersIn(selector: string): Matcher[] | null {
  const text = bare(selector);
  const out: Matcher[] = [];
  MATCHER.lastIndex = 0;
  while (MATCHER.lastIndex < text.length) {
    const found = MATCHER.exec(text);
    if (found === null) {
      return null;
    }
    const [whole, , label, op, double, single, raw, end] = found;
    const value = raw ?? (double ?? single).replace(/\\(.)/g, (_, c: string) => ESCAPES[c] ?? c);
    out.push({ label, op, value, text: whole.slice(0, whole.length - end.length).trim() });
  }
  return out;
}

// The texts of which an expression is the choice; null: it is more than that.
function alternatives(pattern: string): string[] | null {
  const texts = [""];
  for (const part of pattern.match(/\\[^]|[^]/g) ?? []) {
    if (part === "|") {
      texts.push("");
    } else {
      texts[texts.length - 1] += part.replace(/^\\(?=[\\^$.*+?()[\]{}|])/, "");
    }
  }
  return texts.map(escapePattern).join("|") === pattern ? texts : null;
}

function valuesOf({ op, value }: Matcher): string[] | null {
  return op.endsWith("~") ? alternatives(value) : [value];
}

const IDS = ["trace_id", "span_id"]; // of samples, but no labels that have values to pick from

// Those that are picks of that label.
function ownOf(matchers: Matcher[], label: string): { only: Matcher | undefined; not: Matcher[] } {
  const own = matchers.filter((matcher) => matcher.label === label && !IDS.includes(label) && valuesOf(matcher) !== null);
  return { only: own.find(({ op }) => op.startsWith("=")), not: own.filter(({ op }) => op.startsWith("!")) };
}

export function picksIn(selector: string, label: string): Picks {
  const { only, not } = ownOf(matchersIn(selector) ?? [], label);
  return { only: only === undefined ? [] : (valuesOf(only) ?? []), not: not.flatMap((matcher) => valuesOf(matcher) ?? []) };
}

export function withPicks(selector: string, label: string, { only, not }: Picks): string {
  const matchers = matchersIn(selector);
  const own = ownOf(matchers ?? [], label);
  const others = matchers?.filter((matcher) => matcher !== own.only && !own.not.includes(matcher)).map(({ text }) => text) ?? [bare(selector)];
  const written = (values: readonly string[], one: string, several: string) =>
    values.length === 0 ? [] : [label + (values.length === 1 ? one + quote(values[0]) : several + quote(values.map(escapePattern).join("|")))];
  return [...others, ...written(only, "=", "=~"), ...written(not, "!=", "!~")].join(",");
}

// The labels of which something is picked, and the matchers that are no picks.
export function contentsOf(selector: string): { labels: string[]; others: string[] } {
  const matchers = matchersIn(selector);
  if (matchers === null) {
    return { labels: [], others: [bare(selector)] };
  }
  const picks = new Set<Matcher>();
  for (const { label } of matchers) {
    const { only, not } = ownOf(matchers, label);
    [...(only === undefined ? [] : [only]), ...not].forEach((matcher) => picks.add(matcher));
  }
  const others = matchers.filter((matcher) => !picks.has(matcher)).map(({ text }) => text);
  return { labels: [...new Set([...picks].map(({ label }) => label))], others };
}

// text: one of the others.
export function withoutMatcher(selector: string, text: string): string {
  return (matchersIn(selector) ?? []).filter((matcher) => matcher.text !== text).map((matcher) => matcher.text).join(",");
}

export function isPicked({ only, not }: Picks, value: string): boolean {
  return (only.length === 0 || only.includes(value)) && !not.includes(value);
}

// "api-server", "not web-1", "3 picked"
export function pickWords({ only, not }: Picks): string {
  const words = [...only.map((value) => value || "none"), ...not.map((value) => `not ${value || "none"}`)];
  return words.length > 2 ? `${words.length} picked` : words.join(", ");
}
