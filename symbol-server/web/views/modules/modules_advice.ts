// SPDX-License-Identifier: Apache-2.0
// What a module's state means and what a person can do about its names. Pure.

import type { ModuleState } from "../../server/api";
import { formatPercent, formatSize } from "../../text/format";
import type { Distribution } from "./distribution";

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

// Who the server asks for files, and what hosts run: the ways depend on it.
export interface Sources {
  origin: string; // the server's address, without a slash
  debuginfod: readonly string[]; // its --debuginfod
  hasDirectories: boolean; // --symbol-dir
  distribution: Distribution;
}

// Distributions know files by the build-ids of GNU ld: 20 bytes.
function mayBePackaged({ build_id }: ModuleState): boolean {
  return build_id.length === 40;
}

// The servers have been asked, and none has it: it is no distribution's.
function isDenied({ sources }: ModuleState): boolean {
  const asked = sources.filter(({ source }) => /^https?:/.test(source));
  return asked.length > 0 && asked.every(({ answer }) => answer === "not_found");
}

// The ways to get names, the likeliest first.
export function adviceOn(module: ModuleState, from: Sources): Advice[] {
  const hasNames = module.state === "ready" || module.state === "symbols";
  if (isWorking(module)) {
    return [{ text: "The server works on it; its names appear here and in past flame graphs by themselves.", command: "" }];
  }
  if (hasNames && module.unsymbolized_share === 0) {
    return module.state === "ready"
      ? []
      : [{ text: "For lines and inlined functions, send the file with debug information:", command: put(module, from.origin) }];
  }
  if (isKernel(module)) {
    return [
      {
        text: "An agent that may read /proc/kallsyms sends the kernel's names by itself. On the host, as root:",
        command: "sysctl kernel.kptr_restrict=1",
      },
      { text: "Or send the kernel with debug information (package linux-image-…-dbg, kernel-debuginfo):", command: put(module, from.origin) },
    ];
  }
  const own: Advice[] = [
    { text: "Send the file with debug information, or the program before it was stripped (drop it here, or):", command: put(module, from.origin) },
    { text: "A whole build, only what is not there yet:", command: `sh deploy/upload-symbols.sh build/ ${from.origin}` },
  ];
  return isDenied(module) || !mayBePackaged(module) ? own : [...packaged(module, from), ...own];
}

// The distribution's own ways.
function packaged({ build_id: id }: ModuleState, { debuginfod, hasDirectories, distribution }: Sources): Advice[] {
  const command = distribution.packageOf(id);
  const install: Advice[] =
    command === ""
      ? []
      : [
          {
            text: hasDirectories
              ? `${distribution.name}'s package with its debug information, on the server (which reads --symbol-dir):`
              : `${distribution.name}'s package with its debug information; give its folder to the server, --symbol-dir /usr/lib/debug:`,
            command,
          },
        ];
  const ask: Advice[] =
    debuginfod.length > 0
      ? []
      : [{ text: "Let the server ask a debuginfod server, for all modules at once:", command: `farflame-server --debuginfod ${distribution.debuginfod}` }];
  return hasDirectories ? [...install, ...ask] : [...ask, ...install];
}

// The one command to copy; "": none is needed, or none helps.
export function cureOf(module: ModuleState, from: Sources): string {
  const isWholeTable = module.state === "ready" && module.quality === "dwarf";
  return module.unsymbolized === 0 || isWholeTable ? "" : (adviceOn(module, from)[0]?.command ?? "");
}

function put(module: ModuleState, origin: string): string {
  return `curl --fail-with-body -T ${quoteForShell(fileName(module))} ${origin}/api/v1/modules/${module.build_id}`;
}

// The server looks for its files or reads them now, or will without being told.
export function isWorking({ state, working }: ModuleState): boolean {
  return PENDING.has(state) || working === 1;
}

// Every frame of the picture that lies in it has a name.
export function isWhole({ state, unsymbolized }: ModuleState): boolean {
  return (state === "ready" || state === "symbols") && unsymbolized === 0;
}

// What the list says of its names.
export function stateText(module: ModuleState): string {
  const { state, download, unsymbolized, samples, working } = module;
  if (download !== undefined) {
    return download.bytes > 0 ? `${formatSize(download.bytes)} have come` : "a server is asked";
  }
  if (working === 1 && !PENDING.has(state)) {
    return "being looked for";
  }
  if ((state === "ready" || state === "symbols") && unsymbolized > 0) {
    return `of ${formatPercent(samples - unsymbolized, samples)} only`;
  }
  return STATE_WORDS[state] ?? state;
}

// Why there is no command to copy.
export function nextStep(module: ModuleState): string {
  if (isWorking(module)) {
    return "wait: the server works on it";
  }
  return module.unsymbolized === 0 ? "" : "addresses outside of all functions";
}

// Samples lack names, and nobody works on it.
export function isStuck(module: ModuleState): boolean {
  return module.unsymbolized > 0 && !isWorking(module);
}
