// text/format.ts
var counts = new Intl.NumberFormat("en");
function formatCount(n) {
  return counts.format(n);
}
var SIZES = ["KiB", "MiB", "GiB", "TiB", "PiB"].map((name, i) => [name, 1024 ** (i + 1), i < 4 ? 1024 : Infinity]);

// text/time.ts
var MINUTE = 6e4;
var BY_SECOND_MS = 20 * MINUTE;

// views/reported.ts
function stepMs(answer, step, series) {
  return series?.reported?.[step]?.[1] || answer.reported?.[step]?.[1] || answer.step_ms;
}
function lostValues(answer, bySamples) {
  const { value, samples } = answer.accounting;
  const each = bySamples ? 1 : samples > 0 ? value / samples : 0;
  const lost = answer.reported?.map(([, , count]) => count * each) ?? [];
  return lost.some((one) => one > 0) ? lost : null;
}

// views/step_rates.ts
function ratesOf(answer, rate, values, line) {
  if (answer.step_ms >= MINUTE) {
    return values.map((value, step) => rate.of(value, stepMs(answer, step, line)));
  }
  return rate.isMean ? held(values, answer.step_ms) : spread(answer, rate, values, line);
}
function spread(answer, rate, values, line) {
  const out = new Array(values.length).fill(0);
  const { step_ms } = answer;
  const first = answer.series[0]?.points[0]?.[0] ?? answer.from;
  values.forEach((value, step) => {
    if (value === 0) {
      return;
    }
    const known = (line?.reported ?? answer.reported)?.[step]?.[1] || 0;
    const into = (first + step * step_ms) % MINUTE;
    const begin = known > 0 ? step : Math.max(0, step - into / step_ms);
    const length = known || MINUTE;
    for (let at = begin, left = length; left > 0 && at < out.length; at++, left -= step_ms) {
      out[at] += rate.of(value, length) * Math.min(1, left / step_ms);
    }
  });
  return out;
}
function held(values, step_ms) {
  let last = 0;
  let since = Infinity;
  return values.map((value) => {
    since = value > 0 ? 0 : since + step_ms;
    last = value > 0 ? value : since < MINUTE ? last : 0;
    return last;
  });
}

// views/chart_data.ts
var LATE_MS = 2e4;
function shownSteps({ reported, step_ms }, count) {
  if (reported === void 0 || step_ms >= MINUTE) {
    return count;
  }
  const last = reported.reduce((found, [, ms], step) => ms > 0 ? step : found, -1);
  const end = last < 0 ? count : Math.min(count, last + Math.ceil(reported[last][1] / step_ms));
  return (count - end) * step_ms <= LATE_MS ? end : count;
}
function chartOf(answer, rate, bySamples, most, nameOf, withLost = false) {
  const at = bySamples ? 2 : 1;
  const first = answer.series[0]?.points ?? [];
  const values = (points, series) => ratesOf(answer, rate, points.map((point) => point[at]), series);
  const rest = answer.series.slice(most);
  const sum = new Float64Array(first.length);
  for (const line of [...rest.map((series) => values(series.points, series)), values(answer.other?.points ?? [])]) {
    line.forEach((value, step) => sum[step] += value);
  }
  const lost = withLost ? lostValues(answer, bySamples) : null;
  const others = rest.length + (answer.other?.series ?? 0);
  return {
    from: first[0]?.[0] ?? answer.from,
    step: answer.step_ms,
    count: shownSteps(answer, first.length),
    unit: rate.unit,
    format: rate.format,
    series: answer.series.slice(0, most).map((series) => ({ name: nameOf(series.labels), values: values(series.points, series) })),
    ...others > 0 ? { other: { name: `${formatCount(others)} others`, values: sum } } : {},
    ...lost !== null ? { lost: { name: "lost", values: ratesOf(answer, rate, lost) } } : {}
  };
}
export {
  chartOf
};
