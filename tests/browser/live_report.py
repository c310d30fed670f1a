# SPDX-License-Identifier: Apache-2.0
"""An agent's reports of five seconds each, for tests in JavaScript, one file each: DIR/0, DIR/1 …

  live_report.py FROM_MS COUNT BURST_FROM BURST_UNTIL FUNCTION DIR    the burst: numbers of reports that have ten times as much
"""

import os
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [os.path.join(ROOT, "system"), os.path.join(ROOT, "tools")]

from harness import BUILD  # noqa: E402
from otlp_writer import Request  # noqa: E402

from_ms, count, burst_from, burst_until = map(int, sys.argv[1:5])
function, directory = sys.argv[5:]
os.makedirs(directory, exist_ok=True)
for number in range(count):
    request, time_ns = Request(BUILD), (from_ms + number * 5000) * 10**6
    samples = 1000 if burst_from <= number < burst_until else 100
    profile = request.profile(request.resource(**{"host.name": "one", "farflame.process": function}), time_ns=time_ns)
    name = "storm" if samples == 1000 else function
    request.sample(profile, [("cpython", name, "/a.py", 1)], [samples, samples * 10**7])
    seq = 1 + number + (from_ms // 5000) % 10**6
    counters = request.counters("one", "0e" * 16, seq, seq - 1, seq * 100, time_ns=time_ns)
    counters.duration_nano = 5 * 10**9
    with open("%s/%d" % (directory, number), "wb") as file:
        file.write(request.bytes())
