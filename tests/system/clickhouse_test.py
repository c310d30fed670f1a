# SPDX-License-Identifier: Apache-2.0
"""Two servers in front of one ClickHouse while it is killed and comes back, and while one of them is killed: what was
acknowledged is there once, shown by both."""
import json
import os
import random
import sys
import threading

from harness import BUILD, WORK, Server, check, equal, note, run, skip_all, start, wait_for

sys.path.insert(0, "tests/tools")
import clickhouse  # noqa: E402
from fleet_test import agrees, fleet, fleet_check, outcome, reports  # noqa: E402
from stores_test import Agent, NOW, foreign  # noqa: E402

REPORTS = os.environ.get("REPORTS", "12")
# Two runs of the same hosts at the same time: whose agent was heard last is in neither tally.
fleet_check.Checker.ask_agents = lambda self: None


def killed():
    house = clickhouse.ClickHouse()
    arguments = ["--store", house.store("killed")]
    started = [None, None]
    # Both make the tables at the same time.
    threads = [threading.Thread(target=lambda i=i: started.__setitem__(i, Server(*arguments, data="k%d" % i, log="k%d.log" % i)))
               for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(all(started), "two servers start at once where there are no tables yet", started)
    one, two = started
    shape = ["--agents", "20", "--interval", "300ms", "--reports", REPORTS, "--samples", "20", "--stacks", "200", "--duplicates",
             "15", "--restarts", "5", "--late", "5", "--late-by", "26h", "--lost", "10", "--timeout", "20s"]
    sending = [fleet(one, "first", *shape, "--seed", "1"), fleet(two, "second", *shape, "--seed", "2")]
    wait_for(lambda: reports(one) > 20 and reports(two) > 20, 60, 0.05)
    house.kill()
    refused = wait_for(lambda: away(one), 30, 0.1)
    equal(refused, True, "without ClickHouse reports are refused with Retry-After")
    status = one.get("/api/v1/types")[0]
    equal(status, 503, "questions are answered 503 then")
    house.start()
    before = reports(one)
    check(wait_for(lambda: reports(one) > before, 60, 0.1), "with ClickHouse back, reports are taken without a restart")
    one.kill()
    one.start()
    for process in sending:
        status, said = outcome(process)
        note(json.dumps(said))
        equal((status, said["acknowledged"], said["unanswered"]), (0, 20 * int(REPORTS), 0), "every report is answered in the end")
    tallies = [process.tally for process in sending]
    agrees(one, tallies, 3, 1, "the one that was killed")
    agrees(two, tallies, 3, 2, "the other one")
    doubles(house, one, two, tallies)


def away(server):
    status, headers, _ = server.post(foreign(NOW, True))
    return status in (429, 503) and headers.get("Retry-After") is not None


def doubles(house, one, two, tallies):
    """The same report to both servers at the same moment: both say 200, it counts once."""
    agent = Agent("race", random.Random(9))
    bodies = [agent.report(NOW - i * 60 * 10**9) for i in range(8)]
    answers = []
    for body in bodies:
        pair = [threading.Thread(target=lambda s=s, b=body: answers.append(s.post(b)[0])) for s in (one, two)]
        for thread in pair:
            thread.start()
        for thread in pair:
            thread.join()
    equal(answers, [200] * 16, "both servers take it")
    counted = [s.json("/api/v1/flamegraph", type="on-cpu", from_="now-30m", until="now", match='{host="race"}')["accounting"]
               for s in (one, two)]
    equal(counted[0], counted[1], "both show the same")
    equal((counted[0]["samples"] + other_types(one), counted[0]["taken"]), (agent.taken,) * 2, "each report counts once")
    check(int(house.ask("SELECT count() FROM duplicates", "killed")) > 0, "some of them were there twice",
          house.ask("SELECT count() FROM samples", "killed"))


def other_types(server):
    return sum(row["samples"] for row in server.json("/api/v1/types", from_="now-30m", until="now", match='{host="race"}')["types"]
               if row["name"] != "on-cpu")


if not clickhouse.PROGRAM:
    skip_all("clickhouse-server is not installed")
if __name__ == "__main__":
    run(killed)
