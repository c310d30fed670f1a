# SPDX-License-Identifier: Apache-2.0
"""The figures of the budget table, measured, beside the OpenTelemetry eBPF profiler's on the same load where
OTEL_PROFILER names its program. Everything an agent is counts: memory and CPU summed over all its processes, children
that ended included, BPF maps and BPF run time; only the loader child's peak, over after the start, is shown apart.

bench.py [PART…]: what to measure, default all; run.sh has the list.
"""
import os
import re
import resource
import shutil
import subprocess
import sys
import time

import loads
import profilers
import ratios
from cost import Window, family, pss_kib
from harness import BUILD, CPUS, WORK, need_bpf, stop_all
from days import days_rows
from growth import growth_rows
from ingest import ingest_rows
from malloc_cost import malloc_rows
from page_rows import page_rows
from peers import peer_rows
from profilers import OTEL, Otel, Ours, entry_point, of_thread, whole_share
from python_cost import python_rows
from queries import month_rows, query_rows
from server_rows import sample_to_name, server_rows
from small import small_rows
from starts import start_rows
from symbols import symbol_rows
from switches import switch_rows
from type_costs import type_rows
from windows import windows_rows

SECONDS = int(os.environ.get("BENCH_SECONDS", "22"))  # of a steady window: two report intervals
SETTLE_S = 8


def row(what, ours, budget="", peer=""):
    print("%-66s %-26s %-13s %s" % (what, ours, budget, peer), flush=True)


def rows(ours, peer, *table):
    """Each (what, key, how it is shown, budget); a peer that did not run says so."""
    for what, key, show, budget in table:
        row(what, show(ours[key]), budget, show(peer[key]) if peer else "not run")


def of_peer(measure, kind):
    """None where there is no peer; what it fails at is said."""
    try:
        return kind and measure(kind)
    except RuntimeError as error:
        print("%s: %s" % (kind.name, error), file=sys.stderr)
        stop_all()
        return {}


def mb(kib):
    return "%.1f MB" % (kib / 1024)


def pair(values):
    return "%.1f, peak %.1f MB" % (values[0] / 1024, values[1] / 1024)


def mib(count):
    return "%.1f MiB" % (count / 2**20)


# --- steady load ---

def memory(profiler):
    """(highest of five seconds, peak since the last call) in KiB"""
    seen = []
    for _ in range(5):
        time.sleep(1)
        seen.append(pss_kib(profiler.pid))
    return max(seen), max(profiler.watch.take(), max(seen))


def window(profiler):
    """Costs and reports of SECONDS."""
    since, costs = time.monotonic(), Window(profiler.pid)
    time.sleep(SECONDS)
    costs.close()
    time.sleep(0.5)
    wire = sum(length for _, length, _ in profiler.reports(since))
    samples = sum(s.count for s in profiler.seen(since))
    return costs, wire / max(samples, 1), samples


def steady(kind):
    """19 Hz over 50 and 200 processes, 99 Hz over 200, all CPUs busy."""
    found = {}
    for rate in (19, 99):
        profiler = kind(rate)
        load = loads.fifty()
        if rate == 19:
            time.sleep(SETTLE_S)
            found = {"maps start": profiler.maps_at_start, "pss 50": memory(profiler)}
        loads.two_hundred(load)
        time.sleep(SETTLE_S)
        costs, wire, samples = window(profiler)
        found["pss %d" % rate], found["maps %d" % rate] = memory(profiler), costs.map_bytes
        found["cpu %d" % rate], found["us %d" % rate] = costs.shares(), costs.us_per_sample()
        found["wire %d" % rate] = wire, samples
        found["messages"] = [message for _, _, message in profiler.reports()]
        profiler.stop()
        load.end()
    return found


def steady_rows(peer_kind):
    ours, peer = steady(Ours), of_peer(steady, peer_kind)

    def cpu(values):
        return "%.3f + %.3f = %.3f %%" % (*values, sum(values))

    def wire(values):
        return "%.1f of %d" % values

    rows(ours, peer, ("resident memory, 50 processes (PSS)", "pss 50", pair, "12 MB"),
         ("resident memory, 200 with JVM and node (PSS), 19 Hz", "pss 19", pair, "24 MB"),
         ("  the same at 99 Hz", "pss 99", pair, "24 MB"),
         ("BPF maps, at the start", "maps start", mib, ""),
         ("BPF maps, 200 processes, 19 Hz", "maps 19", mib, "16 MiB"),
         ("BPF maps, 200 processes, 99 Hz", "maps 99", mib, "32 MiB"),
         ("user space + BPF of the machine, mixed load, 19 Hz", "cpu 19", cpu, "0.1 %"),
         ("user space + BPF of the machine, mixed load, 99 Hz", "cpu 99", cpu, ""),
         ("BPF per sample, mixed load, 99 Hz", "us 99", "{:.1f} us".format, ""),
         ("bytes per sample on the wire, 19 Hz", "wire 19", wire, "10"),
         ("bytes per sample on the wire, 99 Hz", "wire 99", wire, "5"))
    if OTEL:
        ratios.at_most("memory beside OTel's, 200 processes, 99 Hz", ours["pss 99"][0], peer and peer["pss 99"][0], 0.25)
        ratios.at_most("CPU beside OTel's, 99 Hz", sum(ours["cpu 99"]), peer and sum(peer["cpu 99"]), 0.5)
    return ours["messages"]


# --- what is new, deep, short ---

def warm(profiler):
    load = loads.busy()
    time.sleep(2)
    since, costs = time.monotonic(), Window(profiler.pid)
    time.sleep(8)
    costs.close()
    load.end()
    time.sleep(3)
    _, share, depth = whole_share(of_thread(profiler.seen(since), loads.DEEP), entry_point(loads.path(loads.DEEP)))
    return costs.us_per_sample(), depth, share


def fresh_compiler(profiler, rate):
    """(seconds to the first whole sample, samples that rusage promises, that came, that are whole)"""
    since = time.monotonic()
    begin, used = loads.compile_big()
    time.sleep(3.5)
    entry = entry_point(loads.path(loads.CLANG))
    seen = of_thread(profiler.seen(since), loads.CLANG)
    whole = [s for s in seen if profilers.is_whole(s, entry)]
    native = sum(s.count for s in seen if s.native)
    return (first_whole(profiler, whole, begin), used * rate, sum(s.count for s in seen), native,
            sum(s.count for s in whole))


def first_whole(profiler, whole, begin):
    """Our reports have no times of single samples: those are in the text of the stacks."""
    times = [at for s in whole for at in s.times]
    if isinstance(profiler, Ours):
        offset = time.time() - time.monotonic()
        times = [s.time_ns / 1e9 + offset for s in printed() if s.result == "complete" and s.is_of("clang")]
    times = [at for at in times if at >= begin]
    return min(times) - begin if times else None


class Printed:
    """A stack of --debug-stacks."""

    def __init__(self, text):
        lines = text.splitlines()
        words = lines[0].split()
        fields = dict(zip(words[0::2], words[1::2]))
        self.time_ns, self.late_us = int(fields["sample"]), int(fields["late_us"])
        self.result, self.is_copy = fields["result"], fields["from"] == "copy"
        self.root = lines[-1]

    def is_of(self, program):
        return re.search(r" %s[-0-9.]*\+0x" % program, self.root) is not None


def printed():
    text = open(loads.path("stacks")).read()
    return [Printed(stack) for stack in text.split("\n\n")[:-1]]


def deep(profiler):
    since = time.monotonic()
    load = loads.Processes().add(loads.path(loads.RECURSION), loads.FOREVER)
    time.sleep(4)
    load.end()
    time.sleep(3)
    return whole_share(of_thread(profiler.seen(since), loads.RECURSION), entry_point(loads.path(loads.RECURSION)))


def short_programs(profiler, rate):
    since = time.monotonic()
    promised = loads.short_programs() * rate
    time.sleep(3.5)
    seen, share, _ = whole_share(of_thread(profiler.seen(since), loads.SHORT), entry_point(loads.path(loads.SHORT)))
    return 100 * seen / promised, share


def storm(profiler):
    profiler.watch.take()
    costs = Window(profiler.pid)
    per_second = loads.storm(10)
    return (sum(costs.close().shares()), profiler.watch.take(), per_second)


def late_ms():
    late = sorted(s.late_us / 1e3 for s in printed() if s.is_copy)
    return (late[len(late) // 2], late[len(late) * 9 // 10], late[-1], len(late)) if late else (0, 0, 0, 0)


def fresh(kind):
    """99 Hz, reports every two seconds, from a start on a busy host on."""
    load = loads.busy()
    profiler = kind(99, "2s", ("--debug-stacks", loads.path("stacks")))
    load.end()
    time.sleep(3)
    found = {"start": profiler.start_s, "clang": fresh_compiler(profiler, 99), "600": deep(profiler), "warm": warm(profiler),
             "short": short_programs(profiler, 99), "storm": storm(profiler)}
    profiler.stop()
    if kind is Ours:
        found["late"], numbers = late_ms(), profiler.numbers()
        found["row"] = numbers["row_bytes"] / numbers["rows"], numbers["rows"]
    return found


def fresh_rows(peer_kind):
    ours, peer = fresh(Ours), of_peer(fresh, peer_kind)

    def clang(values):
        first = "never" if values[0] is None else "%.2f s" % values[0]
        return "%s; %.0f/%d/%d/%d" % (first, *values[1:])

    rows(ours, peer, ("start to the first tick, busy host", "start", "{:.2f} s".format, "0.5 s"),
         ("BPF per sample, native frames, warm; whole", "warm", lambda v: "%.1f us, %.1f frames; %.1f %%" % v, "15 us"),
         ("600 frames deep: samples, whole, mean depth", "600", lambda v: "%d, %.1f %%, %.0f" % v, "all"),
         ("fresh clang: first whole; promised/came/user/whole", "clang", clang, "none lost"),
         ("200 programs of 100 ms: samples that come, whole", "short", lambda v: "%.1f %%, %.1f %%" % v, "98 %, 95 %"),
         ("compilers, 20 programs a second: CPU of the machine, peak memory", "storm",
          lambda v: "%.2f %%, %.1f MB (%.0f/s)" % (v[0], v[1] / 1024, v[2]), ""))
    row("kernel bytes per row", "%.2f of %d rows" % ours["row"], "5")
    row("sample of unknown code to its finished stack: median, 90 %, worst", "%.1f, %.1f, %.1f ms of %d" % ours["late"], "5 ms")


def loader_row():
    """The loader child is over after the start: its peak is what its status says until then."""
    process = subprocess.Popen([BUILD + "/farflame-agent", "--output", os.path.join(WORK, "loader.otlp"), "--duration", "1s"],
                               stderr=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        for member in family(process.pid)[1:]:
            try:
                peak = max(peak, int(re.search(r"VmHWM:\s+(\d+)", open("/proc/%d/status" % member).read()).group(1)))
            except (OSError, AttributeError):
                pass
        time.sleep(0.002)
    row("children's highest resident memory: loader (ends after the start), parser", mb(peak), "apart")


# --- perf record ---

def perf_rows():
    """perf record -F 19 -a -g on 50 processes."""
    if not shutil.which("perf"):
        return row("perf record", "not run: there is no perf")
    load = loads.fifty()
    file = os.path.join(WORK, "perf.data")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(["perf", "record", "-F", "19", "-a", "-g", "-e", "cpu-clock", "-o", file],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    begin = time.monotonic()
    time.sleep(SECONDS)
    pss, elapsed = pss_kib(process.pid), time.monotonic() - begin
    process.send_signal(2)
    process.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    load.end()
    text = subprocess.run(["perf", "script", "-i", file, "-F", "comm"], capture_output=True, text=True).stdout
    samples = sum(1 for line in text.splitlines() if line.strip())
    if not samples:
        return row("perf record", "not run: it took no samples")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    row("perf record -F 19 -g, 50 processes: memory, CPU, bytes per sample", "", "", "%s, %.3f %%, %.0f" % (
        mb(pss), 100 * used / (elapsed * CPUS), os.path.getsize(file) / samples))


OF_AGENT = ("steady", "fresh", "types", "switches", "python", "perf", "server")
OF_STORE = {"symbols": symbol_rows, "small": small_rows, "malloc": malloc_rows, "days": days_rows, "windows": windows_rows,
            "peers": peer_rows, "query": query_rows, "month": month_rows, "start": start_rows, "ingest": ingest_rows,
            "fleet-growth": growth_rows, "page": page_rows}


def store_parts(wanted):
    """Each says how long it took; "start" needs the month, and takes that of the part before it. Which were not measured
    to their end."""
    kept, failed = {}, []
    for name, measure in OF_STORE.items():
        if name not in wanted:
            continue
        begin = time.monotonic()
        try:
            kept[name] = measure(row, kept.get("month")) if name == "start" else measure(row)
        except (RuntimeError, OSError, ValueError) as error:
            row("%s: not measured to its end" % name, "%s: %s" % (type(error).__name__, error))
            failed.append(name)
        stop_all()
        row("(%s took)" % name, "%.0f s" % (time.monotonic() - begin))
    return failed


def agent_parts(wanted):
    loads.build()
    stats = "/proc/sys/kernel/bpf_stats_enabled"
    before = open(stats).read()
    open(stats, "w").write("1")
    peer, begin, messages = Otel if OTEL else None, time.monotonic(), None
    row("%d CPUs" % CPUS, Ours.name, "budget", Otel.name if OTEL else "OTEL_PROFILER is not set")
    try:
        if "steady" in wanted:
            messages = steady_rows(peer)
            loader_row()
        if "fresh" in wanted:
            fresh_rows(peer)
        if "types" in wanted:
            type_rows(row)
        if "switches" in wanted:
            switch_rows(row)
        if "python" in wanted:
            python_rows(row)
        if "perf" in wanted:
            perf_rows()
        if "server" in wanted and messages:
            server_rows(row, messages)
        if "server" in wanted:
            sample_to_name(row)
        row("(of the agent took)", "%.0f s" % (time.monotonic() - begin))
    finally:
        open(stats, "w").write(before)
        stop_all()


def main():
    wanted = sys.argv[1:] or [*OF_AGENT, *OF_STORE]
    unknown = set(wanted) - set(OF_AGENT) - set(OF_STORE)
    if unknown:
        sys.exit("no such part: %s; see sh tests/bench/run.sh --help" % ", ".join(sorted(unknown)))
    if set(wanted) & set(OF_AGENT):
        need_bpf()
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    failed = store_parts(wanted)
    if set(wanted) & set(OF_AGENT):
        agent_parts(wanted)
    shutil.rmtree(WORK, ignore_errors=True)
    return 0 if ratios.are_kept(row) and not failed else 1


sys.exit(main())
