// views/reported.ts
function reportedMs({ from, until, accounting }) {
  return accounting.reported_ms ?? until - from;
}
function reportedBy(answer, series) {
  return series.reported?.reduce((sum, [, ms]) => sum + ms, 0) || reportedMs(answer);
}

// views/overview/overview_sums.ts
function rowsOf(answers, label, sortBy) {
  const byName = /* @__PURE__ */ new Map();
  const sums = /* @__PURE__ */ new Map();
  const left = /* @__PURE__ */ new Map();
  for (const answer of answers) {
    let sum = answer.other?.value ?? 0;
    for (const series of answer.series) {
      const name = series.labels[label] ?? "";
      const row = byName.get(name) ?? { name, values: /* @__PURE__ */ new Map(), times: /* @__PURE__ */ new Map() };
      byName.set(name, row);
      row.values.set(answer.type, (row.values.get(answer.type) ?? 0) + series.value);
      row.times.set(answer.type, Math.max(row.times.get(answer.type) ?? 0, reportedBy(answer, series)));
      sum += series.value;
    }
    sums.set(answer.type, sum);
    if (answer.other !== void 0) {
      left.set(answer.type, { groups: answer.other.series, value: answer.other.value });
    }
  }
  const order = [sortBy, ...answers.map(({ type }) => type)];
  const rows = [...byName.values()].sort((a, b) => {
    for (const type of order) {
      const difference = (b.values.get(type) ?? 0) - (a.values.get(type) ?? 0);
      if (difference !== 0) {
        return difference;
      }
    }
    return a.name < b.name ? -1 : 1;
  });
  return { rows, sums, left };
}
export {
  rowsOf
};
