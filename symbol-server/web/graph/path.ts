// SPDX-License-Identifier: Apache-2.0
// A place in the flame graph as text: frame names from below the root, joined by ';'. A ';' or '\'
// inside a name gets a '\' before it. The API's root= and the page's address use the same text.

export function joinPath(names: readonly string[]): string {
  return names.map((name) => name.replace(/[\\;]/g, "\\$&")).join(";");
}

export function splitPath(text: string): string[] {
  if (text === "") {
    return [];
  }
  const names: string[] = [];
  let name = "";
  for (let i = 0; i < text.length; i++) {
    if (text[i] === "\\" && (text[i + 1] === ";" || text[i + 1] === "\\")) {
      name += text[++i];
    } else if (text[i] === ";") {
      names.push(name);
      name = "";
    } else {
      name += text[i];
    }
  }
  names.push(name);
  return names;
}
