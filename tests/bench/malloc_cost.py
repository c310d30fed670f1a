# SPDX-License-Identifier: Apache-2.0
"""What the allocation library costs a program, and what one of its samples, beside the samplers of other allocators.

malloc_rows() is the part "malloc" of bench.py."""
import os
import statistics
import subprocess
import time

from harness import BUILD, PROGRAMS, WORK, build_programs

PEERS = "/usr/lib/x86_64-linux-gnu/"
TCMALLOC, JEMALLOC = {"LD_PRELOAD": PEERS + "libtcmalloc.so.4"}, {"LD_PRELOAD": PEERS + "libjemalloc.so.2"}
OURS = {"LD_PRELOAD": BUILD + "/libfarflame-malloc.so"}
RUNS, HELD_RUNS, HELD_SECONDS, SAMPLE_RUNS = 80, 8, 4, 3
SAMPLE_LOG2 = 4  # one sample in so many bytes is each block


def sampled(log2):
    """name → (the allocator without samples, with one in 2^log2 bytes)"""
    return {"gperftools' sampling": ({**TCMALLOC, "TCMALLOC_SAMPLE_PARAMETER": "0"},
                                     {**TCMALLOC, "TCMALLOC_SAMPLE_PARAMETER": str(1 << log2)}),
            "jemalloc's sampling": (JEMALLOC, {**JEMALLOC, "MALLOC_CONF": "prof:true,lg_prof_sample:%d" % log2})}


def malloc_program():
    """One of 10 million mallocs a second."""
    program = WORK + "/malloc_load"
    subprocess.run(["cc", "-O2", "-fno-builtin", "tests/bench/malloc_load.c", "-o", program], check=True)
    return program


def is_there(row, name, pair):
    if all(os.path.exists(more.get("LD_PRELOAD", "/")) for more in pair):
        return True
    row(name, "not installed")
    return False


def compared(program, pair):
    """The nanoseconds of a block without it and with, of many short interleaved runs, pair by pair."""
    return [[float(subprocess.run([program, "1"], env={**os.environ, **more}, check=True, capture_output=True,
                                  text=True).stdout.split()[0]) for more in pair] for _ in range(RUNS)]


def cost_row(row, name, program, pair, asked=""):
    if not is_there(row, name + ", 10 M mallocs/s", pair):
        return
    runs = compared(program, pair)
    row(name + ", 10 M mallocs/s: CPU", "%+.1f %%, %.1f ns" % (
        (statistics.median(with_it / without for without, with_it in runs) - 1) * 100,
        statistics.median(with_it - without for without, with_it in runs)), asked)


def sample_program():
    program = WORK + "/sample_load"
    subprocess.run(["cc", "-O2", "-fno-builtin", "tests/bench/sample_load.c", "-o", program], check=True)
    return program


def sample_row(row, name, program, pair):
    """Of 2000 samples a second, ten calls deep, and their ends: at once, and after 256 more."""
    name += ", each block a sample: one"
    if not is_there(row, name, pair):
        return

    def cost(held):
        runs = [[float(subprocess.run([program, "160", held], env={**os.environ, **more}, check=True, capture_output=True,
                                      text=True).stdout) for more in pair] for _ in range(SAMPLE_RUNS)]
        return statistics.median(with_it - without for without, with_it in runs) / 1e3

    row(name, "%.2f us, held %.2f us" % (cost("0"), cost("256")))


def malloc_peers(row, program):
    """The samplers of other allocators, each against the same without it."""
    for name, pair in sampled(19).items():
        cost_row(row, name, program, pair)


def held_row(row, pair):
    """A gigabyte a second by sixty places, twenty of which hold 90 MB: CPU time of the same work."""
    build_programs("held_sites")

    def used(more):
        done = subprocess.run([PROGRAMS + "/held_sites", str(HELD_SECONDS)], input="\n\n\n", capture_output=True, check=True, text=True,
                              env={**os.environ, **more})
        return int(done.stdout.split()[-1])

    ratios = [with_it / without for without, with_it in ([used(more) for more in pair] for _ in range(HELD_RUNS))]
    row("the allocation library, an agent listens, 1 GB/s of 60 places: CPU", "%+.1f %% (%+.1f to %+.1f)" % tuple(
        (value - 1) * 100 for value in (statistics.median(ratios), min(ratios), max(ratios))), "1 %")


class Listening:
    """An agent that takes what the library tells; something keeps the library mapped."""

    def __enter__(self):
        agent = subprocess.Popen([BUILD + "/farflame-agent", "--profile", "mem-alloc,mem-inuse", "--output", WORK + "/malloc.otlp",
                                  "--mem-budget", "100%", "--report-interval", "600s"], stderr=subprocess.DEVNULL)
        self.processes = agent, subprocess.Popen(["sleep", "600"], env={**os.environ, **OURS})
        time.sleep(5)

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
            process.wait()


def malloc_rows(row):
    """Each against the same without it. An object that is loaded moves all others about, so that ours is held against an
    empty one."""
    program, empty = malloc_program(), WORK + "/empty.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "/dev/null", "-o", empty], check=True)
    pair = ({"LD_PRELOAD": empty}, OURS)
    cost_row(row, "the allocation library", program, pair, "1 %")
    malloc_peers(row, program)
    with Listening():
        cost_row(row, "the allocation library, an agent listens", program, pair, "1 %")
        held_row(row, pair)
        rates = ({**OURS, "FARFLAME_MALLOC_RATE": rate} for rate in ("0", str(1 << SAMPLE_LOG2)))
        sample_row(row, "the allocation library", sample_program(), tuple(rates))
    for name, pair in sampled(SAMPLE_LOG2).items():
        sample_row(row, name, sample_program(), pair)
