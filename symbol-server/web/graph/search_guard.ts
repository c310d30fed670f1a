// SPDX-License-Identifier: Apache-2.0
// Regular expressions whose time may explode: browsers match by trying ways one after the other, and
// "(a+)+b" has more ways than anybody waits for. Those are tried in a worker that is stopped in time.

export const LIMIT_MS = 150;

// Whether an expression can take more than a few passes over a text: a repetition inside of a
// repetition, or more than so many repetitions, which may follow each other. Pure.
export function mayExplode(source: string, most = 1): boolean {
  let unbounded = 0;
  const open: { repeats: boolean; forks: boolean }[] = [{ repeats: false, forks: false }];
  let closed: { repeats: boolean; forks: boolean } | null = null;
  for (let i = 0; i < source.length; i++) {
    const c = source[i];
    const group = closed;
    closed = null;
    if (c === "\\") {
      if (/[1-9k]/.test(source[i + 1] ?? "")) {
        return true; // back references
      }
      i++;
    } else if (c === "[") {
      i = endOfClass(source, i);
    } else if (c === "(") {
      open.push({ repeats: false, forks: false });
      if (source[i + 1] === "?") {
        i++;
      }
    } else if (c === ")" && open.length > 1) {
      closed = open.pop() as { repeats: boolean; forks: boolean };
      const outer = open[open.length - 1];
      outer.repeats ||= closed.repeats;
    } else if (c === "|") {
      open[open.length - 1].forks = true;
    } else if (c === "*" || c === "+" || c === "{") {
      if (group !== null && (group.repeats || group.forks)) {
        return true;
      }
      unbounded++;
      open[open.length - 1].repeats = true;
    }
  }
  return unbounded > most;
}

function endOfClass(source: string, start: number): number {
  let i = start + 1;
  while (i < source.length && source[i] !== "]") {
    i += source[i] === "\\" ? 2 : 1;
  }
  return i;
}

// It says that it is there, that it begins, and what it found.
const WORKER = `onmessage = ({ data: { names, source, flags, limit } }) => {
  postMessage("begins");
  const expression = new RegExp(source, flags);
  const out = new Uint8Array(names.length);
  for (let i = 0; i < names.length; i++) {
    out[i] = expression.test(names[i].slice(0, limit)) ? 1 : 0;
  }
  postMessage(out, [out.buffer]);
};
postMessage("there");`;
const START_MS = 3000; // for a worker to begin at all

// Per name whether it matches; null: it took more than LIMIT_MS, or the browser has no worker for the
// page. Aborted: null too.
export function matchGuarded(
  names: readonly string[],
  expression: RegExp,
  limit: number,
  signal: AbortSignal,
): Promise<Uint8Array | null> {
  return new Promise((done) => {
    const url = URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" }));
    let worker: Worker;
    try {
      worker = new Worker(url);
    } catch {
      URL.revokeObjectURL(url);
      done(null);
      return;
    }
    let timer = 0;
    const end = (found: Uint8Array | null) => {
      clearTimeout(timer);
      worker.terminate();
      URL.revokeObjectURL(url);
      done(found);
    };
    timer = window.setTimeout(() => end(null), START_MS);
    signal.addEventListener("abort", () => end(null), { once: true });
    worker.addEventListener("error", () => end(null));
    worker.addEventListener("message", ({ data }: MessageEvent<Uint8Array | "there" | "begins">) => {
      if (data === "there") {
        worker.postMessage({ names, source: expression.source, flags: expression.flags, limit });
      } else if (data === "begins") {
        clearTimeout(timer);
        timer = window.setTimeout(() => end(null), LIMIT_MS);
      } else {
        end(data);
      }
    });
  });
}
