# SPDX-License-Identifier: Apache-2.0
"""The profilers measured: ours and the OpenTelemetry eBPF profiler, started, watched and read the same way."""
import collections
import os
import re
import signal
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))

import otlp  # noqa: E402
from cost import Bpf, PeakWatch  # noqa: E402
from harness import BUILD, WORK, end, start  # noqa: E402
from receivers import GrpcReceiver, HttpReceiver  # noqa: E402

START_S = 90       # the longest that a start may take
ENTRY_REACH = 64   # the entry point's first call is made within so many bytes
OTEL = os.environ.get("OTEL_PROFILER", "")

# times: unix seconds, empty where a report does not have them; native: addresses, leaf first
Seen = collections.namedtuple("Seen", "count thread times native")


class Profiler:
    """Runs from its construction on; start_s: until its BPF program saw the first tick."""

    def __init__(self, arguments, log):
        self.log = os.path.join(WORK, log)
        begin = time.monotonic()
        self.process = start(arguments, log)
        self.pid = self.process.pid
        while not Bpf(self.pid).sampling_runs:
            if self.process.poll() is not None or time.monotonic() - begin > START_S:
                raise RuntimeError("%s does not sample:\n%s" % (arguments[0], self.text()[-1500:]))
            time.sleep(0.005)
        self.start_s = time.monotonic() - begin
        self.maps_at_start = Bpf(self.pid).map_bytes
        time.sleep(0.5)  # its loader child, shown apart, is gone
        self.watch = PeakWatch(self.pid)

    def text(self):
        return open(self.log, errors="replace").read()

    def stop(self):
        self.watch.over = True
        end(self.process, how=signal.SIGINT)

    def reports(self, since=0.0):
        return [report for report in self.receiver.reports if report[0] >= since]

    def seen(self, since=0.0):
        """All samples reported since that monotonic time."""
        found = []
        for _, _, message in self.reports(since):
            request = otlp.messages(BUILD).ExportProfilesServiceRequest()
            request.ParseFromString(message)
            found += self.seen_in(request)
        return found

    def seen_in(self, request):
        reader = otlp.Reader(request)
        frames = {}
        for resource_profiles in request.resource_profiles:
            for scope in resource_profiles.scope_profiles:
                for profile in scope.profiles:
                    for sample in profile.samples:
                        stack = reader.dictionary.stack_table[sample.stack_index]
                        for index in stack.location_indices:
                            if index not in frames:
                                frames[index] = reader.frame(index)
                        yield Seen(sum_of(sample), reader.attributes(sample.attribute_indices).get("thread.name", ""),
                                   [ns / 1e9 for ns in sample.timestamps_unix_nano],
                                   [frames[i].address for i in stack.location_indices if frames[i].kind == "native"])


def sum_of(sample):
    return len(sample.timestamps_unix_nano) or sample.values[0]


class Ours(Profiler):
    name = "farflame"

    def __init__(self, rate, interval="10s", more=()):
        self.receiver = HttpReceiver()
        super().__init__([BUILD + "/farflame-agent", "--frequency", str(rate), "--report-interval", interval, "--log-level",
                          "debug", "--server", self.receiver.url, *more], "ours.log")

    def numbers(self):
        """The last of each number that it says about itself."""
        return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)\b", self.text())}


class Otel(Profiler):
    """Needs tracefs, which is mounted for it alone."""
    name = "OTel eBPF profiler"

    def __init__(self, rate, interval="10s", more=()):
        self.receiver = GrpcReceiver()
        super().__init__(["unshare", "-m", "sh", "-c", 'mount -t tracefs tracefs /sys/kernel/tracing; exec "$@"', "sh", OTEL,
                          "-collection-agent", self.receiver.address, "-disable-tls", "-samples-per-second", str(rate),
                          "-send-error-frames", "-reporter-interval", interval, "-reporter-jitter", "0"], "otel.log")


# --- what samples tell of a program ---

def entry_point(path):
    """From the ELF header."""
    return struct.unpack("<Q", open(path, "rb").read(32)[24:])[0]


def of_thread(seen, name):
    return [s for s in seen if s.thread == name]


def is_whole(sample, entry):
    """Its outermost frame is the program's start."""
    return bool(sample.native) and 0 <= sample.native[-1] - entry < ENTRY_REACH


def whole_share(seen, entry):
    """(samples, percent of those with native frames whose stack reaches the program's start, mean depth)"""
    native = [s for s in seen if s.native]
    total = sum(s.count for s in native)
    whole = sum(s.count for s in native if is_whole(s, entry))
    depth = sum(s.count * len(s.native) for s in native)
    return sum(s.count for s in seen), 100 * whole / max(total, 1), depth / max(total, 1)
