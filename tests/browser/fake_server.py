# SPDX-License-Identifier: Apache-2.0
"""A stand-in for farflame-server that serves the built page and answers written for tests.

The service label of the question chooses the answer, so that one server plays every part:
match={service="big"} is a million frames, "error" a refusal, and so on (SCENES below).
"""

import gzip
import http.server
import json
import re
import threading
import time
import urllib.parse

KINDS = ["root", "group", "native", "inline", "kernel", "interpreter", "jit", "gpu", "unresolved",
         "incomplete", "cut"]
# What design and server promise: the page has to work under it.
CSP = ("default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
       "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'")

MODULES = [
    {"name": "api-server", "build_id": "8f3c1d0a7be2459f6c0d1e2f3a4b5c6d7e8f9a0b"},
    {"name": "libc.so.6", "build_id": "69389d485a9793dbe873f0ea2c93e02efaa9aa3d"},
    {"name": "vmlinux", "build_id": "c0ffee00112233445566778899aabbccddeeff00"},
    {"name": "libstripped.so", "build_id": "0123456789abcdef0123456789abcdef01234567"},
]

# (name, kind, module, file, line, self in samples of 10.1 ms, children)
STACKS = ("all", "root", None, "", 0, 0, [
    ("api-server", "group", None, "", 0, 0, [
        ("_start", "native", 0, "", 0, 0, [
            ("main", "native", 0, "src/main.cc", 41, 3, [
                ("server::EventLoop::run(int)", "native", 0, "src/event_loop.cc", 118, 10, [
                    ("server::Connection::on_readable(server::Buffer const&)", "native", 0,
                     "src/connection.cc", 230, 22, [
                         ("json::Parser<char, std::allocator<char> >::parse_value(int)", "native",
                          0, "src/json.cc", 512, 160, [
                              ("std::char_traits<char>::compare", "inline", 0, "char_traits.h",
                               374, 95, []),
                              ("json::Parser<char, std::allocator<char> >::skip_space()", "inline",
                               0, "src/json.cc", 88, 120, []),
                              ("__memmove_avx_unaligned_erms", "native", 1,
                               "memmove-vec-unaligned-erms.S", 314, 44, []),
                          ]),
                         ("malloc", "native", 1, "malloc.c", 3287, 31, [
                             ("_int_malloc", "native", 1, "malloc.c", 3850, 66, []),
                         ]),
                         ("libstripped.so+0x1a2b3c", "unresolved", 3, "", 0, 58, []),
                     ]),
                    ("epoll_wait", "native", 1, "epoll_wait.c", 30, 2, [
                        ("entry_SYSCALL_64_after_hwframe", "kernel", 2, "entry_64.S", 130, 4, [
                            ("do_epoll_wait", "kernel", 2, "eventpoll.c", 2300, 39, [
                                ("schedule_hrtimeout_range", "kernel", 2, "hrtimer.c", 2301, 52,
                                 []),
                            ]),
                        ]),
                    ]),
                    ("write", "native", 1, "write.c", 26, 3, [
                        ("entry_SYSCALL_64_after_hwframe", "kernel", 2, "entry_64.S", 130, 2, [
                            ("ksys_write", "kernel", 2, "read_write.c", 640, 5, [
                                ("tcp_sendmsg_locked", "kernel", 2, "tcp.c", 1220, 77, []),
                            ]),
                        ]),
                    ]),
                ]),
            ]),
        ]),
        ("[incomplete: code without frame pointers]", "incomplete", None, "", 0, 0, [
            ("__strlen_avx2", "native", 1, "strlen-avx2.S", 52, 37, []),
        ]),
    ]),
    ("python3", "group", None, "", 0, 0, [
        ("handle_request", "interpreter", None, "app.py", 77, 40, [
            ("render", "interpreter", None, "app.py", 120, 66, []),
        ]),
        ("[anon]", "jit", None, "", 0, 9, []),
    ]),
    ("worker;odd\\name", "group", None, "", 0, 0, [
        ("spin", "native", 0, "spin.c", 7, 71, []),
    ]),
])
NS_PER_SAMPLE = 10_101_010


class Columns:
    def __init__(self):
        self.names, self.files, self.modules = [], [], MODULES
        self.name_of, self.file_of = {}, {}
        self.nodes = {key: [] for key in
                      ("name", "file", "line", "module", "parent", "self", "total", "kind")}

    def intern(self, table, index, text):
        if text not in index:
            index[text] = len(table)
            table.append(text)
        return index[text]

    def add(self, name, kind, module, file, line, self_value, total, parent):
        n = self.nodes
        n["name"].append(self.intern(self.names, self.name_of, name))
        n["file"].append(self.intern(self.files, self.file_of, file) if file else -1)
        n["line"].append(line)
        n["module"].append(-1 if module is None else module)
        n["parent"].append(parent)
        n["self"].append(self_value)
        n["total"].append(total)
        n["kind"].append(KINDS.index(kind))
        return len(n["name"]) - 1


def weight(stack):
    return stack[5] + sum(weight(child) for child in stack[6])


def flatten(stack, columns, parent):
    name, kind, module, file, line, own, children = stack
    number = columns.add(name, kind, module, file, line, own * NS_PER_SAMPLE,
                         weight(stack) * NS_PER_SAMPLE, parent)
    for child in sorted(children, key=weight, reverse=True):
        flatten(child, columns, number)


INCOMPLETE_BY = [
    {"reason": "code without frame pointers", "samples": 30,
     "modules": [{"name": "libssl.so.3", "build_id": "ab" * 20, "samples": 24},
                 {"name": "", "build_id": "cd" * 20, "samples": 6}]},
    {"reason": "32-bit process", "samples": 7, "modules": []}]


def accounting(**changed):
    out = {"value": weight(STACKS) * NS_PER_SAMPLE, "samples": weight(STACKS),
           "taken": weight(STACKS) + 12, "lost": 12,
           "lost_by": {"ring_full": 9, "queue": 3, "unexplained": 0},
           "unwind_incomplete": 37, "incomplete_by": INCOMPLETE_BY, "unsymbolized": 58, "cut": 0, "hosts": 2}
    out.update(changed)
    return out


def answer_of(columns, counted):
    until = int(time.time() * 1000) // 60000 * 60000
    return {"type": "on-cpu", "unit": "nanoseconds", "from": until - 3600000, "until": until,
            "names": columns.names, "files": columns.files, "modules": columns.modules,
            "kinds": KINDS, "nodes": columns.nodes, "accounting": counted}


def small():
    columns = Columns()
    flatten(STACKS, columns, -1)
    return answer_of(columns, accounting())


def empty():
    columns = Columns()
    columns.add("all", "root", None, "", 0, 0, 0, -1)
    return answer_of(columns, accounting(value=0, samples=0, taken=0, lost=0, lost_by={},
                                         unwind_incomplete=0, incomplete_by=[], unsymbolized=0, hosts=0))


def grow(columns, count, parent, total, salt):
    """A tree of about count frames below parent: wide, deep to 60, sizes unequal as in life."""
    # A fixed generator (Numerical Recipes' LCG), so that every run draws the same picture.
    seed = salt
    open_nodes = [(parent, total, 0)]
    made = 0
    while open_nodes and made < count:
        at, value, depth = open_nodes.pop(made % len(open_nodes) if made % 3 else 0)
        left = value
        children = 4 if depth < 5 else 2
        for k in range(children):
            seed = (seed * 1664525 + 1013904223) & 0xFFFFFFFF
            share = left * (seed % 900 + 50) // 1000 if k < children - 1 else left * 9 // 10
            if share < 1 or made >= count:
                break
            left -= share
            name = f"module{seed % 40}::Class{seed % 5003}::method_{seed % 997}(int, char const*)"
            node = columns.add(name, "kernel" if seed % 11 == 0 else "native", seed % 4,
                               "src/a.cc", seed % 900, 0, share, at)
            made += 1
            if depth < 60:
                open_nodes.append((node, share, depth + 1))
    return made


def big():
    columns = Columns()
    total = 1 << 50
    columns.add("all", "root", None, "", 0, 0, total, -1)
    grow(columns, 1_000_000, 0, total, 7)
    return answer_of(columns, accounting(value=total, samples=20_000_000))


HOSTILE = '<img src=x onerror="document.body.dataset.owned=1">;\n\u202e</script><b>'


def hostile():
    columns = Columns()
    unit = NS_PER_SAMPLE
    columns.add("all", "root", None, "", 0, 0, 3 * unit, -1)
    columns.add(HOSTILE, "group", None, "", 0, 0, 3 * unit, 0)
    columns.add(HOSTILE, "native", 0, HOSTILE, 1, 3 * unit, 3 * unit, 1)
    return answer_of(columns, accounting(value=3 * unit, samples=3, lost_by={HOSTILE: 12}))


def cut_base():
    columns = Columns()
    unit = NS_PER_SAMPLE
    columns.add("all", "root", None, "", 0, 0, 100 * unit, -1)
    columns.add("job", "group", None, "", 0, 0, 100 * unit, 0)
    columns.add("outer", "native", 0, "o.c", 1, 10 * unit, 100 * unit, 1)
    columns.add("wide", "native", 0, "o.c", 2, 0, 60 * unit, 2)
    columns.add("[cut]", "cut", None, "", 0, 60 * unit, 60 * unit, 3)
    columns.add("other", "native", 0, "o.c", 3, 30 * unit, 30 * unit, 2)
    return answer_of(columns, accounting(value=100 * unit, samples=100, cut=60 * unit))


def cut_detail(root):
    """The subtree of job;outer;wide, with the way down as the real server sends it."""
    if root != "job;outer;wide":
        return None
    columns = Columns()
    unit = NS_PER_SAMPLE
    parent = -1
    for name, kind in (("all", "root"), ("job", "group"), ("outer", "native"), ("wide", "native")):
        parent = columns.add(name, kind, None, "", 0, 0, 60 * unit, parent)
    columns.add("fine_a", "native", 0, "o.c", 20, 45 * unit, 45 * unit, parent)
    columns.add("fine_b", "native", 0, "o.c", 21, 15 * unit, 15 * unit, parent)
    return answer_of(columns, accounting(value=60 * unit, samples=60))


def top_of(answer):
    """Self and total per function, recursion counted once; enough for trees of a few thousand."""
    nodes, found = answer["nodes"], {}
    for i in range(1, min(len(nodes["name"]), 3000)):
        if KINDS[nodes["kind"][i]] in ("group", "incomplete", "cut"):
            continue
        name, above, parent = nodes["name"][i], False, nodes["parent"][i]
        while parent > 0 and not above:
            above = nodes["name"][parent] == name
            parent = nodes["parent"][parent]
        module = nodes["module"][i]
        f = found.setdefault(name, {
            "name": answer["names"][name], "line": nodes["line"][i],
            "file": answer["files"][nodes["file"][i]] if nodes["file"][i] >= 0 else "",
            "module": MODULES[module]["name"] if module >= 0 else "",
            "build_id": MODULES[module]["build_id"] if module >= 0 else "",
            "self": 0, "total": 0})
        f["self"] += nodes["self"][i]
        f["total"] += 0 if above else nodes["total"][i]
    functions = sorted(found.values(), key=lambda f: -f["self"])
    return {"type": answer["type"], "unit": answer["unit"], "functions": functions,
            "accounting": answer["accounting"]}


LABELS = {
    "process": [("api-server", 828), ("python3", 115), ("worker;odd\\name", 71)],
    "service": [("checkout", 800), ("batch", 214)],
    "host": [("web-1", 600), ("web-2", 414)],
}
MODULE_STATES = [
    {"build_id": MODULES[3]["build_id"], "name": "libstripped.so", "state": "missing",
     "reason": "no source has it", "source": "", "quality": "", "unsymbolized_share": 0.057},
    {"build_id": MODULES[1]["build_id"], "name": "libc.so.6", "state": "ready", "reason": "",
     "source": "directory", "quality": "dwarf", "unsymbolized_share": 0.0},
]
# What each resource takes; like the real server, another parameter is an error.
SELECTS = {"type", "from", "until", "match"}
FLAME = SELECTS | {"group_by", "focus", "ignore", "hide", "invert", "root", "demangle", "value"}
KNOWN = {
    "/api/v1/flamegraph": FLAME | {"max_nodes", "format"}, "/api/v1/top": FLAME | {"limit", "sort"},
    "/api/v1/types": SELECTS, "/api/v1/labels/": SELECTS, "/api/v1/modules": SELECTS,
    "/api/v1/agents": set(),
}
SCENES = {}


def built(name, make):
    """Answers are made once: a million frames take a second or two."""
    if name not in SCENES:
        answer = make()
        SCENES[name] = (json.dumps(answer, separators=(",", ":")).encode(),
                        json.dumps(top_of(answer)).encode())
    return SCENES[name]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, body, status=200, kind="application/json", encoding=None, headers=()):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if encoding:
            self.send_header("Content-Encoding", encoding)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def error(self, status, code, message):
        self.send(json.dumps({"error": {"code": code, "message": message}}).encode(), status)

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        self.server.asked.append((url.path, query))
        if url.path == "/":
            self.send(self.server.page, kind="text/html; charset=utf-8", encoding="gzip",
                      headers=[("Content-Security-Policy", CSP)])
            return
        known = KNOWN.get(re.sub(r"(labels/).*", r"\1", url.path))
        if known is not None and not known.issuperset(query):
            self.error(422, "bad_parameter", f"unknown parameter among {sorted(query)}")
            return
        scene = re.search(r'service="(\w+)"', query.get("match", ""))
        scene = scene.group(1) if scene else "small"
        if url.path in ("/api/v1/flamegraph", "/api/v1/top"):
            self.samples(url.path, scene, query)
        elif url.path == "/api/v1/types":
            self.send(json.dumps({"types": [
                {"name": "on-cpu", "unit": "nanoseconds", "samples": 1014}]}).encode())
        elif url.path.startswith("/api/v1/labels/"):
            values = LABELS.get(url.path.rsplit("/", 1)[1], [])
            self.send(json.dumps({"values": [
                {"value": v, "samples": n} for v, n in values]}).encode())
        elif url.path == "/api/v1/modules":
            self.send(json.dumps({"modules": self.server.modules}).encode())
        elif url.path == "/api/v1/agents":
            self.send(json.dumps({"agents": self.server.agents}).encode())
        else:
            self.error(404, "not_found", f"There is nothing at {url.path}.")

    def samples(self, path, scene, query):
        top = path.endswith("top")
        if self.server.broken:
            self.close_connection = True
            return
        if scene == "error":
            self.error(422, "bad_parameter", "Parameter match: position 9: a quote is missing.")
            return
        if scene == "html":
            self.send(b"<html>502 Bad Gateway</html>", 502, "text/html")
            return
        if scene == "slow":
            time.sleep(1.5)
        if scene == "damaged":
            answer = small()
            answer["nodes"]["parent"][5] = 4711
            self.send(json.dumps(answer).encode())
            return
        if scene == "cut" and query.get("root") and not top:
            answer = cut_detail(query["root"])
            self.send(json.dumps(answer or empty()).encode())
            return
        make = {"big": big, "empty": empty, "cut": cut_base, "hostile": hostile}.get(scene, small)
        body = built(scene if make is not small else "small", make)[1 if top else 0]
        self.send(body)


def start(page_file):
    """Serves on a free loopback port until stopped; .port, .asked, .agents, .broken, .stop()."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    with open(page_file, "rb") as file:
        page = file.read()
    server.page = page if page_file.endswith(".gz") else gzip.compress(page)
    server.asked, server.agents, server.broken = [], [], False
    server.modules = MODULE_STATES
    server.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def stop():
        server.shutdown()
        server.server_close()

    server.stop = stop
    return server


if __name__ == "__main__":
    import sys
    running = start(sys.argv[1])
    print(f"http://127.0.0.1:{running.port}/", flush=True)
    threading.Event().wait()
