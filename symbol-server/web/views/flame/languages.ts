// SPDX-License-Identifier: Apache-2.0
// The language that a frame is most likely written in, by its file, its kind and its name. Pure.

const BY_ENDING: Record<string, string> = {
  ...{ c: "C", h: "C", s: "Assembler", asm: "Assembler" },
  ...{ cc: "C++", cpp: "C++", cxx: "C++", hh: "C++", hpp: "C++", hxx: "C++", tcc: "C++", inl: "C++" },
  ...{ rs: "Rust", go: "Go", py: "Python", pyx: "Python", rb: "Ruby", pl: "Perl", pm: "Perl", php: "PHP" },
  ...{ js: "JavaScript", mjs: "JavaScript", cjs: "JavaScript", ts: "JavaScript", java: "Java", kt: "Kotlin" },
  ...{ scala: "Scala", cs: "C#", swift: "Swift", d: "D", zig: "Zig", f90: "Fortran", f: "Fortran", lua: "Lua", ex: "Elixir", erl: "Erlang" },
};

const GO_NAME = /^[\w./-]+\.(\(\*?\w+\)\.)?\w+(\.func\d+)*$/;

// "" where nothing tells it.
export function languageOf(kind: string, file: string, name: string): string {
  if (kind === "kernel") {
    return "Kernel";
  }
  const ending = /\.(\w+)$/.exec(file)?.[1].toLowerCase() ?? "";
  const known = Object.prototype.hasOwnProperty.call(BY_ENDING, ending) ? BY_ENDING[ending] : undefined;
  if (known !== undefined) {
    return known === "C" && name.includes("::") ? "C++" : known;
  }
  if (kind !== "native" && kind !== "inline" && kind !== "runtime") {
    return "";
  }
  if (/::h[0-9a-f]{16}$|^<.* as .*>::|^(core|alloc|std)::\w+::/.test(name) && !/^std::(__|basic_|vector|map|_)/.test(name)) {
    return "Rust";
  }
  if (name.includes("::") || name.startsWith("operator ")) {
    return "C++";
  }
  return file === "" && GO_NAME.test(name) && /^(runtime|main|net|sync|os|io|bufio|syscall|reflect|encoding)[./]/.test(name) ? "Go" : "";
}
