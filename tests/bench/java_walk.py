# SPDX-License-Identifier: Apache-2.0
"""What BPF takes for a frame of Java's: one program at two depths, which differ in nothing else, interpreted and as each
compiler makes it; the difference of a sample's time by that of the frames. Prints a row for each.

    /usr/bin/python3 tests/bench/java_walk.py BUILD [JDK…]

as root; JDK: a folder with bin/java (/usr). BENCH_JAVA_SECONDS (6) of each."""
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from cost import Window  # pylint: disable=wrong-import-position

SECONDS = float(os.environ.get("BENCH_JAVA_SECONDS", "6"))
DEPTHS = 10, 70
MODES = {"C2": (), "C1": ("-XX:TieredStopAtLevel=1",), "interpreted": ("-Xint",)}
STATS = "/proc/sys/kernel/bpf_stats_enabled"
SOURCE = """public class Deep {
    static long sink;
    static long work(long x) { for (int i = 0; i < 20000; i++) x = x * 31 + (x >>> 7); return x; }
    static long down(int n, long x) { return n == 0 ? work(x) : down(n - 1, x) + 1; }
    public static void main(String[] depth) { for (;;) sink += down(Integer.parseInt(depth[0]), sink); }
}
"""


def frames_of(path):
    """Java's frames of a stack, on average, and how many stacks there are with some."""
    found = [text.count("[java]") for text in open(path).read().split("\n\n")[50:] if "[java]" in text]
    return sum(found) / max(len(found), 1), len(found)


def measure(build, java, options, depth, folder):
    """(µs of BPF a sample, frames of Java's a sample)"""
    target = subprocess.Popen([java, "-XX:-Inline", "-XX:+UseSerialGC", *options, "-cp", folder, "Deep", str(depth)])
    agent = None
    try:
        time.sleep(1.5)
        agent = subprocess.Popen([build + "/farflame-agent", "--pid", str(target.pid), "--frequency", "499", "--output",
                                  folder + "/otlp", "--debug-stacks", folder + "/stacks"], stderr=subprocess.DEVNULL)
        time.sleep(3)
        window = Window(agent.pid)
        time.sleep(SECONDS)
        window.close()
        agent.terminate()
        agent.wait(20)
        # Ticks of other programs and of idle CPUs end early; what they cost is the same at both depths.
        frames, stacks = frames_of(folder + "/stacks")
        return window.sampling_ns / 1e3 / max(stacks * SECONDS / (SECONDS + 3), 1), frames
    finally:
        for process in (target, agent):
            if process and process.poll() is None:
                process.kill()
                process.wait()


def main():
    build, before = sys.argv[1], open(STATS).read()
    open(STATS, "w").write("1")
    try:
        with tempfile.TemporaryDirectory() as folder:
            open(folder + "/Deep.java", "w").write(SOURCE)
            subprocess.run(["javac", "--release", "8", "-Xlint:-options", "-d", folder, folder + "/Deep.java"], check=True)
            for jdk in sys.argv[2:] or ["/usr"]:
                for mode, options in MODES.items():
                    (short, few), (long, many) = (measure(build, jdk + "/bin/java", options, d, folder) for d in DEPTHS)
                    print("%-20s %-12s %4.1f µs with %3.0f frames, %4.1f µs with %3.0f: %.2f µs a frame" % (
                        re.sub(r".*/", "", jdk), mode, short, few, long, many, (long - short) / max(many - few, 1)))
    finally:
        open(STATS, "w").write(before)


if __name__ == "__main__":
    main()
