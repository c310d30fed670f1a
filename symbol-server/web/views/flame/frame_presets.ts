// SPDX-License-Identifier: Apache-2.0
// Frames that are often in the way, as filters of the API, so that graph, table, links and downloads
// agree. What a hidden frame cost is its caller's then. Pure.

import type { State } from "../../shell/state";

export type FrameFilter = "hide" | "hide_kind" | "hide_module";

export interface Preset {
  name: string;
  text: string;
  explain: string;
  filters: Partial<Record<FrameFilter, string>>;
}

// Each expression is one alternative in parentheses, so that it is found again in a longer one.
export const PRESETS: readonly Preset[] = [
  {
    name: "kernel",
    text: "Kernel",
    explain: "System calls cost whoever made them.",
    filters: { hide_kind: "kernel" },
  },
  {
    name: "libc",
    text: "C library",
    explain: "libc, libm, libpthread and the loader, of glibc and musl.",
    filters: { hide_module: "(^(libc|libm|libpthread|libdl|librt|libresolv)[-.0-9]*\\.so|^ld-(linux|musl)|^libc\\.musl)" },
  },
  {
    name: "allocator",
    text: "Allocator",
    explain: "malloc, free and their kin, operator new; jemalloc, tcmalloc, mimalloc.",
    filters: {
      hide: "(^(__libc_|__)?(malloc|calloc|realloc|free|cfree|memalign|posix_memalign|aligned_alloc|valloc)$|^_int_(malloc|free|realloc|memalign)|^(malloc_consolidate|sysmalloc|systrim|unlink_chunk|tcache_)|^operator (new|delete)|^(je|mi|tc)_(\\w*alloc|free|\\w*dalloc)|^tcmalloc::|^__rust?_(alloc|dealloc|realloc))",
      hide_module: "(^lib(jemalloc|tcmalloc|mimalloc))",
    },
  },
  {
    name: "interpreter",
    text: "Interpreters' internals",
    explain: "The native code of Python, Ruby, Node.js, Perl, PHP, the JVM; functions of their languages stay.",
    filters: { hide_module: "(^(lib)?(python|pypy|ruby|perl|php|node|nodejs|v8|jvm|beam\\.smp|luajit)[-0-9.]*(\\.so.*)?$)" },
  },
  {
    name: "gc",
    text: "Garbage collection",
    explain: "Collectors of Go, the JVM, V8 and Python, by their functions' names.",
    filters: {
      hide: "(^runtime\\.(gc[A-Z]|bgs|scan|grey|mark|sweep|\\(\\*(gc|sweep|mspan\\)\\.sweep))|^(G1|PS|Z|Shenandoah|Parallel|Serial)\\w*(GC|Collect|Mark|Scavenge|Evac)|^v8::internal::(Heap|Scavenger|MarkCompact|MinorMC|Sweeper|ConcurrentMarking)|^(_PyGC_|gc_collect|collect_generations|deduce_unreachable))",
    },
  },
  {
    name: "inline",
    text: "Inlined functions",
    explain: "Only functions that were really called.",
    filters: { hide_kind: "inline" },
  },
];

const SEPARATOR: Record<FrameFilter, string> = { hide: "|", hide_kind: ",", hide_module: "|" };

// The parts of an expression between the outermost '|'.
export function alternatives(text: string): string[] {
  const out: string[] = [];
  let part = "";
  let depth = 0;
  let inClass = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === "\\") {
      part += c + (text[++i] ?? "");
      continue;
    }
    inClass = inClass ? c !== "]" : c === "[";
    depth += inClass ? 0 : c === "(" ? 1 : c === ")" ? -1 : 0;
    if (c === "|" && depth === 0 && !inClass) {
      out.push(part);
      part = "";
    } else {
      part += c;
    }
  }
  return [...out, part].filter((one) => one !== "");
}

function partsOf(key: FrameFilter, text: string): string[] {
  return key === "hide_kind" ? text.split(",").filter((kind) => kind !== "") : alternatives(text);
}

function entries(preset: Preset): [FrameFilter, string][] {
  return Object.entries(preset.filters) as [FrameFilter, string][];
}

export function isOn(state: State, preset: Preset): boolean {
  return entries(preset).every(([key, part]) => partsOf(key, state[key]).includes(part));
}

export function withPart(state: State, key: FrameFilter, part: string, on: boolean): Partial<State> {
  const others = partsOf(key, state[key]).filter((one) => one !== part);
  return { [key]: [...others, ...(on ? [part] : [])].join(SEPARATOR[key]) };
}

// What choosing it, or no longer choosing it, changes of the state.
export function toggled(state: State, preset: Preset, on: boolean): Partial<State> {
  return Object.assign({}, ...entries(preset).map(([key, part]) => withPart(state, key, part, on))) as Partial<State>;
}

// The presets in force, and what else is in an expression: for the chips that take it away.
export function presetNames(key: FrameFilter, text: string): { names: string[]; rest: string[] } {
  const names: string[] = [];
  const rest: string[] = [];
  for (const part of partsOf(key, text)) {
    const preset = PRESETS.find(({ filters }) => filters[key] === part);
    (preset === undefined ? rest : names).push(preset?.text ?? part);
  }
  return { names, rest };
}
