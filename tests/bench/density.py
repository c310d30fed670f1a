# SPDX-License-Identifier: Apache-2.0
"""How much disk an hour of a fleet takes at each resolution: a hundred agents, a report each ten seconds, written as fast
as they are taken, with times of three hours ago; what SQLite says of its tables' pages when the roll-ups are made."""
import glob
import os
import sqlite3
import subprocess
import time

from cost import disk_bytes
from fleet_load import world_arguments
from harness import WORK, Server, fleet_tool, wait_for

AGENTS = 100
REPORTS = int(os.environ.get("BENCH_DENSITY_REPORTS", "360"))  # of each agent in the hour


def query(path, sql):
    connection = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def pages(directory):
    """Bytes of pages by table, over all day files."""
    found = {}
    for path in glob.glob(directory + "/samples-*.db"):
        for name, size in query(path, "SELECT name, sum(pgsize) FROM dbstat GROUP BY name"):
            found[name] = found.get(name, 0) + size
    return found


def rolled_up(directory):
    """(pairs in minutes, in roll-ups) now."""
    return tuple(sum(query(path, "SELECT total(pairs) FROM " + table)[0][0] for path in glob.glob(directory + "/samples-*.db"))
                 for table in ("samples", "rollups"))


def wait_for_rollups(directory):
    """Until what there is stays the same for a while."""
    last, since = None, time.monotonic()

    def is_still():
        nonlocal last, since
        now = rolled_up(directory)
        if now != last:
            last, since = now, time.monotonic()
        return now[1] and time.monotonic() - since > 12

    wait_for(is_still, 240, 2)
    return last


def measure():
    """Bytes of an agent's hour: of minutes, the dictionary, ten minutes, hours; pairs of minutes and roll-ups."""
    directory = WORK + "/density"
    server = Server(data="density")
    subprocess.run([fleet_tool(), "--server", server.url, "--interval", "0ms", "--reports", str(REPORTS), "--from", "3h",
                    "--span", "1h", *world_arguments(AGENTS)], check=True, stdout=subprocess.DEVNULL)
    minutes, rollups = wait_for_rollups(directory)
    server.stop()
    found = pages(directory)
    of_rollups = sum(size for name, size in found.items() if name.startswith("rollup"))
    share = AGENTS * REPORTS / 360
    return {"minutes": (sum(found.values()) - of_rollups - found.get("definitions", 0)) / share,
            "dictionary": found.get("definitions", 0) / share, "10m": of_rollups / share,
            "1h": disk_bytes(*glob.glob(directory + "/hours-*.db") or ["/nowhere"]) / share,
            "minute_pairs": minutes / share, "rollup_pairs": rollups / share}
