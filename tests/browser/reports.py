# SPDX-License-Identifier: Apache-2.0
"""Reports of an agent written for tests in JavaScript, through protobuf's own library.

  reports.py plain|hostile|marks|builds FILE    the report
  reports.py names FILE                  the names in the hostile one, JSON
"""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))

from formats_test import HOSTILE, WHEN_NS, Request, hostile_report  # noqa: E402
from harness import BUILD  # noqa: E402

PERIOD = 10101010


def plain_report():
    made = Request(BUILD)
    library = made.mapping("libwork.so.1", "ab" * 20)
    profile = made.profile(made.resource(**{"host.name": "one", "farflame.process": "worker"}), time_ns=WHEN_NS)
    main = [("cpython", "main", "/srv/main.py", 1), ("native", library, 0x40)]
    made.sample(profile, [("cpython", "parse", "/srv/parse.py", 10)] + main, [60, 60 * PERIOD])
    made.sample(profile, [("cpython", "read_it", "/srv/io.py", 5), ("cpython", "parse", "/srv/parse.py", 12)] + main,
                [20, 20 * PERIOD])
    made.sample(profile, [("cpython", "read_it", "/srv/io.py", 5)] + main, [15, 15 * PERIOD])
    made.sample(profile, [("cpython", "tiny", "/srv/tiny.py", 5)] + main, [5, 5 * PERIOD], incomplete="no end")
    made.counters("one", "11" * 16, 1, 0, 104, time_ns=WHEN_NS, ring_full=4)
    return made.bytes()


BUILDS = {"old": ("0a" * 20, 100), "new": ("0b" * 20, 200)}  # by host: build-id, samples of draw()


def builds_report():
    """Two builds of a program at the same time: one function takes twice as long in one of them."""
    made = Request(BUILD)
    for host, (build_id, cost) in BUILDS.items():
        profile = made.profile(made.resource(**{"host.name": host, "farflame.process": "painter"}), time_ns=WHEN_NS)
        main = ("native", made.mapping("painter", build_id), 0x40)
        made.sample(profile, [("cpython", "draw", "/srv/draw.py", 1), main], [cost, cost * PERIOD])
        made.sample(profile, [("cpython", "load", "/srv/load.py", 2), main], [50, 50 * PERIOD])
    return made.bytes()


MARKS = ["user\u202egnp.exe", "\u2067rtl isolate", "\u05e4\u05d5\u05e0\u05e7\u05e6\u05d9\u05d4(int)", "ma\u200bin", "bell\x07\x1b[31m",
         "\U0001f469\u200d\U0001f4bb", "very_" + "long_" * 818 + "name", "<script>window.pwned=9</script>"]


def marks_report():
    """Names that turn text around, hide letters or never end: of functions, files, modules, threads, processes,
    services and hosts."""
    made = Request(BUILD)
    for i, name in enumerate(MARKS):
        resource = made.resource(**{"host.name": name[:200], "farflame.process": name[:200], "service.name": name[:200]})
        profile = made.profile(resource, time_ns=WHEN_NS)
        library = made.mapping(name, "%040x" % (i + 1))
        for j, callee in enumerate(MARKS):
            made.sample(profile, [("cpython", callee, name, j), ("cpython", name, callee, i), ("native", library, 64)],
                        [i + j + 1, (i + j + 1) * PERIOD], thread=name[:15])
    return made.bytes()


what, path = sys.argv[1:]
body = {"plain": plain_report, "hostile": hostile_report, "marks": marks_report, "builds": builds_report,
        "names": lambda: json.dumps(HOSTILE).encode()}[what]()
with open(path, "wb") as file:
    file.write(body)
