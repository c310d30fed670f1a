// SPDX-License-Identifier: Apache-2.0
// How new the code of a frame is: when the server first met its build, measured from the end of the time
// shown. Pure.

import type { FlameAnswer, ModuleState } from "../../server/api";
import type { Colouring } from "../../graph/flamegraph";
import type { Graph } from "../../graph/graph";

const DAY = 86_400_000;

// Hue, saturation, lightness in the light and the dark theme: from warm and strong to cold and pale, in
// steps of lightness that every eye tells apart.
type Ink = [number, number, number, number];
interface Age {
  name: string;
  until: number; // younger than this, milliseconds
  ink: Ink;
}
const AGES: Age[] = [
  { name: "under an hour", until: DAY / 24, ink: [16, 90, 62, 48] },
  { name: "under a day", until: DAY, ink: [33, 88, 70, 40] },
  { name: "under a week", until: 7 * DAY, ink: [48, 80, 78, 32] },
  { name: "under a month", until: 30 * DAY, ink: [200, 45, 82, 34] },
  { name: "older", until: Infinity, ink: [215, 30, 88, 27] },
];
const NOT_KNOWN: Age = { name: "not known", until: 0, ink: [220, 4, 91, 22] };
const WITHOUT = new Set(["root", "group", "cut", "idle"]);

export type FirstSeen = ReadonlyMap<string, number>; // by build-id, unix milliseconds

export function firstSeenOf(modules: readonly ModuleState[]): FirstSeen {
  return new Map(modules.filter(({ first_seen }) => first_seen > 0).map(({ build_id, first_seen }) => [build_id, first_seen]));
}

// In milliseconds; null: nobody knows.
export function ageOf(build_id: string, seen: FirstSeen, until: number): number | null {
  const first = seen.get(build_id);
  return first === undefined ? null : Math.max(0, until - first);
}

function classOf(age: number | null): Age {
  return (age === null ? undefined : AGES.find(({ until }) => age < until)) ?? NOT_KNOWN;
}

// The class of each of the answer's modules.
function classes(answer: FlameAnswer, seen: FirstSeen): Age[] {
  return answer.modules.map(({ build_id }) => classOf(ageOf(build_id, seen, answer.until)));
}

// The words for a build's age.
export function ageOfBuild(build_id: string, seen: FirstSeen, until: number): string {
  return classOf(ageOf(build_id, seen, until)).name;
}

// The words for the age of a row's code; "" where a frame has none.
export function ageNames(answer: FlameAnswer, seen: FirstSeen): (row: number) => string {
  const ofModule = classes(answer, seen).map(({ name }) => name);
  const { module, kind } = answer.nodes;
  return (row) => (WITHOUT.has(answer.kinds[kind[row]]) ? "" : (ofModule[module[row]] ?? NOT_KNOWN.name));
}

export function ageColour(name: string, dark: boolean): string {
  const [hue, saturation, light, darker] = (AGES.find((age) => age.name === name) ?? NOT_KNOWN).ink;
  return `hsl(${hue},${dark ? saturation * 0.62 : saturation}%,${dark ? darker : light}%)`;
}

// The youngest first.
export function compareAges(a: string, b: string): number {
  const place = (name: string) => (AGES.findIndex((age) => age.name === name) + AGES.length + 1) % (AGES.length + 1);
  return place(a) - place(b);
}

export function ageColouring(seen: FirstSeen, dark: boolean): Colouring {
  let known: Graph | null = null;
  let colours: string[] = [];
  return (graph, node) => {
    if (graph !== known) {
      known = graph;
      colours = classes(graph.answer, seen).map(({ name }) => ageColour(name, dark));
    }
    const module = graph.moduleIndex(node);
    return WITHOUT.has(graph.kindOf(node)) ? undefined : (colours[module] ?? ageColour(NOT_KNOWN.name, dark));
  };
}
