# SPDX-License-Identifier: Apache-2.0
"""One question, every format: what others' readers find in each (go tool pprof, protoc, XML, CSV and JSON
parsers) sums up to what the folded stacks do, and a stranger's names stay names."""
import collections
import csv
import gzip
import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import time
import xml.etree.ElementTree

from harness import BUILD, NAME, PROGRAMS, WORK, Agent, Server, build_programs, check, end, equal, note, run, skip, start

sys.path.insert(0, "tests/tools")
from otlp_writer import Request  # noqa: E402

PERIOD = 10101010
LIBRARY = "00112233445566778899aabbccddeeff00112233"
WHEN_NS = time.time_ns() // 60_000_000_000 * 60_000_000_000 - 120 * 10**9 + 5 * 10**9
HOSTILE = ["</script><script>window.pwned=1</script>", "]]><script>window.pwned=2</script>", "<!--<script>",
           "\"'><img src=x onerror=window.pwned=3>", "=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1",
           "a,b\"c\r\nd", "javascript:window.pwned=4", "`code` | [x](javascript:1) <b>&amp;", "ctrl\x01\x1b\x7f",
           "\u2028\u2029\ufffe", "@profile@", "%s%n", "\\", "__proto__", "a;b", "😀" * 300, "x" * 5000]
FORMATS = {"folded": "text/plain", "pprof": "application/octet-stream", "speedscope": "application/json",
           "svg": "image/svg+xml", "html": "text/html", "csv": "text/csv", "md": "text/markdown"}


def ask(server, format_, path="/api/v1/flamegraph", **parameters):
    status, headers, body = server.get(path, format=format_, timeout=60, **parameters)
    if status != 200:
        raise RuntimeError("%s: %d %s" % (format_, status, body[:300]))
    return headers, body


# --- what each reader finds: {stack of names, root first: value} ---

def folded_name(name):
    return re.sub(r"[;\x00-\x1f\x7f\ufffd]", "_", name)


def of_tree(nodes, names):
    """From columns: names by node, kinds that folded marks left as they are."""
    paths, stacks = [], collections.Counter()
    for i, parent in enumerate(nodes["parent"]):
        paths.append(() if i == 0 else paths[parent] + (folded_name(names[i]),))
        if nodes["self"][i]:
            stacks[paths[i] or ("all",)] += nodes["self"][i]
    return stacks


def of_folded(body):
    stacks = collections.Counter()
    for line in body.decode().rstrip("\n").split("\n"):
        frames, value = line.rsplit(" ", 1)
        stacks[tuple(re.sub(r"_\[k\]$", "", frame) for frame in frames.split(";"))] += int(value)
    return stacks


def of_speedscope(body):
    """Replays the events as the importer of speedscope does: frames close in the order they opened."""
    file = json.loads(body)
    equal(file["$schema"], "https://www.speedscope.app/file-format-schema.json", "speedscope: its schema is named")
    frames, (profile,) = file["shared"]["frames"], file["profiles"]
    good = all(set(frame) <= {"name", "file", "line", "col"} and isinstance(frame["name"], str) and
               isinstance(frame.get("file", ""), str) and isinstance(frame.get("line", 1), int) for frame in frames)
    check(good and set(file) <= {"$schema", "shared", "profiles", "name", "activeProfileIndex", "exporter"} and
          set(profile) == {"type", "name", "unit", "startValue", "endValue", "events"} and
          profile["type"] == "evented" and
          profile["unit"] in ("none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"),
          "speedscope: members and their types are those of the schema", json.dumps(file)[:500])
    stack, stacks, before = [], collections.Counter(), profile["startValue"]
    for event in profile["events"]:
        if event["at"] < before or set(event) != {"type", "frame", "at"}:
            raise RuntimeError("event %r after %r" % (event, before))
        if event["at"] > before:
            stacks[tuple(folded_name(frames[at]["name"]) for at in stack)] += event["at"] - before
        before = event["at"]
        if event["type"] == "O":
            stack.append(event["frame"])
        elif stack.pop() != event["frame"]:
            raise RuntimeError("frame %r closes out of order" % event)
    equal(stack, [], "speedscope: what is opened is closed")
    if profile["endValue"] > before:
        stacks[("all",)] += profile["endValue"] - before
    return stacks


def of_csv(body):
    rows = list(csv.DictReader(io.StringIO(body.decode(), newline=""), strict=True))
    names = [row["name"] for row in rows]
    for text in [value for row in rows for value in row.values()]:
        if text[:1] in "=+-@\t\r\n" and text != "":
            raise RuntimeError("a formula: %r" % text)
    names = [re.sub(r"^'(?=[=+\-@\t\r\n])", "", name) for name in names]
    return of_tree({"parent": [int(row["parent"] or 0) for row in rows], "self": [int(row["self"]) for row in rows]},
                   names)


def page_data(body):
    """The data in the page, found as a browser finds it: up to the first end of a script."""
    text = body.decode()
    begin = text.index('<script type="application/json" id="profile">') + 45
    return json.loads(text[begin:text.index("</script", begin)])


def of_html(body):
    data = page_data(body)
    graph = data["graph"]
    return of_tree(graph["nodes"], [graph["names"][i] for i in graph["nodes"]["name"]])


def pprof(go, *arguments):
    env = dict(os.environ, PPROF_TMPDIR=WORK, GOTOOLCHAIN="local")
    return subprocess.run([go, "tool", "pprof", *arguments], capture_output=True, text=True, env=env, timeout=180)


def pprof_raw(go, path):
    """go tool pprof -raw → ({stack, root first: [count, value]}, {mapping: (file, build-id, flags)}, locations)."""
    got = pprof(go, "-raw", path)
    if got.returncode:
        raise RuntimeError(got.stderr[-500:])
    part, samples, locations, mappings, where = "", [], {}, {}, None
    for line in got.stdout.splitlines():
        if line in ("Samples:", "Locations", "Mappings"):
            part = line
        elif part == "Samples:" and re.match(r" +\d+ +\d+: ", line):
            values, ids = line.split(":", 1)
            samples.append((list(map(int, values.split())), list(map(int, ids.split())), {}))
        elif part == "Samples:" and re.match(r" {16}\S", line):
            samples[-1][2].update(re.findall(r"(\S+):\[(.*?)\]", line))
        elif part == "Locations":
            found = re.match(r" +(\d+): (0x[0-9a-f]+) (?:M=(\d+) )?(.*)$", line)
            if found:
                where = int(found.group(1))
                locations[where] = (int(found.group(2), 16), int(found.group(3) or 0), [found.group(4)])
            else:
                locations[where][2].append(line.strip())
        elif part == "Mappings" and line.strip():
            number, text = line.split(":", 1)
            mappings[int(number)] = text.split()
    return got.stdout, samples, locations, mappings


def name_of(line):
    """"name file:line:column s=start(signature)" → name; names hold spaces themselves, old versions have no columns."""
    return re.sub(r" \S*:\d+(:\d+)? s=0\(.*\)$", "", line)


def of_pprof(samples, locations, label):
    """Leaf first → root first, inlined calls too; the label in front, as the tree has it."""
    stacks, counts = collections.Counter(), 0
    for (count, value), ids, labels in samples:
        frames = [name_of(line) for at in ids for line in locations[at][2]]
        stacks[(labels[label],) + tuple(map(folded_name, reversed(frames)))] += value
        counts += count
    return stacks, counts


def gos():
    """Every Go there is: Debian's and a newer one."""
    return sorted({os.path.realpath(go) for go in ("/usr/local/go/bin/go", "/usr/bin/go", shutil.which("go") or "")
                   if go and os.access(go, os.X_OK)})


# --- a profile that was really taken ---

def build_id_of(path):
    text = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", text).group(1)


def check_pprof(go, path, want, samples):
    name = subprocess.run([go, "version"], capture_output=True, text=True,
                          env=dict(os.environ, GOTOOLCHAIN="local")).stdout.split()[2]
    text, rows, locations, mappings = pprof_raw(go, path)
    stacks, counts = of_pprof(rows, locations, "process")
    check(stacks == want, "%s tool pprof: the same stacks and values as folded" % name,
          "%s\n%s" % (list((stacks - want).items())[:3], list((want - stacks).items())[:3]))
    equal(counts, samples, "%s: and as many samples" % name)
    program = [m for m in mappings.values() if m[1] == "shapes_cc"]
    equal([m[2] for m in program], [build_id_of(PROGRAMS + "/shapes_cc")],
          "%s: the program is one mapping with the build-id that readelf finds" % name)
    check(program and program[0][3:] in (["[FN][FL][LN][IN]"], ["[FN]"]), "%s: its flags" % name, program)
    inlined = [lines for _, _, lines in locations.values() if len(lines) > 1]
    check(inlined and all("shapes.cc" in lines[-1] or "/" in lines[-1] for lines in inlined),
          "%s: inlined calls are lines of one location" % name, inlined[:2])
    check(next(iter(mappings.values()))[1] == "shapes_cc", "%s: the program comes first" % name, mappings)
    source = open("tests/programs/shapes.cc").read().splitlines()
    begin = [i for i, line in enumerate(source, 1) if " count(const std::" in line]
    lines = {int(line) for line in re.findall(r"shapes::count \S*tests/programs/shapes\.cc:(\d+)", text)}
    check(lines and all(any(i <= line <= i + 7 for i in begin) for line in lines),
          "%s: a function's file and its lines" % name, "%s of %s" % (lines, begin))
    for view in ("-top", "-traces", "-tags"):
        got = pprof(go, view, path)
        check(got.returncode == 0 and "shapes" in got.stdout, "%s tool pprof %s" % (name, view), got.stderr[-300:])


def recorded():
    if os.geteuid() != 0:
        skip("recording needs root")
        return
    build_programs("shapes_cc")
    probe = subprocess.run([BUILD + "/farflame-agent", "--output", WORK + "/probe.otlp", "--duration", "100ms"],
                           capture_output=True, text=True)
    if probe.returncode == 3:
        skip("eBPF is not permitted here: " + probe.stderr.strip())
        return
    server = Server("--symbol-dir", PROGRAMS, data="recorded")
    agent = Agent("--frequency", "499", "--report-interval", "1s", server=server)
    start([PROGRAMS + "/shapes_cc", "2"]).wait(60)
    time.sleep(0.2)
    end(agent.process)
    match = '{process="shapes_cc"}'
    rows = server.wait_for_names(lambda rows: all(any("shapes::" in f for frames, _ in rows for f in frames) and any(
        f.startswith("__libc_start") for f in frames) for frames, _ in rows[:1]), match=match)
    note("%d samples" % sum(value for _, value in rows))
    question = {"match": match, "until": str(int(time.time())), "max_nodes": 1000000}
    agree(server, question, is_recorded=True)


def columns_of(body):
    """The typed columns as schema/README.md has them → what JSON's answer is."""
    equal(body[:8], b"FFCOLS1\n", "columns: begin with their name")
    length, zero = struct.unpack_from("<II", body, 8)
    answer, at = json.loads(body[16:16 + length]), 16 + length
    count, nodes = answer["nodes"], {}
    equal((length % 8, zero), (0, 0), "columns: the head's length is a multiple of 8")
    for name, type_ in answer.pop("columns").items():
        letter, width = {"f64": ("d", 8), "i32": ("i", 4), "u8": ("B", 1)}[type_]
        equal(at % width, 0, "columns: %s begins where its width says" % name)
        nodes[name] = [int(value) for value in struct.unpack_from("<%d%s" % (count, letter), body, at)]
        at += count * width
    texts = body[at:].decode().split("\0")
    names, files = answer["names"], answer["files"]
    equal(len(texts), names + files + 1, "columns: a NUL after each text")
    answer.update(nodes=nodes, names=texts[:names], files=texts[names:-1])
    return answer


def of_columns(server, question):
    """The same as JSON's, but for the last bits of large values."""
    answer = columns_of(ask(server, "columns", **question)[1])
    want = json.loads(ask(server, "json", **question)[1])
    for name in ("self", "total"):
        want["nodes"][name] = [int(float(value)) for value in want["nodes"][name]]
    for key in want:
        check(answer.get(key) == want[key], "columns: %s as in JSON" % key, str(answer.get(key))[:200])
    equal(sorted(answer), sorted(want), "columns: nothing else")
    parents = answer["nodes"]["parent"]
    check(parents == sorted(parents), "columns: breadth first")


def agree(server, question, is_recorded):
    """Every format of the same question."""
    headers, body = ask(server, "folded", **question)
    want = of_folded(body)
    accounting = json.loads(headers["Farflame-Accounting"])
    equal(sum(want.values()), accounting["value"], "folded: values sum up to the accounting's")
    bodies = {}
    for format_, type_ in FORMATS.items():
        headers, bodies[format_] = ask(server, format_, **question)
        check(headers["Content-Type"].startswith(type_) and json.loads(headers["Farflame-Accounting"]) == accounting,
              "%s: its type, and the accounting in the header" % format_, headers)
    check("attachment" in ask(server, "pprof", **question)[0]["Content-Disposition"] and
          re.search(r'filename="farflame_on-cpu(_[A-Za-z0-9._-]+)?(_\d{4}-\d\d-\d\dT\d{4}Z){2}\.svg"',
                    ask(server, "svg", **question)[0]["Content-Disposition"]), "the file's name says what and when")
    # '_[k]' is folded's alone, and may hide two frames of one name
    for format_, stacks in (("speedscope", of_speedscope(bodies["speedscope"])), ("csv", of_csv(bodies["csv"])),
                            ("html", of_html(bodies["html"]))):
        check(stacks == want, "%s: the same stacks and values as folded" % format_,
              "%s\n%s" % (list((stacks - want).items())[:3], list((want - stacks).items())[:3]))
    of_columns(server, question)
    picture(bodies["svg"], accounting)
    report(bodies["md"], accounting)
    path = os.path.join(WORK, "recorded.pb.gz" if is_recorded else "hostile.pb.gz")
    open(path, "wb").write(bodies["pprof"])
    decoded(bodies["pprof"], accounting)
    if is_recorded:
        for go in gos():
            check_pprof(go, path, want, accounting["samples"])
        if not gos():
            skip("no Go here")
    return bodies, accounting, want


def decoded(body, accounting):
    """protoc reads it by the published field numbers; every number it refers to is there."""
    got = subprocess.run(["protoc", "--proto_path=schema/formats", "--decode=perftools.profiles.Profile", "pprof.proto"],
                         input=gzip.decompress(body), capture_output=True)
    text = got.stdout.decode(errors="replace")
    check(got.returncode == 0 and not re.search(r"^ *\d+:", text, re.M), "protoc decodes it, no field is unknown",
          got.stderr[-300:])
    values = [list(map(int, re.findall(r"^  value: (\d+)", sample, re.M))) for sample in
              re.findall(r"^sample \{\n(.*?)^\}", text, re.M | re.S)]
    equal([sum(v[0] for v in values), sum(v[1] for v in values)], [accounting["samples"], accounting["value"]],
          "pprof: the sums of its values")
    strings = len(re.findall(r"^string_table: ", text, re.M))
    used = [int(n) for n in re.findall(r"^ *(?:type|unit|filename|build_id|name|system_name|key|str|comment|"
                                       r"default_sample_type): (\d+)", text, re.M)]
    check(used and max(used) < strings, "pprof: texts are in the table", "%s of %d" % (max(used or [0]), strings))


def picture(body, accounting):
    svg = xml.etree.ElementTree.fromstring(body)
    space = "{http://www.w3.org/2000/svg}"
    tags = collections.Counter(element.tag.replace(space, "") for element in svg.iter())
    check(set(tags) <= {"svg", "style", "rect", "text", "g", "title", "script"} and tags["script"] == 1 and
          tags["style"] == 1, "svg: nothing in it but shapes, texts and one script", tags)
    attributes = {name for element in svg.iter() for name in element.attrib}
    check(attributes <= {"width", "height", "viewBox", "id", "x", "y", "class"}, "svg: no other attributes", attributes)
    frames = svg.find(space + "g[@id='frames']")
    first = [group for group in frames if group.find(space + "rect").get("y") == "94"]
    width = sum(float(group.find(space + "rect").get("width")) for group in first)
    check(not first or 1170 < width <= 1180.001, "svg: the second level is as wide as its values", width)
    words = "".join(svg.itertext())
    check("%d samples" % accounting["samples"] in words and "taken %d, lost %d" % (
        accounting["taken"], accounting["lost"]) in words, "svg: the accounting is printed")


def report(body, accounting):
    text = body.decode()
    check("in %d sample" % accounting["samples"] in text and "## Hottest paths" in text and "## Losses" in text and
          "## Functions by their own share" in text and "## What is unknown" in text, "md: its parts", text[:500])
    rows = [line for line in text.split("\n") if line.startswith("| ")]
    wrong = [row for row in rows if len(re.split(r"(?<!\\)\|", row)) != 7]
    check(rows and not wrong, "md: every row has its five cells", wrong[:5])
    open_names = [line for line in text.split("\n") if re.sub(r"\\.", "", re.sub(r"`[^`]*`", "", line)).count("`")]
    equal(open_names, [], "md: every name is closed")


# --- a profile that nobody would take ---

def hostile_report():
    made = Request(BUILD)
    library = made.mapping(HOSTILE[0], LIBRARY)
    resource = made.resource(**{"host.name": "h<i>&", "farflame.process": "p</script>"})
    profile = made.profile(resource, time_ns=WHEN_NS)
    for i, name in enumerate(HOSTILE):
        frames = [("cpython", name, HOSTILE[-i], i), ("cpython", "caller of " + name, name, 7),
                  ("native", library, 0x1234)]
        made.sample(profile, frames, [i + 1, (i + 1) * PERIOD], thread=HOSTILE[i][:10], incomplete=name if i % 2 else "")
    made.sample(profile, [("anon", 0x7f00)], [3, 3 * PERIOD])
    made.counters("h<i>&", "11" * 16, 1, 0, 1000, time_ns=WHEN_NS, ring_full=3)
    return made.bytes()


def hostile():
    server = Server(data="hostile")
    status, _, body = server.post(hostile_report())
    equal(status, 200, "the report is taken")
    bodies, _, _ = agree(server, {"max_nodes": 1000000}, is_recorded=False)
    named = ask(server, "csv", match='{process="p</script>"}')[0]["Content-Disposition"]
    check("farflame_on-cpu_p_" in named and "script" in named and not re.search("[<>/]", named) and named.count('"') == 2,
          "the process is in the file's name too, as file names may have it", named)
    html = bodies["html"].decode()
    equal(len(re.findall(r"<script|</script", html)), 4, "html: two scripts, the data and ours, whatever the names")
    check("Content-Security-Policy" in html and not re.search(r'(?:src|href)="(?!data:)', html),
          "html: nothing is fetched")
    plain = re.sub(r"\\.", "", re.sub(r"`[^`]*`", "", bodies["md"].decode()))
    equal(re.findall(r"<(?! )", plain), [], "md: outside of names there is no tag")
    for format_ in ("svg", "html"):
        policy = ask(server, format_)[0]["Content-Security-Policy"]
        check("default-src 'none'" in policy and "script-src 'sha256-" in policy, "%s: a policy goes with it" % format_,
              policy)
    functions(server)
    compared(server)
    views(server)


def functions(server):
    want = server.json("/api/v1/top")
    rows = list(csv.DictReader(io.StringIO(ask(server, "csv", "/api/v1/top")[1].decode(), newline=""), strict=True))
    equal([(int(row["self"]), int(row["total"])) for row in rows],
          [(f["self"], f["total"]) for f in want["functions"]], "/top as csv: the same figures")
    cut = list(csv.DictReader(io.StringIO(ask(server, "csv", "/api/v1/top", limit=3)[1].decode(), newline="")))
    equal(len(cut), 3, "/top as csv: limit holds")
    equal(page_data(ask(server, "html")[1])["functions"], want["functions"], "html: its functions are those of /top")
    text = ask(server, "md", "/api/v1/top")[1].decode()
    check("## Functions with what they call" in text and "## Hottest paths" not in text, "/top as md")


def compared(server):
    """6 samples of one thread with 7 of another: each is as wide as half of what both have."""
    body = ask(server, "svg", "/api/v1/diff", norm="raw", match='{thread="+1"}', group_by="",
               **{"base.match": '{thread="-1"}'})[1]
    frames = xml.etree.ElementTree.fromstring(body).find("{http://www.w3.org/2000/svg}g[@id='frames']")
    found = {}
    for group in frames:
        title, rect = group[0].text.split("\n"), group[1]
        found[title[0].split(" (")[0]] = (group.get("class").split()[0], round(float(rect.get("width")) * 13 / 1180, 3), title[1])
    value, base = 6 * PERIOD, 7 * PERIOD
    equal(found["all"][:2], ("d4", 13.0), "compared as svg: the root is about the same")
    equal(found["+1"], ("d8", 6.0, "%.1f ms, base 0 ns" % (value / 1e6)), "what is new is red")
    equal(found["-1"], ("d0", 7.0, "0 ns, base %.1f ms (-100.0 %%)" % (base / 1e6)), "what is gone is blue")


def views(server):
    """group_by becomes labels of pprof; what is cut is counted; what makes no sense is refused."""
    _, body = ask(server, "pprof", group_by="host,thread", focus="caller of \\+1")
    got = subprocess.run(["protoc", "--proto_path=schema/formats", "--decode=perftools.profiles.Profile", "pprof.proto"],
                         input=gzip.decompress(body), capture_output=True, check=True).stdout.decode(errors="replace")
    strings = re.findall(r'^string_table: "(.*)"$', got, re.M)
    labels = [(strings[int(key)], strings[int(text)]) for key, text in
              re.findall(r"^  label \{\n    key: (\d+)\n    str: (\d+)", got, re.M)]
    equal(labels, [("host", "h<i>&"), ("thread", "+1")], "pprof: group_by becomes labels, focus one sample")
    for nodes in (1, 2, 7):
        headers, body = ask(server, "csv", max_nodes=nodes)
        accounting = json.loads(headers["Farflame-Accounting"])
        check(accounting["cut"] > 0 and sum(of_csv(body).values()) == accounting["value"],
              "csv of %d nodes: the cut is counted, the sum stays" % nodes, accounting)
    headers, body = ask(server, "pprof", max_nodes=1)
    equal(json.loads(headers["Farflame-Accounting"])["cut"], 0, "pprof has no nodes to cut")
    for path, parameters, sentence in (
            ("flamegraph", {"format": "xml"}, "'xml' is none of json|columns|folded|pprof|speedscope|svg|html|csv|md"),
            ("flamegraph", {"format": ""}, "is none of"),
            ("flamegraph", {"format": "pprof", "invert": "1"}, "'invert' does not go with format=pprof"),
            ("top", {"format": "svg"}, "'svg' is none of json|csv|md")):
        status, headers, body = server.get("/api/v1/" + path, **parameters)
        check(status == 422 and sentence in json.loads(body)["error"]["message"] and
              headers["Content-Type"] == "application/json", "refused: %s" % parameters, body)
    for format_ in FORMATS:
        headers, body = ask(server, format_, type="off-cpu")
        equal(json.loads(headers["Farflame-Accounting"])["samples"], 0, "%s of nothing is an answer" % format_)
        if format_ == "svg":
            xml.etree.ElementTree.fromstring(body)
        elif format_ == "pprof" and gos():
            path = os.path.join(WORK, "empty.pb.gz")
            open(path, "wb").write(body)
            equal(pprof_raw(gos()[0], path)[1], [], "and go tool pprof reads it")


if NAME == "formats_test":
    run(recorded, hostile)
