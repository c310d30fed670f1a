# SPDX-License-Identifier: Apache-2.0
"""Whether reports wait while days' files are read, deleted, reduced and dictionaries dropped: day_load.c.

days_rows() is the part "days" of bench.py."""
import os
import shutil
import subprocess

from harness import BUILD, WORK

MIB = int(os.environ.get("BENCH_DAY_MIB", "500"))  # of the large day's dictionary, in memory


def days_rows(row):
    directory = WORK + "/day_load"
    os.makedirs(directory)
    done = subprocess.run([BUILD + "/tests/bench/day_load", directory, str(MIB)], capture_output=True, text=True, check=False)
    shutil.rmtree(directory)
    if done.returncode:
        raise RuntimeError(done.stderr[-300:])
    row("reports of today, 500 a second, beside a day whose dictionary takes %d MiB" % MIB,
        "taken after: median, p99, worst; answered: p99", "p99 twice the quiet one's")
    for line in done.stdout.splitlines():
        what, reports, median, p99, worst, answered, took = line.split("\t")
        row("  " + what, "%s, %s, %s; %s ms" % (median, p99, worst, answered), "", "%s reports, the work took %s ms" % (reports, took))
