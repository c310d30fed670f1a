# SPDX-License-Identifier: Apache-2.0
"""What real senders sent, recorded: the OpenTelemetry eBPF profiler's requests, their times moved to now. What is
shown has to be what protobuf's own library reads in them. FARFLAME_OTLP names another directory of such files."""
import collections
import glob
import gzip
import os
import sys
import time

from harness import BUILD, Server, check, equal, note, run, skip

sys.path.insert(0, "tests/tools")
import otlp  # noqa: E402

RECORDED = os.environ.get("FARFLAME_OTLP", "tests/golden/otlp")


def requests():
    """(name, message) of every recorded request that is one."""
    for path in sorted(glob.glob(RECORDED + "/*.bin")):
        yield os.path.basename(path), otlp.read(BUILD, path)


def profiles_of(message):
    for resource in message.resource_profiles:
        for scope in resource.scope_profiles:
            for profile in scope.profiles:
                yield resource, profile


def move_to(message, now_ns):
    """All times by the same distance, so that the last profile starts at now."""
    last = max((profile.time_unix_nano for _, profile in profiles_of(message)), default=0)
    for _, profile in profiles_of(message):
        if profile.time_unix_nano:
            profile.time_unix_nano += now_ns - last
        for sample in profile.samples:
            for i in range(len(sample.timestamps_unix_nano)):
                sample.timestamps_unix_nano[i] += now_ns - last


def expected(message):
    """By type: {process: samples} as OTLP means them (one value a sample, or as many as it has timestamps)."""
    strings = message.dictionary.string_table
    reader = otlp.Reader(message)
    found = collections.defaultdict(collections.Counter)
    for resource, profile in profiles_of(message):
        labels = reader.resource(resource)
        process = labels.get("process.executable.name") or \
            os.path.basename(labels.get("process.executable.path", "")) or ""
        kind = strings[profile.sample_type.type_strindex]
        for sample in profile.samples:
            found[kind][process] += sum(sample.values) if sample.values else len(sample.timestamps_unix_nano)
    return found


def languages(messages):
    """{(function, language)} of the frames that the sender named in one, of stacks that are used."""
    words = {"cpython": "Python", "jvm": "Java", "v8js": "JavaScript", "go": "Go", "rust": "Rust", "ruby": "Ruby", "perl": "Perl",
             "php": "PHP", "beam": "Erlang", "dotnet": ".NET"}
    found = set()
    for message in messages:
        tables = message.dictionary
        strings = tables.string_table
        used = {sample.stack_index for _, profile in profiles_of(message) for sample in profile.samples
                if strings[profile.sample_type.type_strindex] == "samples"}
        for index in {index for stack in used for index in tables.stack_table[stack].location_indices}:
            location = tables.location_table[index]
            types = [tables.attribute_table[i].value.string_value for i in location.attribute_indices
                     if strings[tables.attribute_table[i].key_strindex] == "profile.frame.type"]
            if location.lines and types and types[0] in words:
                for line in location.lines:
                    found.add((strings[tables.function_table[line.function_index].name_strindex], words[types[0]]))
    return found


def old_times():
    """A recorded body as it is, days or months old: refused as a bad profile, with a sentence, not as an error."""
    server = Server(data="old")
    pb = otlp.messages(BUILD)
    for name, message in requests():
        move_to(message, time.time_ns() - 30 * 86400 * 10**9)
        status, _, body = server.post(message.SerializeToString())
        answer = pb.ExportProfilesServiceResponse()
        answer.ParseFromString(body)
        count = sum(len(profile.samples) > 0 for _, profile in profiles_of(message))
        equal((status, answer.partial_success.rejected_profiles), (200, count), "%s: every profile is rejected" % name)
        check("older than what is kept" in answer.partial_success.error_message or not count, "and the sentence says why",
              answer.partial_success.error_message)
        lost = sum(expected(message)["samples"].values())
        accounting = server.flamegraph()["accounting"]
        equal((accounting["lost_by"].get("too_old"), accounting["taken"], accounting["samples"]), (lost, lost, 0),
              "and its samples are accounted as lost")
        server.post(message.SerializeToString())
        equal(server.flamegraph()["accounting"]["lost_by"].get("too_old"), lost, "once, however often it is sent")
        break
    server = Server("--retention", "0s", data="forever")
    for name, message in requests():
        equal(server.post(message.SerializeToString())[0], 200, "%s: kept where everything is kept" % name)
    check(sum(v for _, v in server.folded(from_="1", until="now")) > 0, "and shown at its own time")


def moved():
    if not list(requests()):
        return skip("no recorded requests in " + RECORDED)
    server = Server(data="moved")
    want = collections.Counter()
    kinds = collections.Counter()
    for name, message in requests():
        move_to(message, time.time_ns() - 5 * 10**9)
        body = message.SerializeToString()
        equal(server.post(gzip.compress(body), encoding="gzip")[0], 200, "%s: taken, gzip" % name)
        equal(server.post(body)[0], 200, "%s: taken again, as it is: a retry" % name)
        for kind, processes in expected(message).items():
            kinds[kind] += sum(processes.values())
            if kind == "samples":
                want.update(processes)
    note("sample types and sums: %s" % dict(kinds))
    shown = collections.Counter()
    for frames, value in server.folded():
        shown[frames[0]] += value
    equal(sum(shown.values()), sum(want.values()), "as many samples as python reads in them, once")
    named = {k: v for k, v in want.items() if k}
    equal({k: shown[k] for k in named}, named, "by process")
    again = [message for _, message in requests()][0]
    for _ in range(2):
        move_to(again, time.time_ns())
        server.post(again.SerializeToString())
    sent = sum(sum(processes.values()) for processes in expected(again).values())
    equal(sum(v for _, v in server.folded()), sum(want.values()) + 2 * sent, "the same stacks at other times count")
    want.update({k: 2 * v for k, v in expected(again)["samples"].items()})
    graph = server.flamegraph()
    have = collections.Counter(graph["kinds"][k] for k in graph["nodes"]["kind"])
    note("kinds of frames: %s" % dict(have))
    told = {(graph["names"][int(number)], language) for number, language in graph.get("languages", {}).items()}
    equal(told, languages([message for _, message in requests()]), "languages are those of the sender's types of frames")
    equal(server.json("/api/v1/labels/host")["values"], [{"value": "127.0.0.1", "samples": sum(want.values())}],
          "the host is the sender's address")
    kernel = [frames for frames, _ in server.folded() if any(f.endswith("_[k]") for f in frames)]
    for frames in kernel:
        marks = [f.endswith("_[k]") for f in frames]
        if marks != sorted(marks):
            return check(False, "kernel frames come last", frames)
    check(True, "kernel frames come last")
    equal(graph["accounting"]["lost_by"]["unexplained"], 0, "senders that count nothing leave nothing unexplained")


if __name__ == "__main__":
    run(old_times, moved)
