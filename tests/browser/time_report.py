# SPDX-License-Identifier: Apache-2.0
"""A report for tests in JavaScript: a minute of samples with times of their own, by one build of a library.

  time_report.py old|new FROM_MS FILE
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
draw = random.Random(which)
request = Request(BUILD)
start_ns = int(from_ms) * 10**6 + (0 if which == "old" else 300 * 10**9)
library = request.mapping("libwork.so.1", BUILD_IDS[which])
same = request.mapping("libsame.so.1", "ef" * 20)
for process, count in (("api", 400), ("db", 200)):
    profile = request.profile(request.resource(**{"host.name": "one", "farflame.process": process}), time_ns=start_ns)
    stack = [("native", library, 0x40), ("native", same, 0x80)] + [("native", same, 0xc0)] * (process == "db")
    request.sample(profile, stack, [count, count * PERIOD])
    times = [start_ns + draw.randrange(60 * 10**9) for _ in range(count)]
    profile.samples[-1].timestamps_unix_nano.extend(sorted(times))
with open(path, "wb") as file:
    file.write(request.bytes())
