# SPDX-License-Identifier: Apache-2.0
"""OTLP profiles through protobuf's own Python library: what a request file holds, as plain Python.

/usr/bin/python3 tests/tools/otlp.py BUILD FILE   prints one line per sample, tab-separated:
    count, process, thread, why incomplete, then the frames, leaf first
"""
import collections
import gzip
import importlib
import os
import subprocess
import sys

Frame = collections.namedtuple("Frame", "kind module build_id base address name")
Sample = collections.namedtuple("Sample", "count value process thread incomplete frames")


def messages(build):
    """The module protoc makes from schema/wire/profiles.proto."""
    out = os.path.join(build, "python")
    os.makedirs(out, exist_ok=True)
    proto = "schema/wire/profiles.proto"
    made = os.path.join(out, "profiles_pb2.py")
    if not os.path.exists(made) or os.path.getmtime(made) < os.path.getmtime(proto):
        subprocess.run(["protoc", "--proto_path=schema/wire", "--python_out=" + out, proto], check=True)
    if out not in sys.path:
        sys.path.insert(0, out)
    return importlib.import_module("profiles_pb2")


def value_of(any_value, strings):
    kind = any_value.WhichOneof("value")
    if kind == "string_value_strindex":
        return strings[any_value.string_value_strindex]
    return getattr(any_value, kind) if kind else None


def read(build, path):
    data = open(path, "rb").read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    request = messages(build).ExportProfilesServiceRequest()
    request.ParseFromString(data)
    return request


class Reader:
    def __init__(self, request):
        self.request = request
        self.dictionary = request.dictionary
        self.strings = request.dictionary.string_table

    def attributes(self, indices):
        table = self.dictionary.attribute_table
        return {self.strings[table[i].key_strindex]: value_of(table[i].value, self.strings) for i in indices}

    def resource(self, resource_profiles):
        return {a.key or self.strings[a.key_strindex]: value_of(a.value, self.strings)
                for a in resource_profiles.resource.attributes}

    def frame(self, index):
        location = self.dictionary.location_table[index]
        attributes = self.attributes(location.attribute_indices)
        mapping = self.dictionary.mapping_table[location.mapping_index]
        of_mapping = self.attributes(mapping.attribute_indices)
        name = ""
        if location.lines:
            name = self.strings[self.dictionary.function_table[location.lines[0].function_index].name_strindex]
        build_id = of_mapping.get("process.executable.build_id.gnu") or \
            of_mapping.get("process.executable.build_id.htlhash") or ""
        return Frame(attributes.get("profile.frame.type", ""), self.strings[mapping.filename_strindex],
                     build_id, of_mapping.get("farflame.address_base", ""), location.address, name)

    def samples(self):
        for resource_profiles in self.request.resource_profiles:
            resource = self.resource(resource_profiles)
            for scope in resource_profiles.scope_profiles:
                for profile in scope.profiles:
                    for sample in profile.samples:
                        attributes = self.attributes(sample.attribute_indices)
                        stack = self.dictionary.stack_table[sample.stack_index]
                        yield Sample(sample.values[0], sample.values[-1], resource.get("farflame.process", ""),
                                     attributes.get("thread.name", ""), attributes.get("farflame.incomplete", ""),
                                     [self.frame(i) for i in stack.location_indices])

    def counters(self):
        """The agent's own resource: its farflame.* attributes."""
        found = {}
        for resource_profiles in self.request.resource_profiles:
            resource = self.resource(resource_profiles)
            if "farflame.agent.id" in resource:
                found.update(resource)
        return found


def main():
    reader = Reader(read(sys.argv[1], sys.argv[2]))
    for sample in reader.samples():
        frames = [f.name or "%s+0x%x%s" % (f.module or "?", f.address, "[k]" if f.kind == "kernel" else "")
                  for f in sample.frames]
        print("\t".join([str(sample.count), sample.process, sample.thread, sample.incomplete] + frames))


if __name__ == "__main__":
    main()
