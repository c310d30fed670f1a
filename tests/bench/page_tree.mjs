// SPDX-License-Identifier: Apache-2.0
// A profile of so many frames, shaped as large ones are (few wide frames, a long tail under a pixel, some
// thousand names), in the formats of farflame, speedscope and d3-flame-graph.

const KINDS = ["root", "group", "native", "inline", "kernel", "interpreter", "jit", "gpu", "unresolved", "incomplete", "cut"];
const SAMPLE = 10_101_010; // nanoseconds at 99 Hz
const DEEPEST = 90;

function chance(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

// Breadth first, children neighbours; self and total in samples.
export function makeTree(count) {
  const random = chance(7);
  const parent = [-1];
  const total = [count * 20];
  const depth = [0];
  const self = [];
  for (let node = 0; node < parent.length; node++) {
    let left = total[node];
    const wanted = depth[node] < 4 ? 6 : random() < 0.45 ? 1 : 2 + Math.floor(random() * 4);
    const keeps = random() < 0.3 && depth[node] > 3 ? Math.floor(left * random() * 0.3) : 0;
    left -= keeps;
    let own = keeps;
    for (let k = 0; k < wanted && left > 0 && depth[node] < DEEPEST; k++) {
      if (parent.length >= count) {
        break;
      }
      const share = k === wanted - 1 ? left : Math.max(1, Math.floor(left * random() ** 1.5));
      parent.push(node);
      total.push(share);
      depth.push(depth[node] + 1);
      left -= share;
    }
    own += left;
    self.push(own);
  }
  const names = [];
  const name = new Int32Array(parent.length);
  const NAMES = Math.max(500, Math.floor(count / 20));
  for (let i = 0; i < NAMES; i++) {
    names.push(`module${i % 40}::Class${i % 503}<std::vector<int>>::method_${i}(int, char const*)`);
  }
  for (let i = 1; i < parent.length; i++) {
    name[i] = Math.floor(random() ** 2 * NAMES);
  }
  return { parent, total, self, depth, name, names };
}

// format=columns of our server (schema/README.md).
export function asColumns({ parent, total, self, name, names }) {
  const count = parent.length;
  const all = total[0];
  const head = {
    type: "on-cpu",
    unit: "nanoseconds",
    from: 1_764_000_000_000,
    until: 1_764_003_600_000,
    nodes: count,
    columns: { self: "f64", total: "f64", name: "i32", file: "i32", line: "i32", module: "i32", parent: "i32", kind: "u8" },
    names: names.length,
    files: 1,
    modules: [{ name: "server", build_id: "ab".repeat(20) }],
    kinds: KINDS,
    accounting: {
      value: all * SAMPLE, samples: all, taken: all, lost: 0, lost_by: {}, unwind_incomplete: 0, incomplete_by: [],
      nameless_value: 0, nameless_modules: 0, unsymbolized: 0, cut: 0, hosts: 1,
    },
  };
  let json = JSON.stringify(head);
  json += " ".repeat((8 - (Buffer.byteLength(json) % 8)) % 8);
  const length = Buffer.alloc(8);
  length.writeUInt32LE(Buffer.byteLength(json));
  const of = (column) => Buffer.from(column.buffer, column.byteOffset, column.byteLength);
  const scaled = (values) => of(Float64Array.from(values, (value) => value * SAMPLE));
  const kind = Uint8Array.from(parent, (above, i) => (i === 0 ? 0 : i % 9 === 0 ? 4 : i % 7 === 0 ? 3 : 2));
  return Buffer.concat([
    Buffer.from("FFCOLS1\n"), length, Buffer.from(json), scaled(self), scaled(total), of(name),
    of(new Int32Array(count)), of(Int32Array.from(parent, (_, i) => i % 900)), of(new Int32Array(count)),
    of(Int32Array.from(parent)), of(kind), Buffer.from([...names, "src/server.cc"].map((text) => text + "\0").join("")),
  ]);
}

// speedscope's evented profile: https://www.speedscope.app/file-format-schema.json
export function asSpeedscope(tree) {
  const { parent, total, name, names } = tree;
  const children = parent.map(() => []);
  parent.forEach((above, i) => above >= 0 && children[above].push(i));
  const events = [];
  let at = 0;
  const stack = [[0, 0]]; // node, next child
  events.push({ type: "O", frame: name[0], at: 0 });
  const ends = [total[0]];
  while (stack.length > 0) {
    const top = stack[stack.length - 1];
    const child = children[top[0]][top[1]++];
    if (child === undefined) {
      at = ends.pop();
      events.push({ type: "C", frame: name[top[0]], at });
      stack.pop();
    } else {
      events.push({ type: "O", frame: name[child], at });
      ends.push(at + total[child]);
      stack.push([child, 0]);
    }
  }
  return JSON.stringify({
    $schema: "https://www.speedscope.app/file-format-schema.json",
    shared: { frames: names.map((text) => ({ name: text })) },
    profiles: [{ type: "evented", name: "on-cpu", unit: "none", startValue: 0, endValue: total[0], events }],
  });
}

// Nested objects.
export function asNested({ parent, total, name, names }) {
  const nodes = parent.map((_, i) => ({ name: names[name[i]], value: total[i], children: [] }));
  parent.forEach((above, i) => above >= 0 && nodes[above].children.push(nodes[i]));
  return JSON.stringify(nodes[0]);
}
