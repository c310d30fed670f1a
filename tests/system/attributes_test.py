# SPDX-License-Identifier: Apache-2.0
"""What a sender says of itself (attributes of a resource, as an SDK publishes them) is a label under each name that
somebody may ask by, with dots and with _, in both stores; an attribute that is another one for every request does not
become a series each, and what is left out is counted."""
import collections
import random
import sys
import time

from harness import BUILD, Server, check, equal, note, run, wait_for

sys.path.insert(0, "tests/tools")
from clickhouse import PROGRAM, ClickHouse  # noqa: E402
from otlp_writer import Request  # noqa: E402

DRAW = random.Random(5)
# attribute, names on the API, values
NAMES = [("deployment.environment.name", ["deployment.environment.name", "deployment_environment_name"], ["prod", "test"]),
         ("service.version", ["service.version", "service_version"], ["1.4", "1.5", "2.0"]),
         ("service.namespace", ["service.namespace", "service_namespace"], ["shop", "bank"]),
         ("service.name", ["service.name", "service_name", "service"], ["cart", "pay"]),
         ("host.name", ["host.name", "host_name", "host"], ["h1", "h2"]),
         ("k8s.pod.name", ["k8s.pod.name", "k8s_pod_name", "pod"], ["p-1", "p-2"]),
         ("k8s.deployment.name", ["k8s.deployment.name", "k8s_deployment_name"], ["d1", "d2"]),
         ("team", ["team"], ["red", "blue"]),
         ("acme.cost-center", ["acme_cost_center"], ["c1", "c2"])]
NOT_KEPT = {"service.instance.id": "0123-4567", "process.pid": "17", "k8s.pod.uid": "aa-bb", "telemetry.sdk.language": "go",
            "thread": "x"}


def send(servers, base_ns, processes=40):
    sent, request = [], Request(BUILD)
    for process in range(processes):
        told = {name: DRAW.choice(values) for name, _, values in NAMES}
        resource = request.resource(**told, **NOT_KEPT, **{"farflame.process": "p%d" % process})
        profile = request.profile(resource, time_ns=base_ns)
        count = DRAW.randrange(1, 50)
        request.sample(profile, [("cpython", "work", "a.py", 3)], [count, count * 1000], thread="main")
        sent.append((told, count))
    for server in servers:
        equal(server.post(request.bytes())[0], 200, "a report with attributes is taken")
    return sent


def groups(server, name):
    found = collections.Counter()
    for frames, value in server.folded(group_by=name):
        found[frames[0]] += value
    return dict(found)


def compare(server, sent, when):
    wrong = []
    for key, names, values in NAMES:
        want = collections.Counter()
        for told, value in sent:
            want[told[key]] += value
        for name in names:
            if groups(server, name) != dict(want):
                wrong.append(("group_by", name, groups(server, name), dict(want)))
            got = sum(value for _, value in server.folded(group_by="", match='{%s="%s"}' % (name, values[0])))
            if got != want[values[0]]:
                wrong.append(("match", name, got, want[values[0]]))
            listed = server.json("/api/v1/labels/" + name, from_="now-15m", until="now", type="on-cpu")["values"]
            if {row["value"] for row in listed} != set(want):
                wrong.append(("values", name, listed))
    equal(wrong, [], when + ": every name selects, groups and lists what was sent")
    labels = {row["name"] for row in server.json("/api/v1/labels", from_="now-15m", until="now")["labels"]}
    check({names[-1] for _, names, _ in NAMES} <= labels, when + ": they are among the labels", sorted(labels))
    equal([name for name in labels if "instance" in name or "uid" in name or ("pid" in name and name != "pid") or "telemetry" in name], [],
          when + ": what every process has of its own is no label")


def metric(server, name):
    for line in server.get("/metrics")[2].decode().splitlines():
        if line.startswith(name + " "):
            return int(line.split()[1])
    return None


def of_every_request(server, base_ns):
    """4 000 values of one attribute of one process."""
    before = metric(server, "farflame_server_series")
    for start in range(0, 4000, 500):
        request = Request(BUILD)
        for value in range(start, start + 500):
            resource = request.resource(**{"host.name": "h9", "service.name": "many", "farflame.process": "many",
                                           "request.number": "r%d" % value})
            profile = request.profile(resource, time_ns=base_ns)
            request.sample(profile, [("cpython", "work", "a.py", 3)], [1, 1000], thread="main")
        equal(server.post(request.bytes())[0], 200, "a report whose attributes are its requests' is taken")
    equal(sum(value for _, value in server.folded(group_by="", match='{service="many"}')), 4000,
          "all samples are there, with the label and without")
    series = metric(server, "farflame_server_series") - before
    check(series <= 1025, "4 000 values are at most 1 025 series (%d)" % series)
    equal(metric(server, "farflame_server_labels_left_out_total"), 4000 - 1024, "what did not become a label is counted")


def losses(server, base_ns):
    """An agent's own losses and attributes without room."""
    request = Request(BUILD)
    resource = request.resource(**{"host.name": "h8", "farflame.process": "a"})
    profile = request.profile(resource, time_ns=base_ns)
    request.sample(profile, [("cpython", "work", "a.py", 3)], [1, 1000], thread="main")
    for i in range(14):
        profile.samples[-1].attribute_indices.append(request.attribute("app.key%d" % i, "v"))
    own = request.resource(**{"host.name": "h8", "farflame.agent.id": "00" * 15 + "01", "farflame.report.seq": 1,
                              "farflame.taken": 4, "farflame.lost.ring_full": 3})
    request.profile(own, time_ns=base_ns)
    equal(server.post(request.bytes())[0], 200, "a report with losses is taken")
    text = wait_for(lambda: [line for line in server.get("/metrics")[2].decode().splitlines()
                             if line == 'farflame_server_agent_lost_samples_total{reason="ring_full"} 3'], 20)
    check(text, "/metrics says what agents lost")
    equal(metric(server, "farflame_server_sample_attributes_left_out_total"), 3, "and what samples' attributes had no room")


def attributes():
    base_ns = (int(time.time()) - 120) * 10**9
    server = Server(data="attributes")
    servers, other = [server], None
    if PROGRAM:
        other = ClickHouse()
        servers.append(Server("--store", other.store("attributes"), data="over-clickhouse"))
    else:
        note("not with ClickHouse: there is no clickhouse-server")
    sent = send(servers, base_ns)
    for which, place in zip(servers, ("SQLite", "ClickHouse")):
        compare(which, sent, place)
    of_every_request(server, base_ns)
    losses(server, base_ns)
    for which in servers:
        which.stop()
    again = Server(data="attributes")
    compare_one = groups(again, "deployment.environment.name")
    check({"prod", "test"} <= set(compare_one), "after a restart they are there: %s" % compare_one)
    again.stop()
    if other:
        other.stop()


run(attributes)
