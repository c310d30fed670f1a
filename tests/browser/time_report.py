# SPDX-License-Identifier: Apache-2.0
"""A report for tests in JavaScript: five minutes of samples with times of their own, by one build of a library; or an
agent's, of a whole minute and of twenty seconds of the next, in which it lost a third.

  time_report.py old|new FROM_MS FILE
  time_report.py whole|part FROM_MS FILE
"""

import os
import random
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [os.path.join(ROOT, "system"), os.path.join(ROOT, "tools")]

from harness import BUILD  # noqa: E402
from otlp_writer import Request  # noqa: E402

PERIOD = 10101010
BUILD_IDS = {"old": "abababab12" + "00" * 15, "new": "cdcdcdcd34" + "00" * 15}

which, from_ms, path = sys.argv[1:]
if which in ("whole", "part"):
    request, seq = Request(BUILD), 1 if which == "whole" else 2
    count, seconds, lost = ((6000, 60, 0), (1333, 20, 667))[seq - 1]
    time_ns = (int(from_ms) + 60_000 * (seq - 1)) * 10**6
    profile = request.profile(request.resource(**{"host.name": "two", "farflame.process": "api"}), time_ns=time_ns)
    request.sample(profile, [("cpython", "f", "/a.py", 1)], [count, count * 10**7])
    taken = (6000, 8000)[seq - 1]
    request.counters("two", "0c" * 16, seq, seq - 1, taken, time_ns=time_ns, ring_full=lost).duration_nano = seconds * 10**9
    with open(path, "wb") as file:
        file.write(request.bytes())
    sys.exit()
draw = random.Random(which)
request = Request(BUILD)
start_ns = int(from_ms) * 10**6 + (0 if which == "old" else 300 * 10**9)
library = request.mapping("libwork.so.1", BUILD_IDS[which])
same = request.mapping("libsame.so.1", "ef" * 20)
for process, count in (("api", 80), ("db", 40)):  # a minute
    for minute in range(5):
        time_ns = start_ns + minute * 60 * 10**9
        profile = request.profile(request.resource(**{"host.name": "one", "farflame.process": process}), time_ns=time_ns)
        stack = [("native", library, 0x40), ("native", same, 0x80)] + [("native", same, 0xc0)] * (process == "db")
        request.sample(profile, stack, [count, count * PERIOD])
        times = [time_ns + draw.randrange(60 * 10**9) for _ in range(count)]
        profile.samples[-1].timestamps_unix_nano.extend(sorted(times))
with open(path, "wb") as file:
    file.write(request.bytes())
