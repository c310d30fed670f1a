// SPDX-License-Identifier: Apache-2.0
// Answers of the API written for tests of the page.

export const KINDS = [
  "root", "group", "native", "inline", "kernel", "interpreter", "jit", "gpu", "unresolved", "incomplete", "cut",
];
export const MODULES = [
  { name: "api-server", build_id: "8f3c1d0a7be2459f6c0d1e2f3a4b5c6d7e8f9a0b" },
  { name: "libc.so.6", build_id: "69389d485a9793dbe873f0ea2c93e02efaa9aa3d" },
  { name: "vmlinux", build_id: "c0ffee00112233445566778899aabbccddeeff00" },
  { name: "libstripped.so", build_id: "0123456789abcdef0123456789abcdef01234567" },
];
export const NS_PER_SAMPLE = 10_101_010;
const NO_MODULE = -1;

// name, kind, module, file, line, self in samples, callees
const STACKS =
  ["all", "root", NO_MODULE, "", 0, 0, [
    ["api-server", "group", NO_MODULE, "", 0, 0, [
      ["_start", "native", 0, "", 0, 0, [
        ["main", "native", 0, "src/main.cc", 41, 3, [
          ["server::EventLoop::run(int)", "native", 0, "src/event_loop.cc", 118, 10, [
            ["server::Connection::on_readable(server::Buffer const&)", "native", 0, "src/connection.cc", 230, 22, [
              ["json::Parser<char, std::allocator<char> >::parse_value(int)", "native", 0, "src/json.cc", 512, 160, [
                ["std::char_traits<char>::compare", "inline", 0, "char_traits.h", 374, 95, []],
                ["json::Parser<char, std::allocator<char> >::skip_space()", "inline", 0, "src/json.cc", 88, 120, []],
                ["__memmove_avx_unaligned_erms", "native", 1, "memmove-vec-unaligned-erms.S", 314, 44, []],
              ]],
              ["malloc", "native", 1, "malloc.c", 3287, 31, [
                ["_int_malloc", "native", 1, "malloc.c", 3850, 66, []],
              ]],
              ["libstripped.so+0x1a2b3c", "unresolved", 3, "", 0, 58, []],
            ]],
            ["epoll_wait", "native", 1, "epoll_wait.c", 30, 2, [
              ["entry_SYSCALL_64_after_hwframe", "kernel", 2, "entry_64.S", 130, 4, [
                ["do_epoll_wait", "kernel", 2, "eventpoll.c", 2300, 39, [
                  ["schedule_hrtimeout_range", "kernel", 2, "hrtimer.c", 2301, 52, []],
                ]],
              ]],
            ]],
            ["write", "native", 1, "write.c", 26, 3, [
              ["entry_SYSCALL_64_after_hwframe", "kernel", 2, "entry_64.S", 130, 2, [
                ["ksys_write", "kernel", 2, "read_write.c", 640, 5, [
                  ["tcp_sendmsg_locked", "kernel", 2, "tcp.c", 1220, 77, []],
                ]],
              ]],
            ]],
          ]],
        ]],
      ]],
      ["[incomplete: code without frame pointers]", "incomplete", NO_MODULE, "", 0, 0, [
        ["__strlen_avx2", "native", 1, "strlen-avx2.S", 52, 37, []],
      ]],
    ]],
    ["python3", "group", NO_MODULE, "", 0, 0, [
      ["handle_request", "interpreter", NO_MODULE, "app.py", 77, 40, [
        ["render", "interpreter", NO_MODULE, "app.py", 120, 66, []],
      ]],
      ["[anon]", "jit", NO_MODULE, "", 0, 9, []],
    ]],
    ["worker;odd\\name", "group", NO_MODULE, "", 0, 0, [
      ["spin", "native", 0, "spin.c", 7, 71, []],
    ]],
  ]];

function weight(stack) {
  return stack[6].reduce((sum, callee) => sum + weight(callee), stack[5]);
}

// The answer of /flamegraph, node by node; parents first.
export class Columns {
  names = [];
  files = [];
  nodes = { name: [], file: [], line: [], module: [], parent: [], self: [], total: [], kind: [] };
  #numbers = { names: new Map(), files: new Map() };

  #intern(table, text) {
    const known = this.#numbers[table].get(text);
    if (known !== undefined) {
      return known;
    }
    this.#numbers[table].set(text, this[table].length);
    return this[table].push(text) - 1;
  }

  add({ name, kind = "native", module = NO_MODULE, file = "", line = 0, self = 0, total, parent }) {
    const { nodes } = this;
    nodes.file.push(file === "" ? -1 : this.#intern("files", file));
    nodes.line.push(line);
    nodes.module.push(module);
    nodes.parent.push(parent);
    nodes.self.push(self);
    nodes.total.push(total);
    nodes.kind.push(KINDS.indexOf(kind));
    return nodes.name.push(this.#intern("names", name)) - 1;
  }

  answer(accounting) {
    const until = Math.floor(Date.now() / 60_000) * 60_000;
    return {
      type: "on-cpu", unit: "nanoseconds", from: until - 3_600_000, until,
      names: this.names, files: this.files, modules: MODULES, kinds: KINDS, nodes: this.nodes, accounting,
    };
  }
}

function flatten(stack, columns, parent) {
  const [name, kind, module, file, line, own, callees] = stack;
  const self = own * NS_PER_SAMPLE;
  const total = weight(stack) * NS_PER_SAMPLE;
  const node = columns.add({ name, kind, module, file, line, self, total, parent });
  [...callees].sort((a, b) => weight(b) - weight(a)).forEach((callee) => flatten(callee, columns, node));
}

export function accounting(changed = {}) {
  return {
    value: weight(STACKS) * NS_PER_SAMPLE, samples: weight(STACKS), taken: weight(STACKS) + 12, lost: 12,
    lost_by: { ring_full: 9, queue: 3, unexplained: 0 },
    unwind_incomplete: 37,
    incomplete_by: [
      { reason: "code without frame pointers", samples: 30,
        modules: [{ name: "libssl.so.3", build_id: "ab".repeat(20), samples: 24 },
                  { name: "", build_id: "cd".repeat(20), samples: 6 }] },
      { reason: "32-bit process", samples: 7, modules: [] },
    ],
    nameless_value: 29 * NS_PER_SAMPLE, nameless_modules: 1, unsymbolized: 58, cut: 0, hosts: 2,
    ...changed,
  };
}

function small() {
  const columns = new Columns();
  flatten(STACKS, columns, -1);
  return columns.answer(accounting());
}

function empty() {
  const columns = new Columns();
  columns.add({ name: "all", kind: "root", total: 0, parent: -1 });
  return columns.answer(accounting({
    value: 0, samples: 0, taken: 0, lost: 0, lost_by: {}, unwind_incomplete: 0, incomplete_by: [], nameless_value: 0, nameless_modules: 0, unsymbolized: 0, hosts: 0,
  }));
}

// A tree of so many frames: wide, up to 60 deep, sizes unequal as in life; the same one each time
// (the generator is Numerical Recipes' LCG).
function grow(columns, count, total) {
  let seed = 7;
  let made = 0;
  const open = [[0, total, 0]];
  while (open.length > 0 && made < count) {
    const at = made % 3 === 0 ? 0 : made % open.length;
    const [parent, value, depth] = open[at];
    open[at] = open[open.length - 1];
    open.pop();
    const callees = depth < 5 ? 4 : 2;
    let left = value;
    for (let k = 0; k < callees && made < count; k++) {
      seed = (seed * 1_664_525 + 1_013_904_223) % 2 ** 32;
      const share = Math.floor(k < callees - 1 ? left * (((seed % 900) + 50) / 1000) : left * 0.9);
      if (share < 1) {
        break;
      }
      left -= share;
      const name = `module${seed % 40}::Class${seed % 5003}::method_${seed % 997}(int, char const*)`;
      const kind = seed % 11 === 0 ? "kernel" : "native";
      const node = columns.add({ name, kind, module: seed % 4, file: "src/a.cc", line: seed % 900, total: share, parent });
      made++;
      if (depth < 60) {
        open.push([node, share, depth + 1]);
      }
    }
  }
}

function big() {
  const columns = new Columns();
  const total = 2 ** 50;
  columns.add({ name: "all", kind: "root", total, parent: -1 });
  grow(columns, 1_000_000, total);
  return columns.answer(accounting({ value: total, samples: 20_000_000 }));
}

export const HOSTILE = '<img src=x onerror="document.body.dataset.owned=1">;\n\u202e</script><b>';
export const LONG = "very_" + "long_".repeat(818) + "name"; // 4 KB

function hostile() {
  const columns = new Columns();
  const unit = NS_PER_SAMPLE;
  columns.add({ name: "all", kind: "root", total: 4 * unit, parent: -1 });
  const group = columns.add({ name: HOSTILE, kind: "group", total: 4 * unit, parent: 0 });
  const frame = { module: 0, file: HOSTILE, line: 1, parent: group };
  columns.add({ ...frame, name: HOSTILE, self: 3 * unit, total: 3 * unit });
  columns.add({ ...frame, name: LONG, self: unit, total: unit });
  return columns.answer(accounting({ value: 4 * unit, samples: 4, lost_by: { [HOSTILE]: 12 }, processes_untold: 2, processes_of: 8 }));
}

function cut() {
  const columns = new Columns();
  const unit = NS_PER_SAMPLE;
  const frame = { module: 0, file: "o.c" };
  columns.add({ name: "all", kind: "root", total: 100 * unit, parent: -1 });
  columns.add({ name: "job", kind: "group", total: 100 * unit, parent: 0 });
  columns.add({ ...frame, name: "outer", line: 1, self: 10 * unit, total: 100 * unit, parent: 1 });
  columns.add({ ...frame, name: "wide", line: 2, total: 60 * unit, parent: 2 });
  columns.add({ name: "[cut]", kind: "cut", self: 60 * unit, total: 60 * unit, parent: 3 });
  columns.add({ ...frame, name: "other", line: 3, self: 30 * unit, total: 30 * unit, parent: 2 });
  return columns.answer(accounting({ value: 100 * unit, samples: 100, cut: 60 * unit }));
}

// The subtree of job;outer;wide, with the way down as the real server sends it; nothing of any other.
export function cutDetail(root) {
  if (root !== "job;outer;wide") {
    return empty();
  }
  const columns = new Columns();
  const unit = NS_PER_SAMPLE;
  let parent = -1;
  for (const [name, kind] of [["all", "root"], ["job", "group"], ["outer", "native"], ["wide", "native"]]) {
    parent = columns.add({ name, kind, total: 60 * unit, parent });
  }
  columns.add({ name: "fine_a", module: 0, file: "o.c", line: 20, self: 45 * unit, total: 45 * unit, parent });
  columns.add({ name: "fine_b", module: 0, file: "o.c", line: 21, self: 15 * unit, total: 15 * unit, parent });
  return columns.answer(accounting({ value: 60 * unit, samples: 60 }));
}

function damaged() {
  const answer = small();
  answer.nodes.parent[5] = 4711;
  return answer;
}

// By the service of the question: match={service="big"} is a million frames.
const MAKERS = { small, empty, big, hostile, cut, damaged };
const made = new Map();

export function scene(name) {
  const key = name in MAKERS ? name : "small";
  if (!made.has(key)) {
    made.set(key, MAKERS[key]());
  }
  return made.get(key);
}

// Self and total by function, recursion counted once; of the first few thousand nodes.
export function topOf({ type, unit, from, until, names, files, nodes, accounting: counted }) {
  const found = new Map();
  const end = Math.min(nodes.name.length, 3000);
  for (let i = 1; i < end; i++) {
    if (["group", "incomplete", "cut"].includes(KINDS[nodes.kind[i]])) {
      continue;
    }
    const name = nodes.name[i];
    let above = false;
    for (let at = nodes.parent[i]; at > 0 && !above; at = nodes.parent[at]) {
      above = nodes.name[at] === name;
    }
    const module = MODULES[nodes.module[i]] ?? { name: "", build_id: "" };
    const row = found.get(name) ?? {
      name: names[name], file: files[nodes.file[i]] ?? "", line: nodes.line[i],
      module: module.name, build_id: module.build_id, kind: KINDS[nodes.kind[i]], self: 0, total: 0,
    };
    row.self += nodes.self[i];
    row.total += above ? 0 : nodes.total[i];
    found.set(name, row);
  }
  const functions = [...found.values()].sort((a, b) => b.self - a.self);
  return { type, unit, from, until, functions, own: ownOf(nodes), accounting: counted };
}

function ownOf(nodes) {
  const kinds = {};
  const modules = MODULES.map((module) => ({ ...module, value: 0 }));
  for (let i = 0; i < nodes.name.length; i++) {
    const kind = KINDS[nodes.kind[i]];
    kinds[kind] = (kinds[kind] ?? 0) + nodes.self[i];
    if (nodes.module[i] >= 0) {
      modules[nodes.module[i]].value += nodes.self[i];
    }
  }
  return { kinds, modules: modules.filter(({ value }) => value > 0).sort((a, b) => b.value - a.value), modules_left_out: 0 };
}

// What a search finds: each stack once.
export function foundIn({ names, nodes, accounting: { value: all, samples } }, expression) {
  const text = expression.replace(/^\(\?i\)/, "");
  const pattern = new RegExp(text, text === expression ? "" : "i");
  const isIn = [];
  let value = 0;
  for (let i = 0; i < nodes.name.length; i++) {
    const above = i > 0 && isIn[nodes.parent[i]];
    isIn.push(above || (i > 0 && pattern.test(names[nodes.name[i]])));
    value += isIn[i] && !above ? nodes.total[i] : 0;
  }
  return { value, samples: Math.round((value * samples) / all) };
}

export const LABELS = {
  process: [["api-server", 828], ["python3", 115], ["worker;odd\\name", 71]],
  service: [["checkout", 800], ["batch", 214]],
  host: [["web-1", 600], ["web-2", 414]],
  pid: [["4711", 700], ["1", 314]],
};

// A time line of the values of one label, or of several that go together row by row.
export function sharesOf(labels, { group_by, limit, match }) {
  const names = group_by.split(",");
  const rows = (labels[names[0]] ?? []).map(([, samples], i) => ({
    labels: Object.fromEntries(names.map((name) => [name, labels[name]?.[i]?.[0] ?? ""])),
    value: samples * NS_PER_SAMPLE, samples, points: [],
  }));
  const [, text] = new RegExp(`${names[0]}=~"\\(\\?is\\)(.*?)"`).exec(match ?? "") ?? [];
  const found = rows.filter((row) => text === undefined || new RegExp(`^(?:${text.replace(/\\\\/g, "\\")})$`, "is").test(row.labels[names[0]]));
  const [series, rest] = [found.slice(0, Number(limit)), found.slice(Number(limit))];
  const sum = (list, key) => list.reduce((all, row) => all + row[key], 0);
  const value = sum(found, "value");
  const other = rest.length === 0 ? {} : { other: { series: rest.length, value: sum(rest, "value"), samples: sum(rest, "samples"), points: [] } };
  const until = Math.floor(Date.now() / 60_000) * 60_000;
  return { type: "on-cpu", unit: "nanoseconds", from: until - 3_600_000, until, step_ms: 3_600_000, series, ...other, accounting: accounting({ value }) };
}

const KNOWN_MODULE = { missing: [], nameless_share: 0, nameless_value: 0, unsymbolized: 0, functions: 0, file_bytes: 0, uploaded_files: 0, uploaded_bytes: 0, first_seen: 0, updated: 0, retry_at: 0, sources: [] };
export const MODULE_STATES = [
  { ...KNOWN_MODULE, build_id: MODULES[3].build_id, name: "libstripped.so", state: "missing", reason: "no source has it",
    source: "", quality: "none", nameless_share: 0.0286, unsymbolized_share: 0.057, unsymbolized: 58, samples: 58,
    sources: [{ source: "upload", answer: "not_found", detail: "", bytes: 0, ms: 0, at: 1_000_000 }] },
  { ...KNOWN_MODULE, build_id: MODULES[1].build_id, name: "libc.so.6", state: "ready", reason: "",
    source: "directory", quality: "dwarf", unsymbolized_share: 0, samples: 183, functions: 3000, file_bytes: 6_000_000 },
];
