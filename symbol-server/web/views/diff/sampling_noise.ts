// SPDX-License-Identifier: Apache-2.0
// Whether two counts of samples differ by more than 5 % when nothing but sampling is considered. Pure.
//
// Counts are Poisson's. The square-root statistic of two of them, by Gu, Ng, Tang, Schucany: Testing the ratio
// of two Poisson rates, Biometrical Journal 50 (2008), is close to the exact one from a few samples on. Of
// many pairs those differ whose false discovery rate by Benjamini and Hochberg is at most 5 %.

import { SMALL } from "./diff_words";

const RATE = 0.05;
const FEWEST = 10; // samples of both sides; with fewer nothing can be told

// That a standard normal variable is as far from 0; Numerical Recipes' erfc().
function tail(z: number): number {
  const x = Math.abs(z) / Math.SQRT2;
  const t = 1 / (1 + 0.5 * x);
  const series = [
    -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277,
  ];
  return t * Math.exp(series.reduceRight((sum, term) => sum * t + term, 0) - x * x);
}

// That chance makes such counts where after is at most 5 % more or less than before times ratio.
export function chanceOf(before: number, after: number, ratio: number): number {
  const at = (odds: number) => (2 * (Math.sqrt(after + 0.375) - Math.sqrt((before + 0.375) * odds))) / Math.sqrt(1 + odds);
  return tail(Math.max(0, at(ratio * (1 + SMALL)), -at(ratio / (1 + SMALL))));
}

// pairs: samples before and after; ratio: after per before where nothing changed.
export function differing(pairs: readonly [number, number][], ratio: number): boolean[] {
  const chances = pairs.map(([before, after]) => (before + after < FEWEST ? 1 : chanceOf(before, after, ratio)));
  const tested = chances.filter((_, i) => pairs[i][0] + pairs[i][1] >= FEWEST).sort((a, b) => a - b);
  let limit = -1;
  tested.forEach((chance, i) => (limit = chance <= (RATE * (i + 1)) / tested.length ? chance : limit));
  return chances.map((chance) => chance <= limit);
}
