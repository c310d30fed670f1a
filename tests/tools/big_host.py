# SPDX-License-Identifier: Apache-2.0
"""A host as it is in earnest, made up: 60 processes, more than 100 000 samples of three types in three minutes, far
more distinct frames than a screen shows, a fifth of the samples lost; and every sum over it, made without the server.

  big_host.py reports FOLDER    0.otlp … and truth.json, for tests in JavaScript
"""
import collections
import functools
import json
import os
import sys
import time

from otlp_writer import Request

HOST, PROCESSES, MINUTES = "big<host>&co", 60, 3
TYPES = {"on-cpu": ("nanoseconds", 240), "off-cpu": ("nanoseconds", 40), "page-fault": ("bytes", 20)}
PERIOD = 10101010
LIBRARY = {"libwork&co.so.1": "ab" * 20, "libc.so.6": "cd" * 20}

# frames: root first, (type of frame, name, file, line, module)
Sample = collections.namedtuple("Sample", "type minute process frames samples value")


def process_name(number):
    return "worker%02d" % number


def stack(number, k):
    work = "libwork&co.so.1"
    frames = [("native", "main", "/srv/main.cc", 1, work),
              ("native", "service_%d" % (k % 7), "/srv/service.cc", 10 + k % 7, work),
              ("native", "std::map<int, Handler&>::handle_%d" % (k % 29), "/srv/handle.cc", k % 29, work),
              ("jvm", "parse<%d & \"%d\">" % (number, k), "/srv/Parse.java", k, work)]
    if k % 11 == 3:  # calls itself
        frames += [("native", "walk", "/srv/walk.cc", 5, work)] * (2 + k % 3)
    if k % 5 == 0:
        frames += [("kernel", "vfs_read", "", 0, ""), ("kernel", "exc_page_fault", "", 0, "")]
    elif k % 5 == 1:
        frames += [("native", "memcpy", "", 0, "libc.so.6"), ("kernel", "exc_page_fault", "", 0, "")]
    else:
        frames += [("cpython", "leaf_%d_%d" % (number % 9, k), "/srv/leaf.py", k, "")]
    return tuple(frames)


@functools.lru_cache(maxsize=None)
def samples():
    """All of them; the same at every call."""
    out = []
    for type_, (_, stacks) in TYPES.items():
        for number in range(PROCESSES):
            for k in range(stacks):
                count = max(1, (100 + 8 * number) // (k + 1))
                value = {"on-cpu": count * PERIOD, "off-cpu": count * 1_000_000 + number * 37 + k}.get(type_, 4096 * count)
                out.append(Sample(type_, (number + k) % MINUTES, process_name(number), stack(number, k), count, value))
    return out


def first_minute():
    """Unix seconds of the first of its minutes: all of them are over."""
    return (int(time.time()) // 60 - MINUTES - 1) * 60


def reports(build, from_s):
    """One request a minute; the counts of taken and lost with them."""
    out, taken, lost = [], 0, 0
    for minute in range(MINUTES):
        made = Request(build)
        modules = {name: made.mapping(name, build_id) for name, build_id in LIBRARY.items()}
        modules[""] = 0
        profiles = {}
        when = (from_s + 60 * minute + 5) * 10**9
        for s in [s for s in samples() if s.minute == minute]:
            if s.type == "on-cpu":
                taken += s.samples
            if (s.type, s.process) not in profiles:
                resource = made.resource(**{"host.name": HOST, "farflame.process": s.process})
                profiles[s.type, s.process] = made.profile(resource, s.type, TYPES[s.type][0], time_ns=when)
            frames = [frame[:4] + (modules[frame[4]],) for frame in reversed(s.frames)]
            made.sample(profiles[s.type, s.process], frames, [s.samples, s.value])
        lost = taken // 4  # of all that was taken a fifth
        made.counters(HOST, "11" * 16, minute + 1, minute, taken + lost, time_ns=when, ring_full=lost)
        out.append(made.bytes())
    return out


if __name__ == "__main__":
    from_s = first_minute()
    folder, build = sys.argv[2], os.environ.get("FARFLAME_BUILD", "build")
    for i, body in enumerate(reports(build, from_s)):
        with open("%s/%d.otlp" % (folder, i), "wb") as file:
            file.write(body)
    with open(folder + "/truth.json", "w") as file:
        json.dump({"from": from_s * 1000, "until": (from_s + 60 * MINUTES) * 1000,
                   "samples": [s._asdict() for s in samples()]}, file)
