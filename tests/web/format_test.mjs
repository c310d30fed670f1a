// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import test from "node:test";

process.env.TZ = "UTC";
const { bundle } = await import("./bundle.mjs");
const { collapseArguments, formatAge, formatCount, formatCpus, formatPercent, formatSampled, formatOwnShare, formatShare, formatRange, formatSpan, formatValue, shorterNames } =
  await bundle("text/format.ts");

const rows = (run, cases) => cases.forEach(([...row]) => assert.equal(run(...row.slice(0, -1)), row[row.length - 1]));

test("counts", () => {
  rows(formatCount, [[0, "0"], [999, "999"], [1_234_567, "1,234,567"]]);
});

test("shares never say all or nothing where there is a rest", () => {
  rows(formatPercent, [
    [0, 100, "0 %"], [5, 0, "0 %"], [-1, 100, "0 %"],
    [1, 1_000_000, "< 0.01 %"], [1, 10_000, "0.01 %"], [1, 100, "1.00 %"], [12_345, 100_000, "12.3 %"],
    [99_994, 100_000, "> 99.99 %"], [999_999_999, 1_000_000_000, "> 99.99 %"], [7, 7, "100 %"],
  ]);
});

test("times", () => {
  rows((ns) => formatValue(ns, "nanoseconds"), [
    [0, "0 s"], [1, "1 ns"], [999, "999 ns"], [1500, "1.50 µs"], [12_300_000, "12.3 ms"], [999_000_000, "999 ms"],
    [1_840_000_000, "1.84 s"], [119e9, "119 s"], [120e9, "2.00 min"], [999_950_000, "1.00 s"], [999.6e3, "1.00 ms"], [119.7e9, "2.00 min"], [7200e9, "2.00 h"], [172_800e9, "2.00 d"],
  ]);
});

test("sizes", () => {
  rows((bytes) => formatValue(bytes, "bytes"), [
    [0, "0 B"], [1023, "1023 B"], [1024, "1.00 KiB"], [4.2 * 2 ** 30, "4.20 GiB"], [1023.7 * 1024, "1.00 MiB"], [2 ** 60, "1024 PiB"],
  ]);
});

test("what is counted", () => {
  assert.equal(formatValue(1, "samples"), "1 sample");
  assert.equal(formatValue(2345, "count"), "2,345 samples");
  assert.equal(formatValue(2345, "widgets"), "2,345 widgets");
});

test("CPUs of a range", () => {
  rows(formatCpus, [
    [0, 1000, "0 CPUs"], [5, 0, "0 CPUs"], [1e9, 1000, "avg 1.000 CPUs"], [12.3e9, 1000, "avg 12.3 CPUs"],
    [1, 3_600_000, "avg < 0.001 CPUs"], [1.3e9, 1000, 2, "avg 1.300 of 2 CPUs"], [0, 1000, 1, "0 of 1 CPU"],
  ]);
});

test("a range names its day once", () => {
  const noon = Date.UTC(2026, 0, 2, 12, 0, 0);
  assert.equal(formatRange(noon, noon + 61_000), "2026-01-02 12:00:00 – 12:01:01 UTC");
  assert.equal(formatRange(noon, noon + 86_400_000), "2026-01-02 12:00:00 – 2026-01-03 12:00:00 UTC");
});

test("ages and spans", () => {
  rows(formatAge, [[-5000, "0 s ago"], [1400, "1 s ago"], [119_000, "119 s ago"], [600_000, "10 min ago"], [351_000, "5 min 51 s ago"], [119_800, "2 min ago"]]);
  rows(formatSpan, [
    [0, "0 s"], [0.4, "400 µs"], [1250, "1.25 s"], [90_000, "90 s"], [119_400, "119 s"], [119_700, "2 min"], [127_800, "2 min 8 s"],
    [888_000, "14 min 48 s"], [7_100_000, "118 min 20 s"], [7_199_000, "2 h"], [7_200_000, "2 h"], [9_240_000, "2 h 34 min"], [172_800_000, "2 d"],
    [190_800_000, "2 d 5 h"],
  ]);
});

test("template arguments are left out, operators stay", () => {
  rows(collapseArguments, [
    ["a::B<std::vector<int>, C>::run(int)", "a::B<…>::run(int)"],
    ["f<int>", "f<int>"],
    ["f<int*>(x)", "f<…>(x)"],
    ["operator<", "operator<"],
    ["std::operator<< <char>", "std::operator<< <…>"],
    ["std::operator<< <char, std::char_traits<char> >(int)", "std::operator<< <…>(int)"],
    ["a::operator>><int, char>(x)", "a::operator>><…>(x)"],
    ["Map<long, &ns::operator<>::f", "Map<…>::f"],
    ["myoperator<std::string>", "myoperator<…>"],
    ["T::operator->()", "T::operator->()"],
    ["<alloc::vec::Vec<T> as core::ops::Drop>::drop", "<alloc::vec::Vec<T> as core::ops::Drop>::drop"],
    ["unbalanced<<<a", "unbalanced<<<a"],
    ["fn(a) -> Vec<String>", "fn(a) -> Vec<…>"],
  ]);
});

test("a share has its error in its own digits, rounded up; of everything and of nothing there is none", () => {
  const share = ([part, whole, error, all]) => formatShare(part, whole, error, all);
  rows(share, [
    [[123, 1000, 22, 63], "12.3 % ± 2.1"], // √(22² · 0.754 + 0.0151 · 63²) = 20.6 of 1000, up
    [[50, 1000, 14, 63], "5.00 % ± 1.37"],
    [[123e6, 1e9, 100, 100], "12.3 % ± 0.1"],
    [[1000, 1000, 63, 63], "100 %"],
    [[0, 1000, 0, 63], "0 %"],
    [[1, 1e9, 3, 63], "< 0.01 %"],
    [[123, 1000, undefined, 63], "12.3 %"],
    [[123, 1000, 22, undefined], "12.3 %"],
  ]);
  rows(([own, error]) => formatOwnShare(own, error), [
    [[0.123, 0.0201], "12.3 % ± 2.1"],
    [[0.05, 0.01], "5.00 % ± 1.00"],
    [[0.123, undefined], "12.3 %"],
    [[0, 0.01], "0 %"],
    [[1, 0], "100 %"],
  ]);
  assert.equal(formatSampled(3.2e9, 1.1e8, "nanoseconds"), "3.20 s ± 110 ms");
  assert.equal(formatSampled(3.2e9, undefined, "nanoseconds"), "3.20 s");
  assert.equal(formatSampled(0, 0, "bytes"), "0 B");
});

test("names become shorter from the left, never empty", () => {
  const last = (name) => shorterNames(name).at(-1);
  rows(last, [
    ["mod::Class<T>::run(int)", "run"],
    ["f(std::string)", "f"],
    ["runtime.(*mheap).alloc", "runtime.(*mheap).alloc"],
    ["main", "main"],
    ["", ""],
    ["::", "::"],
    ["a::{{closure}}", "a::{{closure}}"],
  ]);
});

test("no name of strangers takes long or throws", () => {
  for (const name of ["<".repeat(5000), "(".repeat(5000), "a::".repeat(2000), ">".repeat(5000), "operator".repeat(600), "\u202e\ud800\n\0"]) {
    const shorter = shorterNames(name);
    assert.equal(shorter.length, 3);
    assert.ok(shorter.every((text) => text.length > 0 && text.length <= name.length));
  }
});
