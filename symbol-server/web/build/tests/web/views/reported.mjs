// views/reported.ts
function reportedMs({ from, until, accounting }) {
  return accounting.reported_ms ?? until - from;
}
function reportedBy(answer, series) {
  return series.reported?.reduce((sum, [, ms]) => sum + ms, 0) || reportedMs(answer);
}
function stepMs(answer, step, series) {
  return series?.reported?.[step]?.[1] || answer.reported?.[step]?.[1] || answer.step_ms;
}
function lostValues(answer, bySamples) {
  const { value, samples } = answer.accounting;
  const each = bySamples ? 1 : samples > 0 ? value / samples : 0;
  const lost = answer.reported?.map(([, , count]) => count * each) ?? [];
  return lost.some((one) => one > 0) ? lost : null;
}
export {
  lostValues,
  reportedBy,
  reportedMs,
  stepMs
};
