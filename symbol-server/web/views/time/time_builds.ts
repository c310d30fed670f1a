// SPDX-License-Identifier: Apache-2.0
// New builds on the time line and as a list: each leads to what changed with it, and to the two builds
// side by side.

import { el } from "../../widgets/dom";
import { formatCount, formatTime } from "../../text/format";
import type { Shell } from "../../shell/view";
import type { State } from "../../shell/state";
import type { TimeMark } from "../../widgets/time_chart";
import { aroundBuild, type NewBuild } from "../builds";
import { linkTo } from "../links";

const SHORT_ID = 10; // digits that tell builds apart

// All stacks of the one against all of the other, also where both run at the same time.
function againstBefore({ build_id, before }: NewBuild): Partial<State> {
  return { page: "diff", build_id, base_build_id: before, base: "-0s", zoom: "" };
}

function choice(build: NewBuild, from: number, until: number): Partial<State> {
  const around = aroundBuild(build.time, from, until);
  if (around === null) {
    return againstBefore(build);
  }
  return { page: "diff", from: String(around.from), until: String(around.until), base: around.base, zoom: "" };
}

export function buildMarks(shell: Shell, builds: NewBuild[], from: number, until: number): TimeMark[] {
  return builds.map((build) => ({
    time: build.time,
    kind: "build",
    text: `new build of ${build.name}, ${build.build_id.slice(0, SHORT_ID)}`,
    run: () => shell.change(choice(build, from, until)),
  }));
}

export function buildRows(shell: Shell, builds: NewBuild[], from: number, until: number): HTMLElement {
  const rows = builds.map((build) => {
    const title = `Before and after\n${build.before}\n${build.build_id}`;
    const link = linkTo(
      shell,
      choice(build, from, until),
      { class: "line", title },
      el("bdi", {}, build.name),
      el("span", { class: "quiet" }, `${formatTime(build.time)}, ${formatCount(build.samples)} samples`),
    );
    const ids = `${build.before.slice(0, SHORT_ID)} → ${build.build_id.slice(0, SHORT_ID)}`;
    const both = linkTo(shell, againstBefore(build), { class: "quiet what", title: "Stacks of the one build against stacks of the other" }, ids);
    return el("tr", {}, el("td", { class: "name" }, link, both));
  });
  return el("table", {}, el("tbody", {}, ...rows));
}
