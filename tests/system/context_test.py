# SPDX-License-Identifier: Apache-2.0
"""What programs publish of themselves and of the requests their threads serve: a sample found by a request's id
is of the function that served it, whatever way the thread's pointer is reached, on the CPU and off it.
CONTEXT_REQUESTS=1000 for more of them."""
import bisect
import json
import os
import signal
import struct
import subprocess
import sys
import time

from harness import (BUILD, PROGRAMS, WORK, Agent, build_programs, check, context_places, equal, need_bpf, note, program_copy, run,
                     wait_for)

sys.path.insert(0, "tests/tools")
import otlp  # noqa: E402

need_bpf()
STATIC, DYNAMIC = 1, 2  # enum thread_context_kind
# A descriptor is one or the other, as the dynamic linker likes.
WAYS = {"contexts": (STATIC,), "contexts_static": (STATIC,), "contexts_ie": (STATIC,), "contexts_gd": (DYNAMIC,),
        "contexts_desc": (STATIC, DYNAMIC), "contexts_dlopen": (DYNAMIC,)}
build_programs(*WAYS)
REQUESTS = int(os.environ.get("CONTEXT_REQUESTS", "60"))
CPU_MS = 10


class Functions:
    """address → function of a program, by its symbol table"""

    def __init__(self, program):
        rows = subprocess.run(["nm", "-n", "--defined-only", program], capture_output=True, text=True, check=True)
        rows = [row.split() for row in rows.stdout.splitlines() if row.split()[1] in "tT"]
        self.starts = [int(row[0], 16) for row in rows]
        self.names = [row[2] for row in rows]

    def of(self, address):
        at = bisect.bisect_right(self.starts, address)
        return self.names[at - 1] if at else None


class Row:
    """One sample as it was sent."""

    def __init__(self, message, sample, functions):
        tables = message.dictionary
        self.link = tables.link_table[sample.link_index]
        self.count = sample.values[0]
        self.attributes = {}
        for index in sample.attribute_indices:
            attribute = tables.attribute_table[index]
            value = attribute.value
            self.attributes[tables.string_table[attribute.key_strindex]] = \
                getattr(value, value.WhichOneof("value"))
        names = set()
        for index in tables.stack_table[sample.stack_index].location_indices:
            location = tables.location_table[index]
            mapping = tables.mapping_table[location.mapping_index]
            if tables.string_table[mapping.filename_strindex] == functions[0]:
                names.add(functions[1].of(location.address))
        served = sorted(name for name in names if name and name.startswith("serve_") and name != "serve_all")
        self.function = served[0] if len(served) == 1 else "" if not served else "+".join(served)


def resources(message, functions):
    """(process, type) → its resource's attributes and rows"""
    found = {}
    for resource in message.resource_profiles:
        own = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
        name = own.get("farflame.process", "")
        for profile in resource.scope_profiles[0].profiles:
            kind = message.dictionary.string_table[profile.sample_type.type_strindex]
            known = functions.get(name)
            if known:
                rows = [Row(message, sample, known) for sample in profile.samples]
                attributes, before = found.get((name, kind), (own, []))
                found[name, kind] = {**own, **attributes}, before + rows
    return found


def number_of(link):
    """The request's, or None: not an id of ours."""
    trace, span = link.trace_id, link.span_id
    if len(trace) != 16 or len(span) != 8:
        return None
    number = trace[3] << 8 | trace[12]
    whole = bytearray(b"\xa5" * 16), bytearray(b"\x5a" * 8)
    whole[0][3], whole[0][12] = number >> 8, number & 255
    whole[1][6], whole[1][1] = number >> 8, number & 255
    return number if (bytes(whole[0]), bytes(whole[1])) == (trace, span) else None


def is_right(row, served):
    number = number_of(row.link)
    if number not in served:
        return False
    function, route = served[number]
    return (row.function in ("", function) and row.attributes.get("http.route") == route and
            row.attributes.get("request.number") == str(number % 10))


def judge(name, kind, rows, served):
    with_id = [row for row in rows if row.link.trace_id]
    wrong = [row for row in with_id if not is_right(row, served) or row.function == "serve_nobody"]
    missing = sum(row.count for row in rows if not row.link.trace_id and row.function not in ("", "serve_nobody"))
    all_served = sum(row.count for row in rows if row.function not in ("", "serve_nobody"))
    found = {number_of(row.link) for row in with_id if row.function not in ("", "serve_nobody")}
    equal(len(wrong), 0, "%s, %s: no sample of a request belongs to another's function, or to none" % (name, kind))
    # A machine that is too busy sweeps what it could not take at the switch: such stacks have no context.
    check(all_served and missing <= all_served * (0.01 if kind == "on-cpu" else 0.2),
          "%s, %s: what serves a request says which" % (name, kind), "%d of %d samples do not" % (missing, all_served))
    check(len(found) >= REQUESTS * 0.9, "%s, %s: requests are found by their ids" % (name, kind),
          "%d of %d" % (len(found), REQUESTS))
    note("%s %s: %d rows with an id, %d samples of requests, %d without id, %d requests" %
         (name, kind, len(with_id), all_served, missing, len(found)))


def test_all_ways():
    for library in ("gd", "desc", "ie"):
        program_copy("libcontext_%s.so" % library, "libcontext_%s.so" % library)
    library = os.path.join(WORK, "libcontext_gd.so")
    programs = {name: subprocess.Popen([program_copy(name, name), str(REQUESTS), str(CPU_MS), library, "wait"],
                                       stdout=subprocess.PIPE, text=True) for name in WAYS}
    try:
        profile_all(programs)
    finally:
        for program in programs.values():
            program.kill()
            program.wait()


def profile_all(programs):
    output = os.path.join(WORK, "profile.otlp")
    agent = Agent("--profile", "on-cpu,off-cpu", "--off-cpu-budget", "100%", "--frequency", "499", "--log-level", "debug",
                  "--pid", ",".join(str(program.pid) for program in programs.values()), "--output", output)
    wait_for(lambda: len(context_places(agent.process.pid)) >= len(programs) - 1, 60)
    programs["contexts_dlopen"].send_signal(signal.SIGUSR1)  # now it loads its writer
    wait_for(lambda: len(context_places(agent.process.pid)) >= len(programs), 120)
    located = context_places(agent.process.pid)
    for name, program in programs.items():
        check(located.get(program.pid) in WAYS[name], "%s: where its threads say it is found" % name, located)
    for program in programs.values():
        program.send_signal(signal.SIGUSR1)
    said = {name: program.communicate(timeout=300)[0] for name, program in programs.items()}
    time.sleep(0.5)
    agent.stop()
    pb = otlp.messages(BUILD)
    message = pb.ExportProfilesServiceRequest()
    message.ParseFromString(open(output, "rb").read())
    functions = {name[:15]: (name, Functions(os.path.join(WORK, name))) for name in programs}
    found = resources(message, functions)
    for name, text in said.items():
        served = {int(line.split()[0]): tuple(line.split(None, 4)[3:]) for line in text.splitlines()}
        own, rows = found.get((name[:15], "on-cpu"), ({}, []))
        equal((own.get("service.name"), own.get("deployment.environment.name")), ("shop", "test"),
              "%s: what it says of itself is its labels" % name)
        threads = {row.attributes.get("thread.id") for row in rows}
        equal(len(threads) >= 5 and None not in threads, True, "%s: every sample has its thread" % name)
        judge(name, "on-cpu", rows, served)
        judge(name, "off-cpu", found.get((name[:15], "off-cpu"), ({}, []))[1], served)


def test_others():
    """What a process published is not its child's, nor the next program's that it becomes."""
    output = os.path.join(WORK, "others.otlp")
    program = subprocess.Popen([program_copy("contexts", "ctx_before"), "20", "5", "none", "wait",
                                program_copy("contexts_dlopen", "ctx_after")], stdout=subprocess.PIPE, text=True)
    try:
        agent = Agent("--profile", "on-cpu,page-fault", "--frequency", "199", "--output", output, log="others.log")
        check(wait_for(lambda: program.pid in context_places(agent.process.pid), 60), "its threads' contexts are found")
        program.send_signal(signal.SIGUSR1)
        wait_for(lambda: open("/proc/%d/comm" % program.pid).read() == "ctx_after\n", 60)
        time.sleep(1.5)
        check(wait_for(lambda: program.pid not in context_places(agent.process.pid), 30),
              "they are forgotten when it is over")
        agent.stop()
    finally:
        program.kill()
        program.wait()
    reader = otlp.Reader(otlp.read(BUILD, output))
    found = {}
    for resource in reader.request.resource_profiles:
        own = reader.resource(resource)
        kept = found.setdefault(own.get("farflame.process"), [0, set(), set(), set()])
        kept[1].add(own.get("service.name"))
        for profile in resource.scope_profiles[0].profiles:
            kind = reader.strings[profile.sample_type.type_strindex]
            for sample in profile.samples:
                kept[0] += sample.values[0] if kind == "on-cpu" else 0
                kept[2].add(reader.dictionary.link_table[sample.link_index].trace_id)
                kept[3].add((kind, reader.attributes(sample.attribute_indices).get("http.route")))
    last = b"\xee" * 16
    before = found.get("ctx_before", [0, set(), set(), set()])
    check(before[0] > 20 and last in before[2] and ("on-cpu", "/last") in before[3] and "shop" in before[1],
          "its last request is its own", before)
    for name in ("ctx_forked", "ctx_after"):
        samples, services, traces, routes = found.get(name, [0, set(), set(), set()])
        check(samples > 20, name + " was sampled", samples)
        equal((traces, {route for _, route in routes}, "shop" in services), ({b""}, {None}, False),
              name + " has nothing of it")


if __name__ == "__main__":
    run(test_all_ways, test_others)
