# SPDX-License-Identifier: Apache-2.0
"""The bytes on the wire, held to protobuf's own tools: what we send decodes with protoc; what protobuf's
Python library encodes is accepted, and counts once however often it is sent."""
import gzip
import os
import subprocess
import sys
import time

from harness import BUILD, WORK, Server, check, equal, run, skip

sys.path.insert(0, "tests/tools")
import otlp  # noqa: E402


def foreign_request(profile_id, count=7, process="foreign"):
    """One native stack of two frames, as another sender would write it."""
    pb = otlp.messages(BUILD)
    request = pb.ExportProfilesServiceRequest()
    strings = request.dictionary.string_table
    strings.extend(["", "samples", "count", "cpu", "nanoseconds", "libforeign.so",
                    "process.executable.build_id.gnu", "profile.frame.type", "native", "thread.name", "worker"])
    table = request.dictionary.attribute_table
    for key, value in ((0, ""), (6, "00112233445566778899aabbccddeeff00112233"), (7, "native"), (9, "worker")):
        row = table.add()
        row.key_strindex = key
        row.value.string_value = value
    request.dictionary.mapping_table.add()
    mapping = request.dictionary.mapping_table.add()
    mapping.memory_start, mapping.memory_limit, mapping.filename_strindex = 0x1000, 0x9000, 5
    mapping.attribute_indices.append(1)
    request.dictionary.location_table.add()
    for address in (0x1234, 0x5678):
        location = request.dictionary.location_table.add()
        location.mapping_index, location.address = 1, address
        location.attribute_indices.append(2)
    request.dictionary.function_table.add()
    request.dictionary.link_table.add()
    request.dictionary.stack_table.add()
    request.dictionary.stack_table.add().location_indices.extend([1, 2])
    resource = request.resource_profiles.add()
    for key, value in (("service.name", process), ("process.executable.name", process), ("host.name", "elsewhere")):
        attribute = resource.resource.attributes.add()
        attribute.key = key
        attribute.value.string_value = value
    profile = resource.scope_profiles.add().profiles.add()
    profile.sample_type.type_strindex, profile.sample_type.unit_strindex = 1, 2
    profile.period_type.type_strindex, profile.period_type.unit_strindex = 3, 4
    profile.period = 52631578
    profile.time_unix_nano = time.time_ns() - 10**9
    profile.duration_nano = 10**9
    profile.profile_id = profile_id
    sample = profile.samples.add()
    sample.stack_index = 1
    sample.values.append(count)
    sample.attribute_indices.append(3)
    return request


def ours_decodes():
    if os.geteuid() != 0:
        return skip("needs root")
    file = os.path.join(WORK, "ours.otlp")
    begin = time.monotonic()
    done = subprocess.run([BUILD + "/farflame-agent", "--output", file, "--duration", "3s", "--frequency", "199"],
                          capture_output=True, text=True, timeout=60)
    if done.returncode == 3:
        return skip("eBPF is not permitted here")
    equal(done.returncode, 0, "--output ends with status 0")
    check(3 <= time.monotonic() - begin < 15, "after its --duration", time.monotonic() - begin)
    text = subprocess.run(["protoc", "--proto_path=schema/wire", "--decode=farflame.otlp.ExportProfilesServiceRequest",
                           "profiles.proto"], stdin=open(file, "rb"), capture_output=True, text=True)
    equal(text.returncode, 0, "protoc --decode reads what the agent writes")
    check("mapping_table" in text.stdout and '"on-cpu"' in text.stdout and "farflame.taken" in text.stdout,
          "and finds the tables, the type and the agent's counters", text.stderr + text.stdout[:500])
    # Field numbers that the schema does not have show as bare numbers.
    strange = [line for line in text.stdout.splitlines() if line.strip()[:1].isdigit()]
    check(not strange, "no field that the published schema does not have", "\n".join(strange[:5]))
    server = Server("--import", file, data="imported", log="imported.log")
    rows = server.folded()
    counts = {}
    for sample in otlp.Reader(otlp.read(BUILD, file)).samples():
        counts[sample.process] = counts.get(sample.process, 0) + sample.count
    shown = {}
    for frames, value in rows:
        shown[frames[0]] = shown.get(frames[0], 0) + value
    equal(shown, counts, "--import shows each process with the counts the file holds")
    server.stop()


def foreign_is_accepted():
    server = Server()
    pb = otlp.messages(BUILD)
    first = foreign_request(b"0123456789abcdef").SerializeToString()
    status, headers, body = server.post(first)
    equal(status, 200, "a body of protobuf's Python library is accepted")
    equal(headers.get("Content-Type"), "application/x-protobuf", "answered in protobuf")
    answer = pb.ExportProfilesServiceResponse()
    answer.ParseFromString(body)
    equal(answer.partial_success.rejected_profiles, 0, "nothing is rejected")
    rows = server.folded(match='{service="foreign"}')
    equal(rows, [(["foreign", "libforeign.so+0x5678", "libforeign.so+0x1234"], 7)],
          "its stack is there, with module and address")
    equal(server.folded(match='{thread="worker"}'), rows, "the thread's name is a label")
    equal(server.folded(match='{host="elsewhere"}'), rows, "so is its host's")
    equal(server.post(first)[0], 200, "the same profile_id again: 200")
    equal(server.post(gzip.compress(first), encoding="gzip")[0], 200, "and again, with gzip")
    equal(server.folded(), rows, "counted once")
    server.kill()
    server.start()
    equal(server.post(first)[0], 200, "after SIGKILL and restart, the same again")
    equal(server.folded(), rows, "still counted once")
    members = gzip.compress(foreign_request(b"1123456789abcdef", 5).SerializeToString()) + \
        gzip.compress(foreign_request(b"2123456789abcdef", 5, "foreign").SerializeToString()[:0])
    equal(server.post(members, encoding="gzip")[0], 200, "several gzip members are one body")
    equal(sum(v for _, v in server.folded()), 12, "another profile_id counts")
    partial(server, pb)


def partial(server, pb):
    """One bad profile among good ones: the good ones are kept, the answer says so."""
    request = foreign_request(b"3123456789abcdef", 100, "good")
    bad = foreign_request(b"4123456789abcdef", 1000, "bad")
    bad.resource_profiles[0].scope_profiles[0].profiles[0].samples[0].stack_index = 999
    request.resource_profiles.add().CopyFrom(bad.resource_profiles[0])
    status, _, body = server.post(request.SerializeToString())
    answer = pb.ExportProfilesServiceResponse()
    answer.ParseFromString(body)
    equal(status, 200, "one bad profile among good ones: 200")
    equal(answer.partial_success.rejected_profiles, 1, "partial_success says one was rejected")
    check(answer.partial_success.error_message, "and why")
    equal(sum(v for _, v in server.folded(match='{service="good"}')), 100, "the good one is kept")
    equal(server.folded(match='{service="bad"}'), [], "the bad one is not")


if __name__ == "__main__":
    run(ours_decodes, foreign_is_accepted)
