# SPDX-License-Identifier: Apache-2.0
"""Code that runtimes make has the names that they tell in perf maps and jitdumps: six nested functions of known shares in
Node.js beside its own profiler, CPython, Java and Erlang; a program that puts code in another's place; in a namespace of
its own; and files that are not to be believed."""
import collections
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time

from harness import BUILD, WORK, check, end, equal, need_bpf, note, run, skip, start, wait_for

sys.path.insert(0, "tests/tools")
import otlp  # noqa: E402

Frame = collections.namedtuple("Frame", "type function file line module")
NOBODY = 65534
WEIGHTS = range(1, 7)

SIX_JS = "const W = 8000;\n" + "".join(
    "function f%d(n) {\n\tlet s = n;\n\tfor (let i = 0; i < %d * W; i++)\n\t\ts = (s * 31 + i) | 0;\n\treturn s%s;\n}\n"
    % (i, i, " + f%d(s)" % (i + 1) if i < 6 else "") for i in reversed(WEIGHTS)) + """
let t = 0;
function go(seconds) {
	for (const end = Date.now() + 1000 * seconds; Date.now() < end;)
		t += f1(t);
}
for (let second = 0; second < process.argv[2]; second++) {
	go(1);
	for (let i = 0; i < 30; i++) { // what has been told by now is written
		const g = new Function("x", "let s = 0; for (let i = 0; i < 100; i++) s += i * x; return s + " + (30 * second + i));
		for (let j = 0; j < 30; j++)
			t += g(j);
	}
}
"""
SIX_PY = """import sys, time
""" + "".join("def f%d(n):\n    for i in range(%d * 500): n = (n * 31 + i) & 0xffff\n    return n%s\n"
              % (i, i, " + f%d(n)" % (i + 1) if i < 6 else "") for i in reversed(WEIGHTS)) + """
f1(1)
for i in range(200):  # what has been told by now is written
    exec("def g%d(): pass\\ng%d()" % (i, i))
end = time.time() + float(sys.argv[1])
while time.time() < end:
    f1(1)
"""
SIX_JAVA = "public class Six {\n" + "".join(
    "static int f%d(int s) { for (int i = 0; i < %d * 2000; i++) s = s * 31 + i; return s%s; }\n"
    % (i, i, " + f%d(s)" % (i + 1) if i < 6 else "") for i in reversed(WEIGHTS)) + """
public static void main(String[] a) throws Exception {
	long end = System.currentTimeMillis() + 1000L * Integer.parseInt(a[0]);
	int t = 0;
	while (System.currentTimeMillis() < end)
		t += f1(t);
	System.out.println(t);
}
}
"""
SIX_ERL = """-module(six).
-export([main/0]).
spin(0, S) -> S;
spin(N, S) -> spin(N - 1, (S * 31 + N) band 16#ffffff).
inner(N) -> spin(N, 1) + 1.
outer(N) -> inner(N) + 1.
loop(End) -> case erlang:system_time(second) > End of true -> ok; false -> outer(100000), loop(End) end.
main() -> loop(erlang:system_time(second) + 20), halt().
"""
# Spins in code of its own making: mov $N,%ecx; dec %ecx; jnz; ret. What it says of it is its caller's business.
MAKER = """
import ctypes, mmap, os, sys, time
area = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
address = ctypes.addressof(ctypes.c_char.from_buffer(area))
area.write(b"\\xb9\\x00\\x00\\x40\\x00\\xff\\xc9\\x75\\xfc\\xc3")
code = ctypes.CFUNCTYPE(None)(address)
pid = os.getpid()
def spin(seconds):
    end = time.time() + seconds
    while time.time() < end:
        code()
def tell(text, path="/tmp/perf-%d.map" % pid, mode="a"):
    with open(path, mode) as file:
        file.write(text)
"""


def write(name, text):
    path = os.path.join(WORK, name)
    with open(path, "w") as file:
        file.write(text)
    return path


class Profile:
    """What the agent says of processes while they run."""
    def __init__(self, pids, seconds, name, frequency=199, arguments=()):
        path = os.path.join(WORK, name + ".otlp")
        log = os.path.join(WORK, name + ".agent.log")
        with open(log, "w") as out:
            subprocess.run([BUILD + "/farflame-agent", "--output", path, "--duration", "%dms" % (1000 * seconds),
                            "--frequency", str(frequency), "--log-level", "debug", *arguments]
                           + [a for pid in pids for a in ("--pid", str(pid))], stderr=out, check=True, timeout=120)
        self.text = open(log).read()
        self.reader = otlp.Reader(otlp.read(BUILD, path))
        dictionary, strings = self.reader.dictionary, self.reader.strings
        self.modules = [strings[mapping.filename_strindex] for mapping in dictionary.mapping_table]
        self.frames = []
        for location in dictionary.location_table:
            attributes = self.reader.attributes(location.attribute_indices)
            line = location.lines[0] if location.lines else None
            function = dictionary.function_table[line.function_index] if line else None
            self.frames.append(Frame(attributes.get("profile.frame.type", ""),
                                     strings[function.name_strindex] if line else "",
                                     strings[function.filename_strindex] if line else "", line.line if line else 0,
                                     "[anon]" if attributes.get("farflame.anonymous")
                                     else self.modules[location.mapping_index]))

    def stacks(self):
        """(count, frames leaf first, without the kernel's)"""
        for resource in self.reader.request.resource_profiles:
            for scope in resource.scope_profiles:
                for profile in scope.profiles:
                    for sample in profile.samples:
                        stack = self.reader.dictionary.stack_table[sample.stack_index]
                        frames = [self.frames[i] for i in stack.location_indices]
                        yield sample.values[0], [f for f in frames if f.type != "kernel"]

    def leaves(self):
        found = collections.Counter()
        for count, frames in self.stacks():
            if frames:
                found[frames[0].function or frames[0].module] += count
        return found

    def counter(self, key):
        found = re.findall(r"names of code .*\b%s=(\d+)" % key, self.text)
        return int(found[-1]) if found else None


def check_shares(leaves, names, text, slack=0.05):
    total = sum(leaves[name] for name in names)
    wrong = []
    for weight, name in zip(WEIGHTS, names):
        want = weight / sum(WEIGHTS)
        error = 3 * (want * (1 - want) / max(total, 1)) ** 0.5 + slack
        if abs(leaves[name] / max(total, 1) - want) > error:
            wrong.append("%s: %.3f of %d, want %.3f ± %.3f" % (name, leaves[name] / max(total, 1), total, want, error))
    check(total > 60 and not wrong, text, "\n".join(wrong) or leaves)


def check_nested(profile, names, text, buffered=False):
    """Whose leaf is the innermost has all, in order; V8's interpreter, which tells nothing yet, may stand for some.
    buffered: the runtime keeps the last of what it tells for itself."""
    good, bad, wrong = 0, 0, []
    for count, frames in profile.stacks():
        functions = [f.function for f in frames if f.function]
        if functions and functions[0] == names[-1]:
            found = [n for n in reversed(names) if n in functions]
            if functions[:len(names)] == list(reversed(names)):
                good += count
            elif functions[:len(found)] != found or (
                    not buffered and any(not f.function and f.module == "[anon]" for f in frames)):
                bad += count
                wrong.append(" ".join(f.function or f.module for f in frames[:10]))
    check(good > 20 and bad <= 0.02 * good, text, "\n".join(["%d in order, %d not" % (good, bad)] + wrong[:10]))


def six_js(seconds, *arguments, cwd=None):
    return start(["node", "--max-inlined-bytecode-size=0", "--max-inlined-bytecode-size-cumulative=0",
                  "--no-turbo-loop-peeling", *arguments, write("six.js", SIX_JS), str(seconds)], "node.log", cwd=cwd or WORK)


def map_of(pid):
    return "/tmp/perf-%d.map" % pid


def test_node_map():
    if not shutil.which("node"):
        return skip("no node")
    names = ["f%d" % i for i in WEIGHTS]
    node = six_js(12, "--perf-basic-prof", "--cpu-prof", "--cpu-prof-dir=" + WORK)
    time.sleep(2)
    profile = Profile([node.pid], 8, "node")
    told = set()
    for line in open(map_of(node.pid)):
        # V8 says columns since 11
        found = re.match(r"[0-9a-f]+ [0-9a-f]+ \w+:[*~^+]?(\S*) (.*?):(\d+)(?::\d+)?$", line)
        if found:
            told.add((found[1] or "(anonymous)", found[2], int(found[3])))
    named = [f for _, frames in profile.stacks() for f in frames if f.type == "v8js" and f.file]
    untold = [f for f in named if (f.function, f.file, f.line) not in told]
    check(named and not untold, "each function, file and line is one of the map's", untold[:5])
    equal({f.line for f in named if f.function == "f6"}, {2}, "f6 is called by the line where it begins")
    check_nested(profile, names, "f6 is called by f5, …, f1, as the program has it")
    leaves = profile.leaves()
    check_shares(leaves, names, "their shares are those of their loops")
    check(leaves["[anon]"] <= 0.02 * sum(leaves.values()), "hardly a leaf is without a name", leaves)
    check(profile.counter("named") > 50 and profile.counter("failed") == 0, "frames with names are counted", profile.text[-1500:])
    node.wait(60)
    os.unlink(map_of(node.pid))
    own = wait_for(lambda: glob.glob(WORK + "/*.cpuprofile"), 5)
    if not own:
        return skip("node's own profiler has written nothing")
    nodes = json.load(open(own[0]))["nodes"]
    hits = collections.Counter()
    for entry in nodes:
        hits[entry["callFrame"]["functionName"]] += entry["hitCount"]
    total, ours = sum(hits[n] for n in names), sum(leaves[n] for n in names)
    off = {n: (hits[n] / total, leaves[n] / ours) for n in names if abs(hits[n] / total - leaves[n] / ours) > 0.06}
    check(not off, "and those that node's own profiler sees", off)


def test_node_dump():
    if not shutil.which("node"):
        return skip("no node")
    node = six_js(30, "--perf-prof")
    time.sleep(3)
    profile = Profile([node.pid], 5, "dump")
    end(node)
    names = ["f%d" % i for i in WEIGHTS]
    lines = collections.defaultdict(collections.Counter)
    for count, frames in profile.stacks():
        if frames and frames[0].function in names:
            lines[frames[0].function][frames[0].line] += count
    note(str({name: dict(found) for name, found in lines.items()}))
    outside = {name: dict(found) for name, found in lines.items()
               if any(not 0 <= line - (2 + 6 * (6 - int(name[1]))) <= 4 for line in found)}
    check(len(lines) == 6 and not outside, "by a jitdump leaves have lines of their own functions", outside or lines)
    loops = sum(n for name, found in lines.items() for line, n in found.items()
                if line - (2 + 6 * (6 - int(name[1]))) in (2, 3))
    check(loops > 0.95 * sum(sum(found.values()) for found in lines.values()), "nearly all of the loops they spin in", lines)
    check_nested(profile, names, "by a jitdump f6 is called by f5, …, f1", buffered=True)
    check(profile.counter("dumps") == 1, "it is one jitdump", profile.text[-1500:])
    equal([m for m in profile.modules if m.startswith("jit-")], [], "which is no module, though it is mapped executable")


def test_python():
    found = 0
    for version, option in (("3.12", "perf"), ("3.13", "perf"), ("3.13", "perf_jit")):
        for python in sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/%s*/bin/python3" % version)))[:1]:
            found += 1
            process = start([python, "-X", option, write("six.py", SIX_PY), "30"], "python.log")
            time.sleep(1)
            profile = Profile([process.pid], 4, "python")
            end(process)
            chains = collections.Counter()
            for count, frames in profile.stacks():
                chain = [f.function for f in frames if f.type == "cpython"]
                if chain[:1] == ["f6"]:
                    chains[tuple(chain[:6])] += count
            want = tuple("f%d" % i for i in reversed(WEIGHTS))
            check(chains[want] > 20 and chains[want] > 0.98 * sum(chains.values()),
                  "Python %s -X %s: f6 is called by f5, …, f1" % (version, option), chains)
            named = {f.file for _, frames in profile.stacks() for f in frames if f.function == "f6"}
            equal(named, {WORK + "/six.py"}, "Python %s -X %s: f6 is of its file" % (version, option))
            for path in glob.glob("/tmp/perf-%d.map" % process.pid) + glob.glob("/tmp/jit-%d.dump" % process.pid):
                os.unlink(path)
    if not found:
        skip("no Python that writes perf maps")


def test_java():
    if not shutil.which("javac") or not shutil.which("jcmd"):
        return skip("no JDK")
    subprocess.run(["javac", "-d", WORK, write("Six.java", SIX_JAVA)], check=True)
    java = start(["java", "-XX:+PreserveFramePointer", "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Six::f*",
                  "-cp", WORK, "Six", "40"], "java.log")
    time.sleep(3)
    if subprocess.run(["jcmd", str(java.pid), "Compiler.perfmap"], capture_output=True).returncode:
        return skip("this JDK writes no perf map")
    # Where the agent reads Java's own frames it has no need of the map.
    profile = Profile([java.pid], 5, "java", arguments=["--interpreters", "off"])
    end(java)
    names = ["int Six.f%d(int)" % i for i in WEIGHTS]
    check_nested(profile, names, "Java's f6 is called by f5, …, f1")
    check_shares(profile.leaves(), names, "with the shares of their loops", 0.08)
    equal({f.type for _, frames in profile.stacks() for f in frames if f.function == names[5]}, {"jvm"}, "and is the JVM's")


def test_erlang():
    if not shutil.which("erlc"):
        return skip("no Erlang")
    subprocess.run(["erlc", "-o", WORK, write("six.erl", SIX_ERL)], check=True)
    erl = start(["erl", "+JPperf", "true", "-noshell", "-pa", WORK, "-s", "six", "main"], "erlang.log")
    time.sleep(2.5)
    profile = Profile([erl.pid], 4, "erlang")
    end(erl)
    leaves = profile.leaves()
    check(leaves["six:spin/2"] > 0.8 * sum(leaves.values()), "Erlang's loop is called so", leaves.most_common(5))
    equal({f.type for _, frames in profile.stacks() for f in frames if f.function == "six:spin/2"}, {"beam"},
          "and is the BEAM's")
    for path in (map_of(erl.pid), "/tmp/jit-%d.dump" % erl.pid):
        if os.path.exists(path):
            os.unlink(path)


WAITS_PY = """import sys, time
def inner(): time.sleep(0.01)
def middle(): inner()
def outer(): middle()
end = time.time() + float(sys.argv[1])
while time.time() < end:
    outer()
"""


def test_types():
    """Also threads off their CPU, and stacks that are taken by perf events."""
    found = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.12*/bin/python3")))
    if not found:
        return skip("no Python that writes perf maps")
    process = start([found[0], "-X", "perf", write("waits.py", WAITS_PY), "30"], "waits.log")
    time.sleep(1.5)
    profile = Profile([process.pid], 4, "off-cpu", arguments=["--profile", "on-cpu,off-cpu", "--off-cpu-budget", "5%"])
    chains = collections.Counter()
    for resource in profile.reader.request.resource_profiles:
        for scope in resource.scope_profiles:
            for one in scope.profiles:
                if profile.reader.strings[one.sample_type.type_strindex] == "off-cpu":
                    for sample in one.samples:
                        stack = profile.reader.dictionary.stack_table[sample.stack_index]
                        chain = [profile.frames[i].function for i in stack.location_indices
                                 if profile.frames[i].type == "cpython"]
                        chains[tuple(chain[:3])] += sample.values[0]
    check(chains[("inner", "middle", "outer")] > 20, "waits have the names of the functions that wait", chains)
    end(process)
    process = start([found[0], "-X", "perf", write("six.py", SIX_PY), "30"], "six.log")
    time.sleep(1.5)
    profile = Profile([process.pid], 4, "perf", arguments=["--capture", "perf"])
    end(process)
    check_nested(profile, ["f%d" % i for i in WEIGHTS], "so have stacks that perf events take")


def make(body, *prefix, **more):
    return start([*prefix, "/usr/bin/python3", "-c", MAKER + body], "maker.log", **more)


def test_replaced():
    """The second name takes the first's place in the middle of a profile, by a perf map. The program says itself when."""
    maker = make('tell("%x 10 first\\n" % address, mode="w")\nspin(4)\ntell("%x 10 second\\n" % address)\n'
                 'print(time.clock_gettime_ns(time.CLOCK_MONOTONIC), flush=True)\nspin(60)\n', stdout=subprocess.PIPE)
    time.sleep(1)
    profile = Profile([maker.pid], 7, "replaced", arguments=["--debug-stacks", WORK + "/replaced.txt"])
    replaced = int(maker.stdout.readline())
    end(maker)
    os.unlink(map_of(maker.pid))
    leaves = profile.leaves()
    note(str(dict(leaves)))
    times = [int(m[1]) for m in re.finditer(r"^sample (\d+) .*\n[0-9a-f]+ \[anon\]", open(WORK + "/replaced.txt").read(), re.M)]
    before, after = sum(t < replaced for t in times), sum(t >= replaced for t in times)
    check(before and after and leaves["first"] <= before and leaves["second"] <= after,
          "no code is called after what came later, or was there before", "%d before, %d after" % (before, after))
    check(leaves["[anon]"] <= 0.35 * len(times) and leaves["first"] > 0.4 * before and leaves["second"] > 0.6 * after,
          "and for about a second at most is it not known which", "%d before, %d after" % (before, after))


def test_namespace():
    """A pid and a mount namespace of its own, with a /tmp of its own."""
    body = 'tell("%x 10 inside\\n" % address, mode="w")\nspin(60)\n'
    outer = make(body, "unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
                 'mount -t tmpfs none /tmp && exec "$@"', "sh")
    inner = wait_for(lambda: open("/proc/%d/task/%d/children" % (outer.pid, outer.pid)).read().split(), 10)
    time.sleep(1.5)
    profile = Profile([int(inner[0])], 3, "namespace")
    leaves = profile.leaves()
    end(outer)
    check(leaves["inside"] > 0.8 * sum(leaves.values()), "a map in another namespace is found by its number there", leaves)


# What a user may have put there, and the name that a frame must not have.
HOSTILE = {
    "another user's": ('spin(60)\n', lambda path: (open(path, "w").write("0 ffffffff wrong\n"), os.chown(path, 65533, 65533))),
    "a link": ('spin(60)\n', lambda path: os.symlink("/etc/passwd", path)),
    "a pipe": ('spin(60)\n', lambda path: (os.mkfifo(path), os.chown(path, NOBODY, NOBODY))),
    "a folder": ('spin(60)\n', lambda path: (os.mkdir(path), os.chown(path, NOBODY, NOBODY))),
    "older than the process": ('os.utime("/tmp/perf-%d.map" % pid, (1, 1))\nspin(60)\n', lambda path: (
        open(path, "w").write("0 ffffffff wrong\n"), os.chown(path, NOBODY, NOBODY), os.utime(path, (1, 1)))),
}


def test_foreign():
    for what, (body, plant) in HOSTILE.items():
        maker = make('while not os.path.lexists("/tmp/perf-%d.map" % pid): time.sleep(0.01)\n' + body,
                     user=NOBODY, group=NOBODY, extra_groups=[])
        time.sleep(0.3)
        path = map_of(maker.pid)
        plant(path)
        time.sleep(0.5)
        profile = Profile([maker.pid], 2, "foreign")
        leaves = profile.leaves()
        end(maker)
        (os.rmdir if os.path.isdir(path) and not os.path.islink(path) else os.unlink)(path)
        check(leaves["[anon]"] > 10 and not leaves["wrong"], "not read: " + what, leaves)
        check(profile.counter("foreign") == 1 and not profile.counter("maps"), "counted: " + what, profile.text[-1000:])


def test_hostile():
    """Gigabytes, binary, a name of 100 kB, ranges over everything: the process' own loss, and little of the agent's."""
    body = '''
with open("/tmp/perf-%d.map" % pid, "wb") as file:
    file.write(b"%x 10 mine\\n" % address)
    file.write(b"%x 10 " % (address + 32) + b"n" * 100000 + b"\\n")
    file.write(os.urandom(1 << 16))
    file.write(b"\\n" + b"".join(b"%x ffffff over\\n" % (0x1000 * i) for i in range(200000)))
    file.truncate(3 << 30)
spin(60)
'''
    maker = make(body, user=NOBODY, group=NOBODY, extra_groups=[])
    time.sleep(1.5)
    profile = Profile([maker.pid], 5, "hostile")
    leaves = profile.leaves()
    end(maker)
    os.unlink(map_of(maker.pid))
    check(leaves["mine"] > 10, "what is right in it is believed", leaves)
    equal({f.type for _, frames in profile.stacks() for f in frames if f.function == "mine"}, {"jit"},
          "and is nobody's language, though the process is Python's")
    check(profile.counter("refused") > 0, "what is not is counted", profile.text[-1500:])
    check(profile.counter("bytes") <= 9 << 20, "and what is kept of it is bounded", profile.text[-1500:])
    memory = re.findall(r"pss_kib=(\d+)", profile.text)
    check(memory and int(memory[-1]) < 40 << 10, "so is the agent's memory", memory)


need_bpf()
run(test_node_map, test_node_dump, test_python, test_java, test_erlang, test_types, test_replaced, test_namespace, test_foreign,
    test_hostile)
