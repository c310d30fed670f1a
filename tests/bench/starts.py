# SPDX-License-Identifier: Apache-2.0
"""How long a server takes to its first answer on much data, and what it reads for that.

start_rows() is the part "start" of bench.py: the month of queries.py and, for BENCH_START_GB (1,3,10), as many days of it
as that makes: further days are hard links to its files under other dates. Page cache warm, and cold where the kernel lets
it be dropped."""
import glob
import os
import shutil
import time

from cost import cpu_ns, resident_kib
from harness import WORK, Server
from queries import DAY_MS, month_rows

SIZES_GB = [float(n) for n in os.environ.get("BENCH_START_GB", "1,3,10").split(",")]


def io(pid):
    with open("/proc/%d/io" % pid) as lines:
        return {name: int(value) for name, value in (line.split(": ") for line in lines)}


def day_name(begin_ms, number):
    return time.strftime("samples-%Y%m%d.db", time.gmtime(begin_ms / 1e3 + number * DAY_MS / 1e3))


def link_days(past, directory, size):
    """A data directory with as many days as make that many bytes; how many."""
    os.makedirs(directory)
    days = sorted(glob.glob(past.directory + "/samples-*.db"))
    for path in glob.glob(past.directory + "/hours-*.db") + glob.glob(past.directory + "/agents.db"):
        shutil.copy(path, directory)
    total = number = 0
    while total < size:
        source = days[-1 - number % len(days)]
        os.link(source, os.path.join(directory, day_name(past.begin_ms, past.days - 1 - number)))
        total += os.path.getsize(source)
        number += 1
    return number


def drop_page_cache():
    try:
        os.sync()
        with open("/proc/sys/vm/drop_caches", "w") as out:
            out.write("1")
        return True
    except OSError:
        return False


def started(directory):
    """Seconds until it answers, CPU, and what it read by then."""
    begin = time.monotonic()
    server = Server("--retention", "0s", data=directory)
    took = time.monotonic() - begin
    pid = server.process.pid
    seen = took, cpu_ns(pid) / 1e6, io(pid)["rchar"] / 1e6, io(pid)["read_bytes"] / 1e6, resident_kib(pid, "VmRSS") / 1024
    server.stop()
    return seen


def start_rows(row, past=None):
    past = past or month_rows(row)
    row("start of the server", "", "budget, 100 GB")
    for size in SIZES_GB:
        name = "start%g" % size
        days = link_days(past, os.path.join(WORK, name), size * 1e9)
        started(name)  # what a first start writes is written
        for cold in (False, True):
            if cold and not drop_page_cache():
                row("  %g GB, page cache cold" % size, "not run: the cache cannot be dropped here")
                continue
            seen = started(name)
            row("  %g GB, %d days, page cache %s: answers after" % (size, days, "cold" if cold else "warm"),
                "%.2f s, CPU %.0f ms" % seen[:2], "2 s",
                "read %.1f MB, of it from the disk %.1f MB; %.0f MB resident" % seen[2:])
        shutil.rmtree(os.path.join(WORK, name))
