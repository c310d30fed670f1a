// SPDX-License-Identifier: Apache-2.0
// What a module's state means and what a person can do about its names. Pure.

import type { ModuleState } from "../../server/api";

export const STATE_WORDS: Record<string, string> = {
  wanted: "not looked for yet",
  fetching: "being asked for",
  converting: "being converted",
  symbols: "names only, no lines",
  ready: "ready",
  missing: "nobody has it",
  failed: "not usable",
};

export const PENDING: ReadonlySet<string> = new Set(["wanted", "fetching", "converting"]);

export const QUALITY_WORDS: Record<string, string> = {
  none: "no names",
  kallsyms: "kernel's symbol table",
  dynsym: "exported names only",
  minidebug: "small symbol table",
  pclntab: "Go's own table",
  symtab: "symbol table",
  dwarf: "debug information",
};

export const ANSWER_WORDS: Record<string, string> = {
  used: "used",
  found: "has it; another was as good",
  not_found: "does not have it",
  unusable: "has something unusable",
  wrong_file: "sent another file",
  too_large: "has it, too large to load",
  down: "did not answer",
  closed: "not asked: it is down",
  no_room: "no room here for it",
  stopped: "the server was stopping",
};

export const MISSING_WORDS: Record<string, string> = {
  dwo: "split debug information (.dwp or .dwo files) is not here: no inlined functions from there",
  alt: "the shared dwz file is not here: some names are missing",
  cut: "more than the server's limits take",
  damaged: "damaged parts were left out",
  relocations: "a machine whose relocations are not known",
  inlines: "a Go program without DWARF: calls inlined in it are not known",
};

export interface Advice {
  text: string;
  command: string; // "" none
}

export function isKernel(module: ModuleState): boolean {
  return /^(vmlinux|\[kernel)|\.ko$/.test(module.name);
}

function quoteForShell(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`;
}

// The last part of its path, without what a shell or a terminal could take amiss.
function fileName(module: ModuleState): string {
  const name = module.name.split("/").at(-1) ?? "";
  return /^[\x20-\x7e]{1,120}$/.test(name) && !name.startsWith("[") && !name.startsWith("-") ? name : "FILE";
}

// The ways to get names, the likeliest first. origin: the server's address, without a slash.
export function adviceOn(module: ModuleState, origin: string): Advice[] {
  const { build_id: id, state, unsymbolized_share: share } = module;
  const hasNames = state === "ready" || state === "symbols";
  if (PENDING.has(state)) {
    return [{ text: "The server works on it; its names appear here and in past flame graphs by themselves.", command: "" }];
  }
  if (hasNames && share === 0) {
    return state === "ready"
      ? []
      : [{ text: "For lines and inlined functions, send the file with debug information:", command: put(module, origin) }];
  }
  if (isKernel(module)) {
    return [
      {
        text: "An agent that may read /proc/kallsyms sends the kernel's names by itself. On the host, as root:",
        command: "sysctl kernel.kptr_restrict=1",
      },
      { text: "Or send the kernel with debug information (package linux-image-…-dbg, kernel-debuginfo):", command: put(module, origin) },
    ];
  }
  return [
    { text: "Send the file with debug information, or the program before it was stripped (drop it here, or):", command: put(module, origin) },
    { text: "A whole build, only what is not there yet:", command: `sh deploy/upload-symbols.sh build/ ${origin}` },
    { text: "A distribution's package: find it by the build-id on Debian,", command: `find-dbgsym-packages ${id}` },
    {
      text: "or install it on Fedora, and give its folder to the server (--symbol-dir /usr/lib/debug).",
      command: `dnf --enablerepo='*debug*' install /usr/lib/debug/.build-id/${id.slice(0, 2)}/${id.slice(2)}.debug`,
    },
    ...(module.sources?.some(({ source }) => /^https?:/.test(source)) === true
      ? []
      : [{ text: "Or let the server ask a debuginfod server, such as the distribution's:", command: "farflame-server --debuginfod URL …" }]),
  ];
}

function put(module: ModuleState, origin: string): string {
  return `curl --fail-with-body -T ${quoteForShell(fileName(module))} ${origin}/api/v1/modules/${module.build_id}`;
}

// One short sentence for the list.
export function nextStep(module: ModuleState): string {
  if (PENDING.has(module.state)) {
    return "wait: the server works on it";
  }
  if (module.unsymbolized_share === 0) {
    return "";
  }
  if (module.state === "ready" || module.state === "symbols") {
    return module.quality === "dwarf" ? "addresses outside of all functions" : "send debug information";
  }
  return isKernel(module) ? "let the agent read kallsyms" : "send the file with symbols";
}

// Samples lack names, and nobody works on it.
export function isStuck(module: ModuleState): boolean {
  return module.unsymbolized > 0 && !PENDING.has(module.state);
}
