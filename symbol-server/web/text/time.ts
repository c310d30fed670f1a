// SPDX-License-Identifier: Apache-2.0
// Times as the address and the API write them. Pure.

export const MINUTE = 60_000;

const UNITS: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

// "90s", "15m", "1h", "7d" in milliseconds; NaN: it is none.
export function durationOf(text: string): number {
  const parts = /^(\d+)([smhdw])$/.exec(text);
  return parts === null ? NaN : Number(parts[1]) * UNITS[parts[2]];
}

// "now", "now-1h", unix seconds or milliseconds, RFC 3339, in unix milliseconds; NaN: it is none.
export function timeOf(text: string, now: number): number {
  if (text === "now") {
    return now;
  }
  if (text.startsWith("now-")) {
    return now - durationOf(text.slice(4));
  }
  if (/^\d+$/.test(text)) {
    const number = Number(text);
    return number < 1e11 ? number * 1000 : number;
  }
  return Date.parse(text);
}

// The other side's time of a comparison with from…until: "before" is as long, just before; "-1d" a
// day earlier; "A..B" these two. null: it cannot be understood.
export function baseRange(
  base: string,
  from: string,
  until: string,
  now: number,
): { from: number; until: number } | null {
  const begin = timeOf(from, now);
  const end = timeOf(until, now);
  let range = { from: begin - (end - begin), until: begin };
  if (base.startsWith("-")) {
    const back = durationOf(base.slice(1));
    range = { from: begin - back, until: end - back };
  } else if (base !== "before") {
    const [a, b] = base.split("..");
    range = { from: timeOf(a, now), until: timeOf(b ?? "", now) };
  }
  return Number.isNaN(range.from) || Number.isNaN(range.until) ? null : range;
}

const BY_SECOND_MS = 20 * MINUTE; // the server knows so much of the newest by the second

// Of a time line of that range, as the API takes it; else the server chooses.
export function stepParameter(from: string, until: string, now: number): Record<string, string> {
  return now - timeOf(from, now) <= BY_SECOND_MS && timeOf(until, now) > timeOf(from, now) ? { step: "1s" } : {};
}
