// SPDX-License-Identifier: Apache-2.0
// The server's REST API as the page uses it: the shapes of its answers (schema/rest/openapi.yaml)
// and one function that asks. Every failure becomes an ApiError whose message is a sentence for
// people.

export interface IncompleteReason {
  reason: string;
  samples: number;
  modules: { name: string; build_id: string; samples: number }[]; // in which the walks stopped
}

export interface Accounting {
  value: number;
  samples: number;
  taken: number;
  lost: number;
  lost_by: Record<string, number>;
  unwind_incomplete: number; // samples
  incomplete_by: IncompleteReason[]; // of those; the most first
  unsymbolized: number; // samples
  cut: number; // value that max_nodes folded away
  hosts: number;
  threads_from?: number; // of a question about threads: earlier ones are not kept
}

// Columns of equal length; parent before child, node 0 the root; −1 means none.
export interface FlameNodes {
  name: number[];
  file: number[];
  line: number[];
  module: number[];
  parent: number[];
  self: number[];
  total: number[];
  kind: number[];
}

export interface FlameAnswer {
  type: string;
  unit: string;
  from: number; // effective range, unix milliseconds
  until: number;
  names: string[];
  files: string[];
  modules: { name: string; build_id: string }[];
  kinds: string[];
  nodes: FlameNodes;
  accounting: Accounting;
}

export interface TopFunction {
  name: string;
  file: string;
  line: number;
  module: string;
  build_id: string;
  self: number;
  total: number;
}

export interface TopAnswer {
  type: string;
  unit: string;
  functions: TopFunction[];
  accounting: Accounting;
}

export interface TypesAnswer {
  types: { name: string; unit: string; samples: number }[];
}

export interface LabelValuesAnswer {
  values: { value: string; samples: number }[];
}

export interface ModuleState {
  build_id: string;
  name: string;
  state: string;
  reason: string;
  source: string;
  quality: string;
  unsymbolized_share: number; // 0…1
}

export interface AgentState {
  host: string;
  version: string;
  last_seen: number; // unix milliseconds
  rate_hz: number;
}

export type Parameters = Record<string, string>;

// status 0: the server could not be reached at all.
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

const TIMEOUT_MS = 60_000;

function sentenceOf(status: number, body: string): string {
  try {
    const message = JSON.parse(body)?.error?.message;
    if (typeof message === "string" && message !== "") {
      return message;
    }
  } catch {
    // Not JSON: a proxy's page, perhaps. The status alone is said.
  }
  return `The server answered with status ${status} and no explanation.`;
}

// GET /api/v1/<resource>. Aborting signal rejects with the browser's AbortError, which callers
// ignore.
export async function ask<T>(
  resource: string,
  parameters: Parameters,
  signal: AbortSignal,
): Promise<T> {
  const query = new URLSearchParams(parameters).toString();
  const url = `api/v1/${resource}${query === "" ? "" : "?" + query}`;
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), TIMEOUT_MS);
  const forward = () => limit.abort();
  signal.addEventListener("abort", forward);
  try {
    const response = await fetch(url, { signal: limit.signal });
    if (!response.ok) {
      throw new ApiError(response.status, sentenceOf(response.status, await response.text()));
    }
    return (await response.json()) as T;
  } catch (failure) {
    if (failure instanceof ApiError || signal.aborted) {
      throw failure;
    }
    if (limit.signal.aborted) {
      throw new ApiError(0, `The server did not answer within ${TIMEOUT_MS / 1000} seconds.`);
    }
    if (failure instanceof SyntaxError) {
      throw new ApiError(0, "The server's answer broke off or is not JSON.");
    }
    throw new ApiError(0, `The server at ${location.host} cannot be reached.`);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", forward);
  }
}
