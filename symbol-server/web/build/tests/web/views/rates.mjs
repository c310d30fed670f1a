// text/format.ts
var counts = new Intl.NumberFormat("en");
function formatCount(n) {
  return counts.format(n);
}
function significant(n) {
  const digits = Math.abs(n) >= 100 ? 0 : Math.abs(n) >= 10 ? 1 : 2;
  return n.toFixed(digits);
}
var TIMES = [
  ["\xB5s", 1e3, 1e3],
  ["ms", 1e6, 1e3],
  ["s", 1e9, 120],
  ["min", 6e10, 120],
  ["h", 36e11, 48],
  ["d", 864e11, Infinity]
];
var SIZES = ["KiB", "MiB", "GiB", "TiB", "PiB"].map((name, i) => [name, 1024 ** (i + 1), i < 4 ? 1024 : Infinity]);
function inUnits(value, units) {
  const fits = ([, size2, until]) => Number(significant(value / size2)) < until;
  const [name, size] = units.find(fits) ?? units[units.length - 1];
  return `${significant(value / size)} ${name}`;
}
function formatNanoseconds(ns) {
  if (ns <= 0) {
    return "0 s";
  }
  return ns < 1e3 ? `${ns} ns` : inUnits(ns, TIMES);
}
function formatSize(bytes) {
  return bytes < 1024 ? `${bytes} B` : inUnits(bytes, SIZES);
}
function formatValue(value, unit) {
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

// views/rates.ts
function short(n) {
  return n === 0 ? "0" : n >= 100 ? n.toFixed(0) : n >= 10 ? n.toFixed(1) : n >= 0.1 ? n.toFixed(2) : n >= 5e-4 ? n.toFixed(3) : "< 0.001";
}
var perSecond = (value, ms) => ms > 0 ? value * 1e3 / ms : 0;
var parallel = (value, ms) => ms > 0 ? value / 1e6 / ms : 0;
function rateOf(type, unit, by) {
  if (by === "samples") {
    return { unit: "count", of: perSecond, format: (n) => `${formatCount(Math.round(n))}/s` };
  }
  if (unit === "nanoseconds") {
    const what = type === "on-cpu" ? "CPUs" : type === "on-gpu" ? "GPUs" : "threads";
    return { unit: "count", of: parallel, format: (n) => `${short(n)} ${what}` };
  }
  if (type.endsWith("-inuse")) {
    return { unit, isMean: true, of: (value) => value, format: (n) => formatValue(Math.round(n), unit) };
  }
  return { unit, of: perSecond, format: (n) => `${formatValue(Math.round(n), unit)}/s` };
}
export {
  rateOf
};
