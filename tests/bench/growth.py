# SPDX-License-Identifier: Apache-2.0
"""What reports and questions cost as a fleet grows, measured, and on paper what larger ones need.

growth_rows() is the part "fleet-growth" of bench.py. BENCH_GROWTH (100,1000,10000): the agents; BENCH_GROWTH_SECONDS
(120) of each. The disk of retention is from density.py."""
import json
import os
import time

import density
from fleet_load import Run, p99, services
from harness import WORK, Server
from ingest import Questions, add_disk

SIZES = [int(n) for n in os.environ.get("BENCH_GROWTH", "100,1000,10000").split(",")]
SECONDS = int(os.environ.get("BENCH_GROWTH_SECONDS", "120"))
PAPER = (100000, 1000000)
INTERVAL_S = 10
CONNECTIONS = 12000  # of a server, --connections
RETENTION = {"minutes": 7, "10m": 30, "1h": 400}  # days: --retention 7d,10m:30d,1h:400d


def ask_all(server, agents):
    """Medians in ms: ten services, the fleet three times; all of the minutes that there are."""
    asked = Questions(server, agents)
    names = services(agents)
    one = sorted(asked.ask(match='{service="%s"}' % names[i % len(names)], from_="now-1h", until="now")[0]
                 for i in range(0, 10 * max(1, len(names) // 10), max(1, len(names) // 10)))
    fleet = sorted(asked.ask(from_="now-1h", until="now", group_by="service")[0] for _ in range(3))
    return one[len(one) // 2], fleet[1]


def of_size(agents):
    data = "growth%d" % agents
    server = Server(data=data)
    run = Run(agents, SECONDS, server.url, server.process.pid)
    time.sleep(run.rest_s())
    seen = run.close()
    seen["in_folds"], _ = run.during(run.folds.busy())
    seen["service_ms"], seen["fleet_ms"] = ask_all(server, agents)
    return add_disk(seen, server, os.path.join(WORK, data))


def bytes_per_pair(seen):
    return (seen["disk"] - seen["journal"]) / seen["stored"]


def table(row, title, sizes, *lines):
    """Each line: (what, budget, its text of one size's values)."""
    row(title, " ".join("%11d" % agents for agents in sizes), "budget")
    for what, budget, show in lines:
        row("  " + what, " ".join("%11s" % show(agents) for agents in sizes), budget)


def measured_rows(row, seen):
    table(row, "agents, a report of 200 stacks each 10 s, %d s" % SECONDS, list(seen),
          ("CPU per report, ms", "0.7", lambda n: "%.2f" % seen[n]["cpu_ms"]),
          ("  folds and roll-ups of it", "", lambda n: "%.2f" % seen[n]["background_ms"]),
          ("latency p99, ms", "100", lambda n: "%.1f" % seen[n]["p99_ms"]),
          ("  while a fold works", "100", lambda n: "%.1f" % p99(seen[n]["in_folds"])),
          ("written per report, bytes", "4096", lambda n: "%.0f" % seen[n]["wrote"]),
          ("resident, peak, MB", "300", lambda n: "%.0f" % (seen[n]["peak_kib"] / 1024)),
          ("disk per (stack, count), bytes", "3", lambda n: "%.2f" % bytes_per_pair(seen[n])),
          ("flame graph of one service, ms", "", lambda n: "%.0f" % seen[n]["service_ms"]),
          ("flame graph of the fleet by service, ms", "", lambda n: "%.0f" % seen[n]["fleet_ms"]),
          ("told to wait, refused, unanswered", "0", lambda n: "%d" % (
              seen[n]["busy"] + seen[n]["refused"] + seen[n]["unanswered"])))


def disk_gb(agents, hour):
    """{days' kind: GB}: what a day takes at each resolution, and all of RETENTION. The dictionary of a day stays as long
    as its ten minutes."""
    day = {kind: agents * 24 * size / 1e9 for kind, size in hour.items()}
    kept = (RETENTION["minutes"] * day["minutes"] + RETENTION["10m"] * (day["dictionary"] + day["10m"]) +
            RETENTION["1h"] * day["1h"])
    return dict(day, all=kept)


def paper(seen, agents, servers):
    """What that many agents need, in proportion to the largest fleet measured."""
    reports = agents / INTERVAL_S
    return {"cores": reports * seen["cpu_ms"] / 1e3,
            "wire_mbit": reports * seen["body_bytes"] / seen["acknowledged"] * 8 / 1e6,
            "disk_mb_s": reports * seen["wrote"] / 1e6,
            "memory_gb": agents / seen["agents"] * seen["peak_kib"] / 2**20,
            "servers": servers, "connections": agents / servers}


def paper_rows(row, seen):
    """A server of two cores has one of them for reports, so that queries and what waits after a restart find room."""
    base = max(seen)
    largest, hour = seen[base], density.measure()
    sizes = [base, *PAPER]
    per_server = min(CONNECTIONS, 1e3 / largest["cpu_ms"] * INTERVAL_S)
    needs = {n: paper(largest, n, max(1, -int(-n // per_server))) for n in sizes}
    disk = {n: disk_gb(n, hour) for n in sizes}
    table(row, "on paper, in proportion to %d agents" % base, sizes,
          ("reports per second", "", lambda n: "%.0f" % (n / INTERVAL_S)),
          ("cores for reports, folds, roll-ups", "", lambda n: "%.1f" % needs[n]["cores"]),
          ("network, Mbit/s", "", lambda n: "%.0f" % needs[n]["wire_mbit"]),
          ("disk writes, MB/s", "", lambda n: "%.1f" % needs[n]["disk_mb_s"]),
          ("memory, all servers, GB", "", lambda n: "%.1f" % needs[n]["memory_gb"]),
          ("servers of 2 cores, one of them for reports", "", lambda n: "%d" % needs[n]["servers"]),
          ("  connections of each", "12000", lambda n: "%.0f" % needs[n]["connections"]),
          ("disk of a day, GB: minutes", "", lambda n: "%.0f" % disk[n]["minutes"]),
          ("  its dictionary", "", lambda n: "%.0f" % disk[n]["dictionary"]),
          ("  ten minutes", "", lambda n: "%.0f" % disk[n]["10m"]),
          ("  hours", "", lambda n: "%.1f" % disk[n]["1h"]),
          ("--retention 7d,10m:30d,1h:400d, GB", "", lambda n: "%.0f" % disk[n]["all"]))
    row("  an agent's hour: (stack, count) pairs of minutes, of roll-ups", "%.0f, %.0f" % (
        hour["minute_pairs"], hour["rollup_pairs"]))


def growth_rows(row):
    seen = {agents: of_size(agents) for agents in SIZES}
    with open(os.path.join(WORK, "growth.json"), "w") as out:
        json.dump({n: {k: v for k, v in values.items() if k != "in_folds"} for n, values in seen.items()}, out, indent=1)
    measured_rows(row, seen)
    paper_rows(row, seen)
