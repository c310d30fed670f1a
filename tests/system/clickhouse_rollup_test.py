# SPDX-License-Identifier: Apache-2.0
"""Sums of ten minutes and of an hour in ClickHouse: made once by one of two servers, right to the sample while reports
come late, and what is left when the minutes are gone answers as SQLite's do. ALL=1 asks more."""
import os
import sys
import time

from harness import Server, check, equal, run, skip_all, wait_for

sys.path.insert(0, "tests/tools")
import clickhouse  # noqa: E402
import stores_test  # noqa: E402
from stores_test import compare, requests  # noqa: E402

KEEP = ["--retention", "3d,10m:30d,1h:400d"]
EVERY = 4 if "ALL" in os.environ else 24


def hours(house, table, what, where="1"):
    """Samples, values and stacks' samples by hour."""
    text = house.ask("SELECT intDiv(toUInt32(%s), 3600) AS h, sum(samples), sum(value), sum(arraySum(stack_samples)) FROM "
                     "(SELECT * FROM %s WHERE %s) GROUP BY h" % (what, table, where), "sums")
    return {line.split("\t")[0]: line.split("\t")[1:] for line in text.splitlines()}


def counted(house):
    """Hours whose sums count; those that something came into meanwhile wait five minutes."""
    return house.ask("""SELECT intDiv(toUInt32(bucket), 3600) FROM rollup_marks WHERE level = 2 AND (bucket, covered) IN (SELECT hour,
        sum(t) FROM (SELECT toStartOfHour(bucket) AS hour, uniqExact(token) AS t FROM late_buckets GROUP BY bucket) GROUP BY
        hour)""", "sums").split()


def rolled_up():
    house = clickhouse.ClickHouse("rollups")
    plain = Server(*KEEP, data="plain", log="plain.log")
    servers = [Server("--store", house.store("sums"), *KEEP, data=name, log=name + ".log") for name in ("one", "two")]
    sent = [[server.post(body)[0] for server in (plain, servers[0])] for body in requests()]
    equal([pair for pair in sent if pair != [200, 200]], [], "both stores take everything")
    check(wait_for(lambda: int(house.ask("SELECT uniqExact(bucket) FROM rollup_marks WHERE level = 2", "sums")) >= 48, 90, 0.5),
          "what is over is added up", house.ask("SELECT level, count() FROM rollup_marks GROUP BY level", "sums"))
    raw = hours(house, "samples", "minute", "1 LIMIT 1 BY id")
    made = counted(house)
    for whole in (0, 1):
        sums = hours(house, "rollups_1h", "bucket", "is_whole = %d AND version IN (SELECT max(version) FROM rollup_marks WHERE "
                     "level = 2 GROUP BY bucket)" % whole)
        check(made and all(sums.get(hour) == raw.get(hour) for hour in made), "%d hours sum to their minutes" % len(made),
              [(hour, sums.get(hour), raw.get(hour)) for hour in made])
    compare([plain, servers[1]], "with minutes and sums", EVERY)
    every_question = stores_test.questions
    # Minutes that something came into late still tell threads apart, sums do not.
    stores_test.questions = lambda: [(path, asked) for path, asked in every_question()
                                     if "thread" not in path + str(asked) and path != "/api/v1/labels"]
    shorter = [("1d,10m:30d,1h:400d", "samples", "minutes"), ("1d,10m:25h,1h:400d", "rollups_10m", "ten minutes")]
    for keep, table, what in shorter if "ALL" in os.environ else shorter[1:]:
        for server in [plain] + servers:
            server.stop()
            server.arguments[server.arguments.index("--retention") + 1] = keep
            server.start()
        column = "minute" if table == "samples" else "bucket"
        left = "SELECT count() FROM %s WHERE %s < toDateTime(%d)" % (table, column, (int(time.time()) - 25 * 3600) // 86400 * 86400)
        check(wait_for(lambda: int(house.ask(left, "sums")) == 0, 30, 0.5), "older %s go" % what, house.ask(left, "sums"))
        compare([plain, servers[1]], "with the older %s gone" % what, EVERY)


def wrong_clock():
    """A clock that is a year after the newest samples is not believed at once: they stay, and are shown."""
    house = clickhouse.ClickHouse("clock")
    server = Server("--store", house.store("clock"), "--retention", "0s", data="clock", log="clock.log")
    then = stores_test.NOW - 365 * 24 * stores_test.HOUR
    days = [then - day * 24 * stores_test.HOUR for day in (0, 1, 2, 27)]
    equal([server.post(stores_test.foreign(day, True))[0] for day in days], [200] * 4, "samples of a year ago are taken")
    server.stop()
    server.arguments[server.arguments.index("--retention") + 1] = "30d"
    server.start()
    span = {"type": "on-cpu", "value": "samples", "from": days[3] // 10**6 - 60000, "until": days[0] // 10**6 + 60000}
    parts = "SELECT count() FROM (SELECT DISTINCT partition FROM system.parts WHERE active AND database = 'clock' AND table = 'samples')"
    check(wait_for(lambda: house.ask(parts) == "3\n", 30, 0.5), "what is older than those by more than is kept goes", house.ask(parts))
    equal(server.json("/api/v1/flamegraph", **span)["accounting"]["samples"], 3 * 18, "and the rest is shown")


if not clickhouse.PROGRAM:
    skip_all("clickhouse-server is not installed")
if __name__ == "__main__":
    run(rolled_up, wrong_clock)
