// SPDX-License-Identifier: Apache-2.0
// One file to the server: PUT /api/v1/modules/{build_id}, with progress, which fetch() has not; and its deletion.

import { ApiError, sentenceOf, type SymbolServer } from "./api";
import { readElf, type ElfFacts } from "./elf_build_id";

export interface Sent {
  isNew: boolean; // false: what the server has is as good
}

export function putModule(
  buildId: string,
  file: Blob,
  progress: (sent: number) => void,
  signal: AbortSignal,
): Promise<Sent> {
  return new Promise((done, fail) => {
    const request = new XMLHttpRequest();
    const stop = () => request.abort();
    const settle = (failure: Error | null) => {
      signal.removeEventListener("abort", stop);
      if (failure === null) {
        done({ isNew: request.status === 201 });
      } else {
        fail(failure);
      }
    };
    request.open("PUT", `api/v1/modules/${buildId}`);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.addEventListener("progress", (e) => progress(e.loaded));
    request.addEventListener("load", () => {
      const { status, responseText } = request;
      settle(status === 200 || status === 201 ? null : new ApiError(status, sentenceOf(status, responseText)));
    });
    request.addEventListener("error", () =>
      settle(new ApiError(0, `The server at ${location.host} cannot be reached, or it ended the upload.`)),
    );
    request.addEventListener("abort", () => settle(new DOMException("Cancelled", "AbortError")));
    if (signal.aborted) {
      fail(new DOMException("Cancelled", "AbortError"));
      return;
    }
    signal.addEventListener("abort", stop);
    request.send(file);
  });
}

export interface Deleted {
  deleted_files: number;
  deleted_bytes: number;
  deleted_tables: number;
}

// What was uploaded for the module, and the names made of it.
export async function deleteModule(buildId: string): Promise<Deleted> {
  const response = await fetch(`api/v1/modules/${buildId}`, { method: "DELETE" });
  const text = await response.text();
  if (!response.ok) {
    throw new ApiError(response.status, sentenceOf(response.status, text));
  }
  return JSON.parse(text) as Deleted;
}

// Its names are looked for now. Answers who is asked, in words.
export async function fetchModule(buildId: string): Promise<string> {
  const response = await fetch(`api/v1/modules/${buildId}/fetch`, { method: "POST" });
  const text = await response.text();
  if (!response.ok) {
    throw new ApiError(response.status, sentenceOf(response.status, text));
  }
  const { has_symbol_dirs, debuginfod } = JSON.parse(text) as { has_symbol_dirs: number; debuginfod: SymbolServer[] };
  const asked = [...(has_symbol_dirs === 1 ? ["symbol directories"] : []), ...debuginfod.map(({ source }) => source)];
  return asked.length === 0
    ? "The server has nobody to ask but agents: --debuginfod URL or --symbol-dir gives it more."
    : `Asked: ${asked.join(", ")}.`;
}

// Would the server use this file? It is asked before megabytes are sent.
export async function isWanted(buildId: string, facts: ElfFacts, signal: AbortSignal): Promise<boolean> {
  const offer = facts.hasDebugInfo ? "debug" : "executable";
  const response = await fetch(`api/v1/modules?offer=${offer}`, {
    method: "POST",
    headers: { "Content-Type": "text/plain" },
    body: `${buildId} gnu -\n`,
    signal,
  });
  const text = await response.text();
  if (!response.ok) {
    throw new ApiError(response.status, sentenceOf(response.status, text));
  }
  return text.includes(buildId);
}

export function factsOf(file: Blob): Promise<ElfFacts | null> {
  return readElf(async (offset, length) => {
    if (!Number.isSafeInteger(offset) || !Number.isSafeInteger(offset + length) || offset >= file.size) {
      return new DataView(new ArrayBuffer(0));
    }
    return new DataView(await file.slice(offset, offset + length).arrayBuffer());
  });
}
