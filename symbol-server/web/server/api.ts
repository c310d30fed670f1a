// SPDX-License-Identifier: Apache-2.0
// The server's REST API as the page uses it: the shapes of its answers (schema/rest/openapi.yaml)
// and one function that asks. Every failure becomes an ApiError whose message is a sentence for
// people.

import { readColumns } from "./columns";

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
  exact?: number; // of off-cpu and run-queue: value on the whole hosts, counted without stacks
  covered?: number; // what all samples of those hosts stand for
  threads_from?: number; // of a question about threads: earlier ones are not kept
}

// Columns of equal length; parent before child, node 0 the root; −1 means none.
export interface FlameNodes<Column extends ArrayLike<number> = ArrayLike<number>> {
  name: Column;
  file: Column;
  line: Column;
  module: Column;
  parent: Column;
  self: Column;
  total: Column;
  kind: Column;
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
  from: number;
  until: number;
  functions: TopFunction[];
  accounting: Accounting;
}

export interface DiffFunction {
  name: string;
  file: string;
  line: number;
  module: string;
  build_id: string;
  before: number; // as norm has it
  after: number;
  change: number | null; // after / before - 1; null: not in the base
  samples: number;
  base_samples: number;
  ci_low: number | null; // 95 %
  ci_high: number | null;
  q: number | null;
  significant: boolean;
}

export interface DiffAnswer extends FlameAnswer {
  nodes: FlameNodes<number[]> & { base_self: number[]; base_total: number[] };
  norm: string;
  scale: number; // base values times this compare with the others
  base: { type: string; from: number; until: number; accounting: Accounting };
  noise: { from: string; dispersion: number | null; tested: number; significant: number };
  functions: DiffFunction[]; // the significant ones first
  functions_left_out: number;
  warnings: string[];
}

export type FrameTree = Pick<FlameAnswer, "names" | "files" | "modules" | "kinds"> & { nodes: FlameNodes<number[]> };

export interface SandwichAnswer {
  type: string;
  unit: string;
  from: number;
  until: number;
  function: string;
  total: number;
  total_samples: number;
  functions: TopFunction[]; // that have this name
  callers: FrameTree & { cut: number }; // the root's children are the functions
  callees: FrameTree & { cut: number };
  accounting: Accounting; // of all stacks, not of the function's alone
}

export interface TypesAnswer {
  types: { name: string; unit: string; samples: number; value: number }[];
}

export interface TimelineSeries {
  labels: Record<string, string>;
  value: number;
  samples: number;
  points: [number, number, number][]; // start of the step in unix milliseconds, value, samples
}

export interface TimelineAnswer {
  type: string;
  unit: string;
  from: number;
  until: number;
  step_ms: number;
  series: TimelineSeries[]; // the largest first
  other?: { series: number; value: number; samples: number; points: [number, number, number][] };
  accounting: Accounting;
}

export interface Moved {
  name: string;
  before: number; // shares of the group's value, 0…1
  after: number;
}

export interface Hotspots {
  from: number;
  until: number;
  changes: {
    labels: Record<string, string>;
    from: number;
    until: number;
    lasting: boolean;
    rose: Moved[];
    fell: Moved[];
  }[];
}

export interface Trace {
  trace_id: string;
  value: number;
  samples: number;
  spans: number;
  from: number; // whole minutes
  until: number;
  services: string[];
  hosts: string[];
  processes: string[];
  threads: string[];
}

export interface TracesAnswer {
  type: string;
  unit: string;
  from: number;
  until: number;
  traces: Trace[]; // the most valuable first
  traces_left_out: number;
  accounting: Accounting;
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
  missing: string[]; // what the table could not have
  unsymbolized_share: number; // 0…1
  unsymbolized: number; // the same as samples
  samples: number; // with a frame in it
  functions: number;
  file_bytes: number;
  first_seen: number; // unix milliseconds; 0: not
  updated: number;
  retry_at: number;
  sources: { source: string; answer: string; detail: string; bytes: number; ms: number; at: number }[];
}

export interface ModulesAnswer {
  modules: ModuleState[]; // the most wanted first
  symbol_dirs: { first_pass_done: number; reading: number; packages_left: number; last_refusal: string };
}

export interface AgentState {
  host: string;
  version: string;
  last_seen: number; // unix milliseconds
  rate_hz: number;
  kernel: string;
  taken: number; // since its start, as all counts
  lost: number;
  lost_by: Record<string, number>;
  stacks: Record<string, number>; // by how their walk ended; empty: it does not tell
  lag_ms: number;
  skew_ms?: number; // its clock minus the server's
}

export interface AgentsAnswer {
  agents: AgentState[];
  now: number; // by the server's clock, which last_seen is of
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
const COLUMNS_TYPE = "application/vnd.farflame.columns";

export function sentenceOf(status: number, body: string): string {
  try {
    const { error } = JSON.parse(body) as { error?: { message?: unknown } };
    const message = error?.message;
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
export function ask<T>(resource: string, parameters: Parameters, signal: AbortSignal): Promise<T> {
  return get(resource, parameters, signal, async (response) => {
    const type = response.headers.get("Content-Type") ?? "";
    return type.startsWith(COLUMNS_TYPE)
      ? (readColumns(await response.arrayBuffer()) as T)
      : ((await response.json()) as T);
  });
}

// The same for an answer that is a file.
export function fetchFile(resource: string, parameters: Parameters, signal: AbortSignal): Promise<Blob> {
  return get(resource, parameters, signal, (response) => response.blob());
}

async function get<T>(
  resource: string,
  parameters: Parameters,
  signal: AbortSignal,
  read: (response: Response) => Promise<T>,
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
    return await read(response);
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
