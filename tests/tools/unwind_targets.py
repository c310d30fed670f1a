# SPDX-License-Identifier: Apache-2.0
"""What the unwinder is compared on: the programs of tests/programs/unwind, and real ones of this machine."""
import os
import re
import shutil
import subprocess
import sys

from unwind_run import Target

# Programs whose code is seen only through what the C library calls back, and other files they need.
DEEP = ["--max-frames", "1024"]


def small(programs, seconds=60):
    """Of tests/programs/unwind/build.sh; programs that could not be built are skipped and say so."""
    at = lambda name: os.path.join(programs, name)  # noqa: E731
    plugins = [at("libplugin_a.so"), at("libplugin_b.so")]
    remapped = [at("remapped_a"), at("remapped_b")]
    special = {
        "recursion": dict(agent=DEEP),
        "plugins": dict(arguments=plugins), "plt": dict(arguments=plugins),
        "remap": dict(arguments=remapped, mapped=remapped),
        "fork_only": dict(is_child=True),
        "memory_exec": dict(settle_s=0.5),
    }
    text = open("tests/programs/unwind/build.sh").read()
    names = re.search(r'^all="([^"]*)"', text, re.M).group(1).split()
    for name in names:
        if name.startswith("lib") or name.startswith("remapped_"):
            continue
        more = special.get(name, {})
        debug = at(name + ".debug")
        yield Target(name, [at(name), str(seconds), *more.pop("arguments", [])],
                     gdb_file=debug if os.path.exists(debug) else None,
                     why_skip=None if os.path.exists(at(name)) else "it cannot be built here", **more)


def build_small(programs):
    done = subprocess.run(["sh", "tests/programs/unwind/build.sh", programs], stdout=sys.stderr, stderr=sys.stderr)
    return done.returncode == 0


# --- real programs ---

def big_c_source(path, functions=4000):
    """Something for a compiler to do for a while."""
    with open(path, "w") as out:
        out.write("typedef unsigned long uint64_t;\nextern unsigned long strlen(const char *);\n")
        for i in range(functions):
            out.write("""
struct s%d { uint64_t a[%d]; char name[%d]; struct s%d *next; };
uint64_t f%d(struct s%d *s, uint64_t x, int n)
{
	uint64_t sum = x, table[%d] = {0};
	for (int i = 0; i < n; i++) {
		switch ((sum ^ s->a[i %% %d]) %% 7) {
		case 0: sum += s->a[i %% %d] * 3; break;
		case 1: sum ^= strlen(s->name); break;
		case 2: table[i %% %d] += sum; break;
		case 3: sum = s->next ? f%d((void *)s->next, sum, n - 1) : sum >> 3; break;
		default: sum = (sum << 5) | (sum >> 59);
		}
		for (int j = 0; j < %d; j++)
			sum += table[j] * (uint64_t)(i + j);
	}
	return sum;
}
""" % (i, 4 + i % 9, 8 + i % 17, i, i, i, 3 + i % 8, 4 + i % 9, 4 + i % 9, 3 + i % 8, max(i - 1, 0), 3 + i % 8))


PYTHON = """
import json, re, sys, time
end = time.time() + float(sys.argv[1])
class Node:
    def __init__(self, depth):
        self.children = [Node(depth - 1) for _ in range(3)] if depth else []
    def total(self):
        return 1 + sum(child.total() for child in self.children)
def recurse(n):
    return sorted(map(str, range(20)), key=lambda v: -len(v)) if n == 0 else recurse(n - 1)
while time.time() < end:
    Node(6).total(); recurse(60)
    json.loads(json.dumps([{str(i): [i] * 3} for i in range(500)]))
    re.sub(r'(\\w+)\\s(\\w+)', r'\\2 \\1', 'some words to turn around ' * 200)
"""
PERL = r"""
my $end = time + $ARGV[0]; my $x = 0;
sub down { my ($n) = @_; return $n ? 1 + down($n - 1) : scalar(map { $_ * 2 } 1 .. 50) }
while (time < $end) { $x += down(40); my %h = map { ("k$_" => $_) } 1 .. 500;
  $x += length join ",", sort { $h{$a} <=> $h{$b} } keys %h; my $s = "abc def " x 300; $s =~ s/(\w+) (\w+)/$2 $1/g; }
"""
NODE = """
const end = Date.now() + 1000 * process.argv[1]; let x = 0;
function down(n) { return n ? down(n - 1) + 1 : JSON.stringify([...Array(50).keys()].map(i => ({i}))).length }
while (Date.now() < end) { x += down(30); x += 'a b c '.repeat(500).replace(/(\\w) (\\w)/g, '$2 $1').length;
  x += require('zlib').deflateSync(Buffer.alloc(20000, 'abc' + x)).length;
  x += require('crypto').createHash('sha512').update('x'.repeat(10000)).digest('hex').length }
"""
JAVA = """
import java.util.*;
public class Garbage {
    static Object[] keep = new Object[100000];
    static int down(int n) { return n == 0 ? new ArrayList<>(List.of(1, 2, 3)).hashCode() : down(n - 1) + 1; }
    public static void main(String[] a) {
        long end = System.currentTimeMillis() + 1000L * Integer.parseInt(a[0]);
        Random r = new Random(1);
        while (System.currentTimeMillis() < end)
            for (int i = 0; i < 10000; i++) {
                keep[r.nextInt(keep.length)] = new HashMap<>(Map.of("k" + i, new int[r.nextInt(200)]));
                if (i % 100 == 0) down(50);
            }
    }
}
"""
SQL = """
with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000000)
select count(*), sum(length(printf('%d %s', i, hex(i)))) from (select i, abs(i * 7919 % 10007) as k from n order by k)
where printf('%d', k) like '%7%' or i % 3 = 0;
"""


def which(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/local/go/bin:/usr/bin:/bin")


def written(work, name, text):
    path = os.path.join(work, name)
    with open(path, "w") as out:
        out.write(text)
    return path


def made_repository(work, commits=5000):
    """A repository with some history, by fast-import."""
    path = os.path.join(work, "repository")
    if os.path.isdir(path):
        return path
    subprocess.run(["git", "init", "-q", path], check=True)
    lines = []
    for i in range(commits):
        for number in {i % 40, i * 7 % 40}:
            body = "\n".join("line %d of %d: %x" % (k, number, (k * 2654435761 + i // (1 + k % 50)) & 0xffffffff)
                             for k in range(300))
            lines.append((i, number, body))
    stream, last = [], -1
    for i, number, body in lines:
        if i != last:
            stream.append("commit refs/heads/main\ncommitter a <a@b> %d +0000\ndata 5\nwork\n" % (1600000000 + i * 60))
            last = i
        stream.append("M 100644 inline file_%d\ndata %d\n%s\n" % (number, len(body), body))
    subprocess.run(["git", "-C", path, "fast-import", "--quiet"], input="".join(stream).encode(), check=True)
    return path


def real(work, seconds=120):
    """Programs of this machine; what is not installed is skipped and says so."""
    def target(name, argv, **more):
        program = which(argv[0])
        return Target(name, [program or argv[0], *argv[1:]],
                      why_skip=None if program else argv[0] + " is not installed", **more)

    source = os.path.join(work, "big.c")
    big_c_source(source)
    repository = made_repository(work) if which("git") else work
    cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True).stdout.strip()
    yield target("python3", ["/usr/bin/python3", "-c", PYTHON, str(seconds)], settle_s=0.5)
    yield target("perl", ["perl", "-e", PERL, str(seconds)])
    yield target("cc1", [cc1 or "cc1", "-O2", "-quiet", source, "-o", "/dev/null"])
    yield target("clang", ["clang", "-O2", "-c", source, "-o", "/dev/null"], settle_s=0.5)
    yield target("git_log", ["git", "-C", repository, "log", "-p", "--all", "--pickaxe-regex",
                             "-S(l|m)ine [0-9]+ of (1|2)?.: .*(ab)+$"])
    yield target("git_repack", ["git", "-C", repository, "pack-objects", "--all", "--stdout", "--no-reuse-delta",
                                "--threads=2", "--window=250", "--depth=200"])
    yield target("sqlite3", ["sqlite3", ":memory:", SQL])
    yield target("openssl", ["openssl", "speed", "-seconds", "5", "rsa2048", "ecdsap384", "sha256"])
    data = os.path.join(work, "data")
    with open(data, "wb") as out:
        for i in range(300000):
            out.write(b"%d %x some text that repeats\n" % (i * 7919 % 100003, i * i))
    yield target("xz", ["xz", "-9e", "-T1", "-c", data])
    yield target("gzip", ["gzip", "-9", "-c", *[data] * 50])
    yield target("node", ["/usr/bin/node", "-e", NODE, str(seconds)], settle_s=1)
    garbage = written(work, "Garbage.java", JAVA)
    if which("javac") and which("java"):
        subprocess.run([which("javac"), "-d", work, garbage], check=True)
    yield target("java", ["java", "-Xmx256m", "-XX:ParallelGCThreads=2", "-cp", work, "Garbage", str(seconds)],
                 settle_s=2)
    yield target("rustc", ["rustc", "--edition", "2021", "-C", "opt-level=3", "--emit=obj", "-o",
                           os.path.join(work, "big_rust.o"), big_rust_source(work)], settle_s=0.5)
    yield gofmt(work, target)
    yield target("bash", ["bash", "-c", "f() { local i=$1; [ $i -eq 0 ] && return; f $((i - 1)); }; "
                                        "while :; do f 15; x=${PATH//bin/usr}; done"])
    yield target("gdb", ["gdb", "-nx", "-q", "-batch", "-ex", "python\nx=0\nwhile True: x += len(str(x))",
                         "/bin/true"], settle_s=1)


def gofmt(work, target):
    """Built here: the one that comes with Go has no .debug_frame, which gdb needs."""
    path, go = os.path.join(work, "gofmt"), which("go")
    if not go:
        return target("gofmt", ["go"])
    root = subprocess.run([go, "env", "GOROOT"], capture_output=True, text=True, cwd=work).stdout.strip()
    done = subprocess.run([go, "build", "-o", path, "cmd/gofmt"], cwd=work, capture_output=True, text=True,
                          env=dict(os.environ, CGO_ENABLED="0"))
    return Target("gofmt", [path, "-l", "-s", root + "/src"], why_skip=done.stderr.strip()[-200:] or None)


def big_rust_source(work, functions=600):
    path = os.path.join(work, "big_rust.rs")
    with open(path, "w") as out:
        out.write("#![crate_type=\"lib\"]\n#![allow(unused)]\nuse std::collections::HashMap;\n")
        for i in range(functions):
            out.write("pub fn f%d(v: &[u64]) -> Vec<String> { let m: HashMap<u64, Vec<u64>> = v.iter().map(|x| (x %% %d, "
                      "v.iter().filter(|y| *y > x).cloned().collect())).collect(); let mut s: Vec<String> = "
                      "m.iter().map(|(k, w)| format!(\"{}:{:?}\", k, w)).collect(); s.sort_by_key(|x| x.len()); s }\n"
                      % (i, i + 2))
    return path
