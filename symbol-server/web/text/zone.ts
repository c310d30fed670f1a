// SPDX-License-Identifier: Apache-2.0
// The time zone that all times are shown and read in: this browser's, or UTC as all readers of a link have it.

let isUtc = false;

export function setZone(zone: string): void {
  isUtc = zone === "utc";
}

// What is added to unix milliseconds for the fields of a UTC date to be those of the zone, which changes twice a year.
export function zoneOffset(ms: number): number {
  return isUtc ? 0 : -new Date(ms).getTimezoneOffset() * 60_000;
}

// "2026-11-23T23:43:00", without a zone; "" for what is no time.
export function zoned(ms: number): string {
  const shifted = new Date(ms + zoneOffset(ms));
  return Number.isNaN(shifted.getTime()) ? "" : shifted.toISOString().slice(0, -5);
}

// Unix milliseconds of such a text, NaN for another.
export function fromZoned(text: string): number {
  return new Date(isUtc ? `${text}Z` : text).getTime();
}

// "UTC", "UTC+05:30"
export function zoneName(ms: number): string {
  const minutes = zoneOffset(ms) / 60_000;
  if (!(minutes !== 0)) {
    return "UTC";
  }
  const two = (n: number) => String(Math.floor(n)).padStart(2, "0");
  return `UTC${minutes < 0 ? "−" : "+"}${two(Math.abs(minutes) / 60)}:${two(Math.abs(minutes) % 60)}`;
}
