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
  error?: number; // ± of value, 95 %; absent: nothing is sampled
  nameless_error?: number; // ± of nameless_value and idle_value
  idle_error?: number;
  error_is_least?: boolean; // it lacks how the windows differ that samples of memory come from
  samples: number;
  taken: number;
  lost: number;
  lost_by: Record<string, number>;
  unwind_incomplete: number; // samples
  incomplete_by: IncompleteReason[]; // of those; the most first
  nameless_value: number; // of stacks that end in a function without a name
  nameless_modules: number; // that these functions are of
  unsymbolized: number; // samples with any frame without a name
  idle_value?: number; // of waits that are folded as idle
  cut: number; // value that max_nodes and min_share folded away
  cut_by_memory?: number; // of it and of value: the lightest stacks, which are in no frame
  hosts: number;
  nothing?: string; // why there are no samples, of a type that nobody records
  data_from?: number; // there are none, but of another time
  data_until?: number;
  reported_ms?: number; // in which they reported; absent: not known
  cpus?: number; // that they have; absent: not known
  exact?: number; // of off-cpu and run-queue: value on the whole hosts, counted without stacks
  covered?: number; // what all samples of those hosts stand for
  threads_from?: number; // of a question about threads: earlier ones are not kept
  processes_untold?: number; // of a question about processes: samples whose process nobody told of
  processes_of?: number; // of how many
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
  self_error?: Column; // ± of self and total, where they are asked for
  total_error?: Column;
}

export interface FlameAnswer {
  type: string;
  unit: string;
  from: number; // effective range, unix milliseconds
  until: number;
  names: string[]; // one that has several signatures as often
  signatures?: Record<string, string>; // by the name's number, of those that have one
  languages?: Record<string, string>; // likewise, as the sender told
  files: string[];
  modules: { name: string; build_id: string }[];
  kinds: string[];
  nodes: FlameNodes;
  accounting: Accounting;
}

export interface TopFunction {
  name: string;
  signature?: string; // the whole one, where the name does not say it
  file: string;
  line: number;
  module: string;
  build_id: string;
  language?: string; // as the sender told
  kind: string;
  self: number;
  total: number;
  self_error?: number;
  total_error?: number;
}

export interface TopAnswer {
  type: string;
  unit: string;
  from: number;
  until: number;
  functions: TopFunction[];
  // What frames have themselves, of all stacks.
  own: {
    kinds: Record<string, number>;
    kind_errors?: Record<string, number>; // ± of these
    modules: { name: string; build_id: string; value: number; error?: number }[]; // the most first
    modules_left_out: number;
  };
  found?: { value: number; error?: number; samples: number }; // by search
  accounting: Accounting;
}

// When functions ran: /heatmap?by=function.
export interface FunctionHeat {
  type: string;
  unit: string;
  sort: "self" | "total";
  from: number;
  until: number;
  first: number; // start of the first column
  column_ms: number;
  columns: number;
  reported?: [number, number, number][]; // of each column: its start, the time reported, samples lost
  functions: TopFunction[]; // by row
  cells: { row: number[]; column: number[]; value: number[]; samples: number[]; error?: number[] };
  other: { functions: number; value: number; samples: number; values: number[] }; // of what has no row
  all: number[]; // by column
  accounting: Accounting;
}

export interface DiffRow {
  name: string;
  before: number; // as norm has it
  after: number;
  before_error?: number; // ± of these
  after_error?: number;
  change: number | null; // after / before - 1; null: not in the base
  samples: number;
  base_samples: number;
  ci_low: number | null; // 95 %, of change; null: -1, or nothing that can be said
  ci_high: number | null; // null: no upper end
  state: "new" | "gone" | "changed" | "same";
  recorded: boolean; // what was recorded differs by more than 5 %, sampling alone considered
  sustained: "yes" | "no" | "too short"; // stands out from how the minutes vary
}

export interface DiffFunction extends DiffRow {
  signature?: string;
  file: string;
  line: number;
  module: string;
  build_id: string;
}

export interface DiffHost {
  host: string;
  value: number;
}

export interface DiffAnswer extends FlameAnswer {
  nodes: FlameNodes<number[]> & { base_self: number[]; base_total: number[] };
  norm: string;
  scale: number; // base values times this compare with the others
  base: { type: string; from: number; until: number; moved: boolean; accounting: Accounting };
  statistics: {
    minutes: number;
    base_minutes: number;
    hosts: number; // on both sides
    tested: number;
    recorded: number;
    sustained: number | null; // null: too short
    too_short: boolean;
    effective: number; // what one sample counts for: less than 1 where their values differ
  };
  processes: DiffRow[]; // these and the functions: the largest change first
  processes_left_out: number;
  functions: DiffFunction[];
  functions_left_out: number;
  hosts_joined: DiffHost[];
  hosts_left: DiffHost[];
}

export type FrameTree = Pick<FlameAnswer, "names" | "signatures" | "languages" | "files" | "modules" | "kinds"> & { nodes: FlameNodes<number[]> };

export interface SandwichAnswer {
  type: string;
  unit: string;
  from: number;
  until: number;
  function: string;
  total: number;
  error?: number; // ± of total
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
  error?: number; // ± of value
  samples: number;
  points: [number, number, number][]; // start of the step in unix milliseconds, value, samples
  errors?: number[]; // ± of the points' values, where they are asked for
  reported?: [number, number][]; // with host among the labels: as the answer's
}

export interface TimelineAnswer {
  type: string;
  unit: string;
  from: number;
  until: number;
  step_ms: number;
  reported?: [number, number, number][]; // start of the step, milliseconds in which hosts reported, samples lost
  series: TimelineSeries[]; // the largest first
  other?: { series: number; value: number; error?: number; samples: number; points: [number, number, number][] };
  accounting: Accounting;
}

export interface Moved {
  name: string;
  before: number; // shares of the group's value, 0…1
  after: number;
  before_error?: number; // ± of these
  after_error?: number;
}

export interface Hotspots {
  from: number;
  until: number;
  step_ms: number;
  changes: {
    labels: Record<string, string>;
    from: number;
    until: number;
    lasting: boolean;
    rose: Moved[];
    fell: Moved[];
    links: { diff?: string }; // a path: the question that compares it
  }[];
}

export interface Trace {
  trace_id: string;
  value: number;
  error?: number;
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
  cut?: boolean; // there are more, for which the server had no memory
}

export interface ModuleState {
  build_id: string;
  name: string;
  state: string;
  reason: string;
  source: string;
  quality: string;
  missing: string[]; // what the table could not have
  nameless_share: number; // 0…1, of all time: in its functions without names
  unsymbolized_share: number; // 0…1, of all samples: with any frame that it leaves without a name
  unsymbolized: number; // the same as samples
  samples: number; // with a frame in it
  functions: number;
  file_bytes: number;
  uploaded_files: number;
  uploaded_bytes: number; // on disk
  first_seen: number; // unix milliseconds; 0: not
  updated: number;
  retry_at: number;
  working?: number; // 1: its files are looked for or converted now
  download?: { source: string; bytes: number; ms: number }; // a debuginfod server is being asked
  sources: { source: string; answer: string; detail: string; bytes: number; ms: number; at: number }[];
}

export interface SymbolServer {
  source: string;
  is_down: number;
  detail: string; // of its last failure
}

export interface ModulesAnswer {
  modules: ModuleState[]; // the most wanted first
  uploads: { files: number; bytes: number; limit_bytes: number; evicted_files: number };
  symbol_dirs?: { passes: number; reading: number };
  debuginfod?: SymbolServer[];
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
  clock_jumps?: number; // times its host's clock was set by more than a second
  lacks?: Record<string, number>; // what it was denied since its start, how often
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
