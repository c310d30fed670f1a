#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs with libfarflame-malloc.so loaded do what they do without it, while somebody listens: the kernel
counts the probes' hits, and every block that was announced is given back."""
import ctypes
import os
import re
import shutil
import struct
import subprocess

from harness import BUILD, CPUS, PROGRAMS, WORK, build_programs, check, equal, need_bpf, note, run, skip, skip_all

LIBRARY = os.path.join(BUILD, "libfarflame-malloc.so")
RATE = 4096
libc = ctypes.CDLL(None, use_errno=True)


def library():
    """By another name: no agent that runs beside this test listens to it."""
    path = os.path.join(WORK, "libsampled.so")
    if not os.path.exists(path):
        shutil.copy(LIBRARY, path)
    return path


def probes():
    """name → (offset of the instruction, offset of the count of listeners), from readelf"""
    sections = subprocess.run(["readelf", "-SW", LIBRARY], capture_output=True, text=True).stdout
    moved = {name: (int(address, 16), int(offset, 16))
             for name, address, offset in re.findall(r"\] (\.text|\.probes)\s+\w+\s+(\w+) (\w+)", sections)}
    notes = subprocess.run(["readelf", "-nW", LIBRARY], capture_output=True, text=True).stdout

    def offset(section, address):
        base, at = moved[section]
        return int(address, 16) - base + at

    return {name: (offset(".text", location), offset(".probes", semaphore)) for name, location, semaphore in
            re.findall(r"Name: (\w+)\s+Location: (\w+), Base: \w+, Semaphore: (\w+)", notes)}


class Count:
    """How often a probe is hit, on every CPU, in every process: the kernel's own count."""

    def __init__(self, name, path=None):
        try:
            kind = int(open("/sys/bus/event_source/devices/uprobe/type").read())
        except OSError:
            skip_all("this kernel has no uprobes")
        location, semaphore = probes()[name]
        self.path = ctypes.create_string_buffer((path or library()).encode())
        attributes = ctypes.create_string_buffer(
            struct.pack("IIQQQQQIIQQ", kind, 112, semaphore << 32, 0, 0, 0, 0, 0, 0, ctypes.addressof(self.path),
                        location), 112)
        self.events = [libc.syscall(298, attributes, -1, cpu, -1, 8) for cpu in range(CPUS)]
        if min(self.events) < 0:
            skip_all("no uprobe may be opened here: " + os.strerror(ctypes.get_errno()))

    def read(self):
        return sum(struct.unpack("Q", os.read(event, 8))[0] for event in self.events)

    def close(self):
        for event in self.events:
            os.close(event)


def preloaded(**more):
    return {**os.environ, "LD_PRELOAD": library(), "FARFLAME_MALLOC_RATE": str(RATE), **more}


def output(arguments, timeout=240, **more):
    done = subprocess.run(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=timeout, **more)
    return done.returncode, done.stdout


def listening(arguments, **more):
    """How the program ended, and the hits of the probes meanwhile: of one, of ends, of many."""
    counts = [Count("alloc"), Count("free"), Count("batch")]
    try:
        done = output(arguments, env=preloaded(**more))
        return done, [count.read() for count in counts]
    finally:
        for count in counts:
            count.close()


def unharmed(name, arguments):
    if not shutil.which(arguments[0]):
        skip(name + " is not installed")
        return
    plain = output(arguments)
    (code, text), (taken, given, batches) = listening(arguments)
    equal((code, text[-2000:]), (plain[0], plain[1][-2000:]), "%s does the same with the library" % name)
    check(plain[0] == 0 and taken > 0, "%s's memory was sampled (%d taken one by one, %d given back, %d times many)" % (
        name, taken, given, batches), text)


def test_every_announced_block_is_given_back():
    counts = [Count("alloc"), Count("free")]
    program = subprocess.Popen([os.path.join(PROGRAMS, "allocs"), "4", "100000"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, env=preloaded())
    taken = blocks = 0
    for line in iter(program.stdout.readline, "kept\n"):
        if not check(line, "the program goes on"):
            break
        taken += int(line.split()[1])
        blocks += int(line.split()[3])
    live = counts[0].read() - counts[1].read()
    program.stdin.write("\n")
    program.stdin.flush()
    equal(program.stdout.readline(), "freed\n", "all is freed")
    allocs, frees = (count.read() for count in counts)
    program.communicate("\n")
    equal(program.returncode, 0, "no block was harmed")
    note("%d bytes in %d blocks, %d samples, %d in use before the end" % (taken, blocks, allocs, live))
    # A block of s bytes is a sample with a probability of 1 − exp(−s/RATE): about 1/4 less in all than s/RATE
    # of the programs' 16 to 2016 bytes; and the child of the fork() gives some back that are its parent's.
    check(0.7 * taken / RATE < allocs < 1.05 * taken / RATE, "as many samples as bytes say", (taken / RATE, allocs))
    check(live > 0, "some are in use before the end")
    child = frees - allocs
    check(0 <= child < allocs * 0.01, "each is given back once, but for what a child of fork() has inherited",
          (allocs, frees))
    for count in counts:
        count.close()


def test_a_realloc_that_fails():
    """The block is still there: its end is told when it is given back, and once."""
    with open(os.path.join(WORK, "fails.c"), "w") as file:
        file.write("""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
	static char buffer[2][64];
	void *block;
	setvbuf(stdin, buffer[0], _IOFBF, 64);
	setvbuf(stdout, buffer[1], _IOLBF, 64);
	block = malloc(100000);
	for (int i = 0; i < 100; i++)
		if (realloc(block, PTRDIFF_MAX))
			return 1;
	puts("failed");
	getchar();
	block = realloc(block, 200000);
	puts("moved");
	getchar();
	free(block);
	puts("freed");
	getchar();
}
""")
    path = os.path.join(WORK, "fails")
    subprocess.run(["cc", "-O0", "-w", "-fno-builtin", path + ".c", "-o", path], check=True)
    counts = [Count("alloc"), Count("free")]
    program = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               env=preloaded(FARFLAME_MALLOC_RATE="1"))
    told = []
    for line in ("failed", "moved", "freed"):
        equal(program.stdout.readline(), line + "\n", "the program goes on: " + line)
        told.append([count.read() for count in counts])
        program.stdin.write("\n")
        program.stdin.flush()
    program.wait()
    for count in counts:
        count.close()
    equal([[taken - told[0][0], given - told[0][1]] for taken, given in told], [[0, 0], [1, 1], [1, 2]],
          "realloc() moves the sample once, free() ends it")
    equal(told[0][0] - told[0][1], 1, "a realloc() that fails ends nothing")


def test_nobody_listens():
    """Without a listener no block is remembered: one that comes then hears of nothing older."""
    program = subprocess.Popen([os.path.join(PROGRAMS, "allocs"), "2", "20000"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, env=preloaded())
    while program.stdout.readline() not in ("kept\n", ""):
        pass
    frees = Count("free")
    program.stdin.write("\n")
    program.stdin.flush()
    equal(program.stdout.readline(), "freed\n", "all is freed")
    equal(frees.read(), 0, "no end is told of a block that was not announced")
    frees.close()
    program.communicate("\n")


def test_early():
    (code, _), _ = listening([os.path.join(PROGRAMS, "early")])
    equal(code, 0, "an IFUNC's resolver may allocate before the library is relocated")


def test_own_allocator():
    """It has only a part of the functions: nothing is said, rather than something false."""
    (code, _), hits = listening([os.path.join(PROGRAMS, "own_malloc")])
    equal((code, hits), (0, [0, 0, 0]), "a program with an allocator of its own is left alone")
    # (jemalloc itself does not stand pvalloc(), which it has not: the program leaves that out.)
    other = [path for path in ("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
                               "/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4") if os.path.exists(path)]
    if not other:
        skip("neither jemalloc nor tcmalloc is installed")
    for path in other:
        (code, text), hits = listening([os.path.join(PROGRAMS, "allocs"), "2", "20000", "9"], LD_PRELOAD=library() + " " + path)
        equal((code, hits), (0, [0, 0, 0]), "with %s behind the library all works and nothing is said" % os.path.basename(path))


PYTHON = r"""
import ctypes, hashlib, json, os, re, sqlite3, subprocess, sys, threading, zlib
digest = hashlib.sha256()
def work(number):
    for i in range(200):
        text = json.dumps({"n": number, "list": list(range(i)), "tail": "x" * (i * 50), "k": "x"})
        assert zlib.decompress(zlib.compress(text.encode())).decode() == text
        assert re.sub("x+", "y", text).count("y") == (i > 0) + 1
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in threads], [t.join() for t in threads]
base = sqlite3.connect(":memory:")
base.execute("create table t (a, b)")
base.executemany("insert into t values (?, ?)", ((i, "v" * (i % 3000)) for i in range(3000)))
digest.update(repr(base.execute("select a % 7, sum(length(b)) from t group by 1").fetchall()).encode())
children = []
for n in range(4):
    child = os.fork()
    if not child:
        data = [bytes(m) for m in range(3000)]
        os._exit(sum(map(len, data)) % 256)
    children.append(child)
digest.update(repr([os.waitstatus_to_exitcode(os.waitpid(c, 0)[1]) for c in children]).encode())
digest.update(subprocess.run([sys.executable, "-c", "print(sum(range(10000)))"], capture_output=True).stdout)
libm = ctypes.CDLL("libm.so.6")
libm.cos.restype, libm.cos.argtypes = ctypes.c_double, [ctypes.c_double]
digest.update(repr(libm.cos(1.0)).encode())
print(digest.hexdigest())
"""

JAVA = r"""
import java.util.*; import java.util.concurrent.*; import java.util.zip.*; import java.security.*; import java.nio.*;
public class Work { public static void main(String[] a) throws Exception {
  ExecutorService pool = Executors.newFixedThreadPool(6); List<Future<Long>> all = new ArrayList<>();
  for (int n = 0; n < 24; n++) { final int s = n; all.add(pool.submit(() -> { CRC32 crc = new CRC32();
    for (int i = 0; i < 200; i++) { Deflater d = new Deflater(); byte[] in = new byte[4000]; new Random(s * 1000 + i).nextBytes(in);
      d.setInput(in); d.finish(); byte[] out = new byte[8000]; int l = d.deflate(out); d.end(); crc.update(out, 0, l);
      ByteBuffer.allocateDirect(2000).putInt(i); } return crc.getValue(); })); }
  MessageDigest m = MessageDigest.getInstance("SHA-256"); for (Future<Long> f : all) m.update(Long.toString(f.get()).getBytes());
  pool.shutdown(); Process p = new ProcessBuilder("echo", "child").start(); m.update(p.getInputStream().readAllBytes());
  System.out.println(HexFormat.of().formatHex(m.digest())); } }
"""

NODE = r"""
const {Worker, isMainThread} = require('worker_threads'), zlib = require('zlib'), crypto = require('crypto'), cp = require('child_process');
if (isMainThread) {
  const hash = crypto.createHash('sha256'); let left = 4;
  for (let i = 0; i < 300; i++) hash.update(zlib.gunzipSync(zlib.gzipSync(Buffer.alloc(i * 100, i))));
  hash.update(cp.execFileSync('echo', ['child']));
  for (let i = 0; i < 4; i++) new Worker(__filename).on('exit', code => { hash.update(String(code)); if (!--left) console.log(hash.digest('hex')); });
} else { const map = new Map(); for (let i = 0; i < 20000; i++) map.set('k' + i, Buffer.alloc(i % 300)); process.exit(map.size % 7); }
"""

PERL = r"my %h; for my $i (1..30000) { $h{'k' . $i % 5000} .= 'v' x ($i % 90); } my $n = 0; $n = ($n * 31 + length $h{$_}) % 1000003 for sort keys %h; for (1..3) { my $p = fork; exit 3 unless $p; waitpid $p, 0; $n += $?; } print qq($n\n);"


def test_others():
    folder = os.path.join(WORK, "sources")
    os.makedirs(folder, exist_ok=True)
    sources = {"work.py": PYTHON, "Work.java": JAVA, "work.js": NODE}
    for name, text in sources.items():
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
    unharmed("CPython", ["/usr/bin/python3", os.path.join(folder, "work.py")])
    os.environ["PYTHONMALLOC"] = "malloc"
    unharmed("CPython with malloc() alone", ["/usr/bin/python3", os.path.join(folder, "work.py")])
    del os.environ["PYTHONMALLOC"]
    unharmed("perl", ["perl", "-e", PERL])
    unharmed("gcc", ["gcc", "-O2", "-S", "-o", "-", "tests/programs/allocs.c"])
    unharmed("a JVM", ["java", "-Xmx256m", os.path.join(folder, "Work.java")])
    unharmed("node", ["node", os.path.join(folder, "work.js")])


if __name__ == "__main__":
    need_bpf()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    build_programs("allocs", "libearly.so", "early", "own_malloc")
    run(test_every_announced_block_is_given_back, test_a_realloc_that_fails, test_nobody_listens, test_early, test_own_allocator, test_others)
